"""Studies of the paper: safety with and without SAP (Table 3), instruction following (Fig. 7), memory.

In: a model and cases. Out: a folder with every reply, answers to the points of the cases, tables and a page. Read
`run_study` first, then `conversations`, `point_answers` and `benchmark/observations.py` (rates and differences).
"""
