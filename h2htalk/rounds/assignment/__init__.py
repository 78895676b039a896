"""Assign items to annotators, and count the annotators that items still need.

In: items, annotators and a seed. Out: assignments, the same for every order of rows. Read `assignments` first.
"""
