"""Logs of lines that a regular expression reads, and the one that `curate look` proposes for a file."""
