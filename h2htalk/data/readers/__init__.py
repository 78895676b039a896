"""Readers: a guard model, the reviewer or people who were asked; what they have read, and how each was checked.

In: nothing but records. Out: `Read`, `Certificate`, and what readings cover. Read `reads` first, then `coverage`.
"""
