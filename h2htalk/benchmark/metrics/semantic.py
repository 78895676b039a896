"""Semantic similarity: the cosine of two embeddings (paper, Eq. 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from h2htalk.errors import H2HTalkError
from h2htalk.text.embeddings.vectors import Embedder


def similarities(embedder: Embedder, responses: Sequence[str], references: Sequence[str]) -> list[float | str]:
    """SS of n responses, each against its reference.

    Every text is embedded once, however often it occurs. An empty response has nothing to embed: its SS is 0,
    as its lexical scores are.

    Returns:
        n values: a cosine in [-1, 1], or the reason (a text) why the embedder failed on that pair.
    """
    texts = sorted({text for text in (*responses, *references) if text})
    vectors, failed = _encode(embedder, texts)
    return [
        _similarity(response, reference, vectors, failed)
        for response, reference in zip(responses, references, strict=True)
    ]


def _similarity(response: str, reference: str, vectors: dict[str, np.ndarray], failed: dict[str, str]) -> float | str:
    if not response or not reference:
        return 0.0
    for text in (response, reference):
        if text in failed:
            return failed[text]
    cosine = float(np.dot(vectors[response], vectors[reference]))
    # A vector of NaN must not become a score: S would take it for 0.
    return max(-1.0, min(1.0, cosine)) if math.isfinite(cosine) else "embedder: not a finite vector"


def _encode(embedder: Embedder, texts: Sequence[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Vectors by text, and the texts that the embedder failed on with the reason."""
    if not texts:
        return {}, {}
    try:
        return dict(zip(texts, embedder.encode(texts), strict=True)), {}
    except H2HTalkError:  # the embedder cannot work at all: the user must mend it; no item failed
        raise
    except Exception as error:  # noqa: BLE001 - seen as `unscored` on the items whose text fails on its own
        if len(texts) == 1:
            return {}, {texts[0]: f"embedder: {type(error).__name__}: {error}"}
    vectors: dict[str, np.ndarray] = {}
    failed: dict[str, str] = {}
    half = len(texts) // 2
    for part in (texts[:half], texts[half:]):
        found, lost = _encode(embedder, part)
        vectors |= found
        failed |= lost
    return vectors, failed
