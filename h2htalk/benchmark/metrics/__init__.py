"""Score answers: BLEU and ROUGE, semantic similarity (Eq. 1), composite S (Eq. 2).

In: answers with their references. Out: one score for each answer and item. Read `composite`, then `lexical`.
"""
