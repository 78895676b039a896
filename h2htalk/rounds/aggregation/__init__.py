"""Turn votes into decisions: majority, Dawid-Skene, agreement, annotator statistics.

In: annotations. Out: one decision for each question and item, with the rule that made it. Read `decisions` first;
`vote_table` is the input of the arithmetic.
"""
