"""Show the results of runs: terminal, CSV, JSON, LaTeX, HTML, and the leaderboard.

In: the `Summary` of a run. Out: text or files. Read `table2_layout` first, which defines the columns of all tables,
then `terminal`.
"""
