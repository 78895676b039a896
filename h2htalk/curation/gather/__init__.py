"""Gather: read raw files of known formats, and simulate conversations, into dialogues.

In: the sources of the specification. Out: dialogues with ids, provenance and licence, and a private index of the raw
files. Read `stage` first.
"""
