"""Phrases in a text: the longest that starts first, and only where it is accepted."""

from __future__ import annotations

import pytest

pytest.importorskip("ahocorasick", reason="the curation extra is not installed")

from h2htalk.text.phrases import PhraseIndex


def test_the_longest_phrase_that_starts_first_is_found() -> None:
    index = PhraseIndex([("card", 1), ("card number", 2), ("number one", 3), ("卡", 4)])
    assert list(index.find("my card number one, card卡")) == [(3, 14, 2), (20, 24, 1), (24, 25, 4)]
    assert list(PhraseIndex[int]([]).find("card")) == []


def test_a_shorter_phrase_is_found_where_the_longer_is_not_accepted() -> None:
    index = PhraseIndex(
        [("ab", 1), ("abc", 2)], lambda text, start, end: text[end : end + 1] != "d"
    )
    assert list(index.find("abcd abc")) == [(0, 2, 1), (5, 8, 2)]
