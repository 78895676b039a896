"""Find every form of a value in its dialogue, and check that none is left afterwards.

In: the spans of a dialogue. Out: all occurrences of their values (`DialogueData`). Read `dialogue_values` first.
"""
