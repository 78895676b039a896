"""Check the form, length and fields of a subtask's answer.

In: an answer, its subtask and language. Out: violations, none when the answer is compliant. Read `contract` first.
"""
