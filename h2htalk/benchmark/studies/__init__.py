"""Studies of the paper: safety with and without SAP (Table 3), instruction following (Fig. 7), memory.

In: a model and cases (`high_risk`, `instructions`, `arcs`). Out: a folder with every reply, answers to the points of
the cases, tables and a page. Read `run_study` first, then `conversations` (what is asked), `point_answers` (who says
what a reply does, as values) and `benchmark/observations.py` (rates and their differences).
"""
