"""People's ratings of a run's answers, in the place of a judge's (Eq. 4).

In: a scored run and annotators. Out: an annotation round of some of its answers, and its ratings. Read `rating_rounds`
first.
"""
