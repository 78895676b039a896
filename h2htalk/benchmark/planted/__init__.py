"""Planted replies: replies of known truth among those that a judge reads, by which the judge is checked.

In: the wordings of `data/planted.py`, a study's replies. Out: requests among the judge's others, and what its answers
show of it. Read `draw` first, then `composition`, `matching` and `check`.
"""
