"""Argilla as a platform: workspaces, users, datasets and records on a server. Read `platform` first."""
