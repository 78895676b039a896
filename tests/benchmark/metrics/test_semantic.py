"""SS is the cosine of two embeddings; a failing embedder costs the items whose texts fail, and never scores them 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from h2htalk.benchmark.metrics.composite import similarities
from h2htalk.errors import MissingExtraError
from h2htalk.text.embeddings.vectors import Vectors


class Letters:
    """A small embedder: the counts of a text's letters, as a unit vector. Notes what it is asked."""

    name, revision, languages, comparable = "letters", "1", ("en", "zh"), False

    def __init__(self, refuses: str = "", breaks: str = "") -> None:
        self.asked: list[list[str]] = []
        self._refuses, self._breaks = refuses, breaks

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        if self._refuses and any(self._refuses in text for text in texts):
            raise RuntimeError("out of memory")
        counts = np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=np.float32)
        vectors: Vectors = counts / np.linalg.norm(counts, axis=1, keepdims=True)
        for row, text in enumerate(texts):
            if self._breaks and self._breaks in text:
                vectors[row] = np.nan
        return vectors


def test_the_cosine_by_hand() -> None:
    values = similarities(Letters(), ["a", "a", "ab", "aab"], ["a", "b", "a", "ab"])
    assert values == pytest.approx([1.0, 0.0, 1 / np.sqrt(2), 3 / np.sqrt(10)], abs=1e-6)
    assert all(isinstance(value, float) for value in values)


def test_every_text_is_embedded_once_and_order_does_not_matter() -> None:
    embedder = Letters()
    forward = similarities(embedder, ["a", "b", "a", "c"], ["b", "b", "d", "a"])
    assert embedder.asked == [["a", "b", "c", "d"]]
    assert similarities(embedder, ["c", "a", "b", "a"], ["a", "d", "b", "b"]) == forward[::-1]


def test_an_empty_answer_has_nothing_to_embed_and_scores_zero() -> None:
    embedder = Letters()
    assert similarities(embedder, ["", "a"], ["b", ""]) == [0.0, 0.0]
    assert "" not in embedder.asked[0]
    assert similarities(embedder, [], []) == []


def test_a_text_that_fails_costs_its_own_items_only() -> None:
    texts = [f"{letter * n}" for n in range(1, 9) for letter in "abc"] + ["abX", "dX"]
    references = ["abc"] * len(texts)
    embedder = Letters(refuses="X")
    values = similarities(embedder, texts, references)
    assert values[-2:] == ["embedder: RuntimeError: out of memory"] * 2
    assert values[:-2] == similarities(Letters(), texts[:-2], references[:-2])
    assert len(embedder.asked) < 25  # halves, not one by one


def test_a_vector_of_nan_is_a_failure_and_not_a_zero() -> None:
    """S took the larger of 0 and NaN, which is 0."""
    assert similarities(Letters(breaks="X"), ["a", "aX"], ["a", "a"]) == [
        1.0,
        "embedder: not a finite vector",
    ]


def test_an_embedder_that_cannot_work_at_all_is_an_error_not_a_run_of_unscored_items() -> None:
    class Missing(Letters):
        def encode(self, texts: Sequence[str]) -> Vectors:
            raise MissingExtraError("embedder letters", "pip install letters")

    with pytest.raises(MissingExtraError, match="pip install letters"):
        similarities(Missing(), ["a", "b"], ["c", "d"])
