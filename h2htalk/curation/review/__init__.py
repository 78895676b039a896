"""Review: a model reviews every candidate, and people decide what it cannot.

In: candidates. Out: accepted, revised and handed-over candidates with their review, and rejected ones. The model scores
a rubric and compares references with FairEval's calibration. Read `stage` first.
"""
