"""Remove equal and similar dialogues and those of other splits: candidates by MinHash, then exact similarity."""
