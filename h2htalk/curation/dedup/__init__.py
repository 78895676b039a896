"""Dedup: remove duplicates, and dialogues that contain items of a split.

In: dialogues. Out: the best dialogue of each group of duplicates, and a rejection for each other one. Candidates by
MinHash, then exact similarity: `detect/duplicates` finds both. Read `stage` first.
"""
