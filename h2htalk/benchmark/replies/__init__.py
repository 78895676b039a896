"""What replies show beside their text: how they ended, prompts that were cut. Read `reply_endings`."""
