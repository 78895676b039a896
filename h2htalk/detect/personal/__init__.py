"""Find personal data in the messages of a dialogue.

In: the texts of one dialogue. Out: spans with types and scores, and the values in them. Read `engine.analyzer` first.
"""
