"""Parse text and find names with the packaged spaCy pipelines.

In: texts of one language. Out: spaCy documents, or names. Read `parsing` first.
"""
