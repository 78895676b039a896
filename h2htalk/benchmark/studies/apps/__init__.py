"""Companion applications with a prompt and a memory of their own, over HTTP. Read `app_conversations`."""
