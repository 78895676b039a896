"""Erasure from every folder that links lead to (`sweep`): which records go (`erased_ids`), and how (`folder_kinds`)."""
