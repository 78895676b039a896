"""Parse text and find names with the packaged spaCy pipelines; take the text out of HTML (`html_text`).

In: texts of one language. Out: spaCy documents, or names. Read `parsing` first.
"""
