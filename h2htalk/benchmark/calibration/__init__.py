"""How far a judge's ratings can stand for people's, and what the means are without its bias.

In: a judged run and people's labels of some of its answers. Out: agreement, bias and corrected means, and the corrected
cells in the run's tables. Read `calibrate` first, then `label_plan`.
"""
