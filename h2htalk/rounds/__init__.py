"""Run annotation rounds: give items to annotators, collect their annotations, and decide.

Input: items (a split, a curation stage, the ties of another round, a JSONL file) and a list of annotators.
Output: a round folder with annotations, decisions, agreement and annotator statistics. Read `lifecycle` first.
"""
