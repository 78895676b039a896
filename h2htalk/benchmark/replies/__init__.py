"""What replies show beside their text: how they ended, unknown marks, prompts that were cut. Read `reply_endings`."""
