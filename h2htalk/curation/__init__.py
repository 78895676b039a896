"""Curate raw dialogues into reviewed candidates: the stages of `h2htalk curate`.

In: raw files or simulated dialogues, and a specification (`stages.CurateSpec`). Out: a workspace with one folder for
each stage, and why each record was kept or rejected. Read `stages` first, then `curate` and `run`.
"""
