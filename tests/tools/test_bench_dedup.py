"""The measurement of dedup, small: planted copies are found, and nothing else is."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import dedup_texts as texts
from bench_dedup import measure


@pytest.mark.parametrize(("share", "kind", "least"), [(0.05, "mixed", 0.99), (0.15, "characters", 0.90)])
def test_planted_copies_are_found_and_look_alikes_are_not_taken_for_any(share, kind, least):
    for row in measure(share, kind, 105, 2, None):
        assert row.recall >= least, row
        assert row.precision >= 0.99, row


@pytest.mark.parametrize("kind", texts.KINDS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_edit_changes_about_the_share_asked_for(kind, language):
    from rapidfuzz.distance import Levenshtein

    rng = random.Random(0)
    text = texts.piece(texts.read_pool(None, language, rng), 2000)
    for share in (0.05, 0.15, 0.3):
        other = texts.edited(text, share, "characters" if kind == "mixed" else kind, language, rng)
        assert 0.5 * share < 1 - Levenshtein.normalized_similarity(text, other) < 1.2 * share
    assert texts.edited(text, 0.0, kind, language, rng) == text
