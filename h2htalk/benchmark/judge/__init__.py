"""Judge the answers of a scored run by a model: its judgements, J in the tables, and whether the judge measures.

Read `judge_run` first, then `rubric`, `judgements` and `probe`.
"""
