"""Evaluate a model on a split.

In: a specification (`settings.EvaluateSpec`). Out: a run folder with responses, scores, tables and a page, and its
`Summary`. Read `evaluate` first, then `score_run`.
"""
