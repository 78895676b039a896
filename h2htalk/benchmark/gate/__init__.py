"""A gate for CI: runs and a policy in, a verdict a criterion out (Markdown, a page, JUnit XML, JSON).

Read `gate` first; `comparison` pairs and tests the values of a criterion, `power` says what so many items find,
`policy` and `benchmark/observed_run` are what it reads, `report` what it writes.
"""
