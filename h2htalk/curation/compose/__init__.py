"""Compose: make candidate scenarios of dialogues, extracted from them or written by a model.

In: dialogues. Out: candidates (`curation.candidates`) of the eleven subtasks. Read `stage` first.
"""
