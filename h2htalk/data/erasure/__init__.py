"""Erasure from every folder that links lead to (`sweep`): which records go, and how (`folder_kinds`)."""
