"""The cache of embeddings: what is known is not computed again, and a cache that fails stops nothing."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from h2htalk.text.embeddings.cache import CachedEmbedder
from h2htalk.text.embeddings.vectors import Vectors


class CountingEmbedder:
    """Vectors from the bytes of a text; remembers what it was asked for."""

    languages = ("en", "zh")
    comparable = False

    def __init__(self, name: str = "counting", revision: str = "1") -> None:
        self.name, self.revision = name, revision
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        rows = [[1, len(text), sum(text.encode("utf-8", "replace"))] for text in texts]
        vectors = np.array(rows, np.float32).reshape(-1, 3)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made on demand" / "embeddings.sqlite"


def test_a_known_text_is_not_computed_again(path: Path) -> None:
    first, second = CountingEmbedder(), CountingEmbedder()
    vectors = CachedEmbedder(first, path).encode(["tea", "雨", "", "tea", "\ud83d"])
    again = CachedEmbedder(second, path).encode(["\ud83d", "new", "", "雨", "tea"])
    assert sorted(first.asked) == sorted(["tea", "雨", "", "\ud83d"])
    assert second.asked == ["new"]
    np.testing.assert_array_equal(again[[4, 3, 2, 4, 0]], vectors)
    assert again.dtype == np.float32


@pytest.mark.parametrize("other", [CountingEmbedder("other"), CountingEmbedder(revision="2")])
def test_another_embedder_or_revision_shares_nothing_and_texts_are_not_kept(
    path: Path, other: CountingEmbedder
) -> None:
    CachedEmbedder(CountingEmbedder(), path).encode(["a secret"])
    CachedEmbedder(other, path).encode(["a secret"])
    assert other.asked == ["a secret"]
    assert b"secret" not in path.read_bytes()


@pytest.mark.parametrize("content", [b"not a database" * 500, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_damaged_file_is_said_once_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    embedder = CachedEmbedder(CountingEmbedder(), path)
    with pytest.warns(UserWarning, match=r"embedding cache cannot be .* H2HTALK_CACHE") as caught:
        assert embedder.encode(["tea", "rain"]).shape == (2, 3)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert embedder.encode(["tea"]).shape == (1, 3)
    assert path.read_bytes() == content


DAMAGE = {"cut": "substr(vector, 1, 8)", "zeros": "zeroblob(12)", "not a number": "x'0000c07f0000000000000000'"}


@pytest.mark.parametrize("value", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_vector_is_computed_anew_and_written_over(path: Path, value: str) -> None:
    """Else a changed cache would give other scores, or leave the same items unscored for ever."""
    texts = ["tea", "rain", "river"]
    honest = CachedEmbedder(CountingEmbedder(), path).encode(texts)
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE vectors SET vector = {value} WHERE key <> (SELECT max(key) FROM vectors)")
    database.close()
    repairing, unused = CountingEmbedder(), CountingEmbedder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(CachedEmbedder(repairing, path).encode(texts), honest)
        np.testing.assert_array_equal(CachedEmbedder(unused, path).encode(texts), honest)
    assert len(repairing.asked) == 2
    assert unused.asked == []
