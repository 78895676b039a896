"""Show the results of runs: terminal, CSV, JSON, LaTeX, HTML, and the leaderboard.

In: the `Summary` of a run. Out: text or files. Read `table2` first, which defines all tables, then `terminal`.
"""
