"""The protocol of embedders: unit vectors, one row a text (paper, Eq. 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from h2htalk.errors import ModelCallError

Vectors = NDArray[np.float32]
CHOICES = "bge-m3, bge-m3:FOLDER, minilm (English), none, or the name or folder of a sentence-transformers model"


class Embedder(Protocol):
    """Turn texts into unit vectors."""

    name: str  # as passed to `open_embedder`
    revision: str  # of its weights: a Hugging Face commit, or `sha256:...` of the weights file
    languages: tuple[str, ...]  # that it is made for
    comparable: bool  # whether its similarities are those of the paper's embedder

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed n texts, any text, the empty one included: float32 (n, d), rows of length 1, in the order of `texts`.

        Identical texts are computed once. Raises ModelCallError where a vector is zero or not finite.
        """
        ...


def encode_distinct(
    texts: Sequence[str], encode: Callable[[list[str]], Vectors], width: int
) -> Vectors:
    """Embed each distinct text once and give every text its row: float32 (n, width), rows of length 1.

    A lone surrogate in a text is read as `?`. `encode` gets the m distinct texts and returns (m, width). Raises as
    `unit_rows`.
    """
    if not texts:
        return np.zeros((0, width), np.float32)
    readable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    rows = {text: row for row, text in enumerate(dict.fromkeys(readable))}
    vectors = unit_rows(encode(list(rows)))
    return vectors[[rows[text] for text in readable]]


def unit_rows(vectors: Vectors) -> Vectors:
    """Scale each row of (n, d) to length 1. Raises ModelCallError where one is zero or not finite."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ModelCallError(
            "the embedder gave a vector that is zero or not finite; check its weights or use another --embedder"
        )
    return np.asarray(vectors / lengths, np.float32)
