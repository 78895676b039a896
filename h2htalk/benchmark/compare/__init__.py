"""Compare runs item by item: paired differences, tests and intervals, and the items that moved most; correlations.

In: run folders, and logs of other harnesses. Out: a `Comparison`, as text, CSV, JSON, LaTeX and a page. Read
`comparison` first.
"""
