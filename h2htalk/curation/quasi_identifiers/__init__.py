"""Quasi-identifiers: ages, places, jobs, schools and dates that together may name a person.

In: the dialogues of a finished stage. Out: a report for people; nothing is changed. Read `report` first; `statements`
finds what users say, with the words of `words_LANGUAGE.toml`.
"""
