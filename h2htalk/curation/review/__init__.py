"""Review: a model reviews every candidate, and people decide what it cannot.

In: candidates. Out: accepted, revised and handed-over candidates with their review, and rejected ones. The model scores
a rubric and compares references with FairEval's calibration, and answers the safety questions about what it is shown.
Read `stage` first, then `candidate_reads`.
"""
