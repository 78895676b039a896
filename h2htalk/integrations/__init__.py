"""Other harnesses: the items of a split as they ask them, and the scores of this package in their reports.

Each adapter is thin: `harness_split` gives messages and scores, by the same functions as `h2htalk evaluate`, and a
folder or module for each harness says it in that harness's words. Read `harness_split` first.
"""
