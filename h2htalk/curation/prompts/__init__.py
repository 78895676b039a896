"""Prompts of curation by language, and the class that renders them.

In: values. Out: the text of a prompt. Read `templates` first.
"""
