"""Anonymize: find personal data in dialogues and replace it with surrogates.

In: dialogues. Out: dialogues with surrogates, and rejections where a value could still be read. Read `stage` first,
then `detect/personal/engine/analyzer`.
"""
