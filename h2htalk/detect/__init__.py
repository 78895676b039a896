"""Detectors: find personal data, dangers, offence and near duplicates. They decide nothing; stages and gates do.

In: texts, turns, dialogues. Out: spans, evidence with scores, pairs. `hashed` and `encoder` are the classifiers that
several detectors share. Read `personal.engine.analyzer`, `safety.crisis` and `duplicates.signatures` first.
"""
