"""Erasure everywhere: which records hold words of an erased id, and how an item leaves each kind of folder.

`erased_ids` decides about a record; `folder_kinds` is the table of kinds; `sweep` follows links from a workspace and
calls the function of each kind.
"""
