"""Recognise personal data with a form of its own: e-mail addresses, URLs, numbers, ids, licence plates.

In: a text. Out: spans, by patterns, check digits and the words beside them. Read `structured` first.
"""
