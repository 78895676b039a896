"""Embed texts for semantic similarity and deduplication.

In: texts. Out: float32 vectors of length 1, one for each text. Read `vectors` first (the protocol), then `embedders`,
which opens an embedder by its name.
"""
