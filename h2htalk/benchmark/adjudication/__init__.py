"""People's ratings of a run's answers, in the place of a judge's (Eq. 4).

In: a judged run and annotators. Out: an annotation round of its low items, and people's ratings in its tables. Read
`adjudicate` first, then `rating_rounds`.
"""
