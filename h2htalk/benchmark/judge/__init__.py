"""A judge's rubric scores of a run's answers (Eq. 3 and 4).

In: a scored run and a model that judges. Out: `judgements/` in the run, and J in its tables. Read `judge_run` first,
then `rubric` (what is asked), `judgements` (what is stored, and what the tables use).
"""
