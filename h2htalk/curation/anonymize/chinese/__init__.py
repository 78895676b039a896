"""Recognise names, organisations and addresses in Chinese text.

In: texts, and the spans found before. Out: spans that do not overlap. Read `recognizer` first.
"""
