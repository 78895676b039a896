"""Work on text: tokens, counts, escaping, templates, contracts, embeddings and parsing.

It reads packaged word lists and small models, and calls no chat model. Read `tokens` first; `contracts`, `embeddings`
and `parsing` are folders of their own.
"""
