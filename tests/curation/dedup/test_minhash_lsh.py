"""Candidate pairs by MinHash LSH."""

from __future__ import annotations

import numpy as np
import pytest
from dedup_made import edited, words

from h2htalk.curation.dedup.minhash import signatures, text_hash
from h2htalk.curation.dedup.minhash_lsh import candidate_pairs


def found(texts):
    hashes = np.array([text_hash(text) for text in texts], np.uint64)
    pairs = candidate_pairs(signatures(texts, 6), hashes)
    return [{texts[a], texts[b]} for a, b in zip(*pairs, strict=True)]


@pytest.mark.parametrize("texts", [[], [words("a", 30)], [words("a", 30), words("b", 30)]])
def test_unrelated_texts_are_no_candidates(texts):
    signed = signatures(texts, 6) if texts else np.empty((0, 64), np.uint32)
    pairs = candidate_pairs(signed, np.arange(len(texts), dtype=np.uint64))
    assert len(pairs[0]) == 0


def test_edited_copies_are_candidates():
    texts = [words(n, 40) for n in range(60)]
    copies = [edited(text, 0.15) for text in texts]
    pairs = found(texts + copies)
    assert all({a, b} in pairs for a, b in zip(texts, copies, strict=True))


def test_pairs_do_not_depend_on_the_order_of_texts():
    texts = [words(n // 3, 40) for n in range(60)]
    texts = list(dict.fromkeys(edited(text, 0.1, n) for n, text in enumerate(texts)))
    first, again = found(texts), found(texts[::-1])
    assert sorted(map(sorted, first)) == sorted(map(sorted, again))


def test_many_texts_with_one_phrase_give_few_pairs_each():
    texts = [f"{words('frame', 60)} {n:05}" for n in range(600)]
    pairs = found(texts)
    assert 0 < len(pairs) <= 64 * len(texts)
