"""Candidate pairs by MinHash LSH."""

from __future__ import annotations

import numpy as np
from dedup_made import words

from h2htalk.curation.dedup.candidate_pairs import candidate_pairs
from h2htalk.curation.dedup.minhash import signatures, text_hash


def found(texts):
    hashes = np.array([text_hash(text) for text in texts], np.uint64)
    pairs = candidate_pairs(signatures(texts, 6), hashes)
    return [{texts[a], texts[b]} for a, b in zip(*pairs, strict=True)]


def test_many_texts_with_one_phrase_give_few_pairs_each():
    texts = [f"{words('frame', 60)} {n:05}" for n in range(600)]
    pairs = found(texts)
    assert 0 < len(pairs) <= 64 * len(texts)
