"""The questions, labels and guidelines of rounds in the annotators' languages.

In: the settings of a round and a language. Out: text. Read `interface` first, then `guidelines`.
"""
