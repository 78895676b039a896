"""Recognise personal data with a form of its own: e-mail addresses, URLs, numbers, ids, licence plates."""
