"""Releases: their folder (`release_folder`), and the Hugging Face Hub, where they are published."""
