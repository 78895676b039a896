"""Statistics of values: a figure with its 95 % interval (`estimates.Estimate`), averages, tests and correlations.

Values of items come in, as numbers with their groups and clusters; estimates and p values go out. No module here knows
a run. Read `estimates.py` first, then `averages.py`.
"""
