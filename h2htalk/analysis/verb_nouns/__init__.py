"""Find verbs with the nouns that they act on, and count the pairs (paper, Fig. 5).

In: texts of one language. Out: `VerbNounPair`s and their counts. Read `pairs` first; the rules are in `english` and
`chinese`.
"""
