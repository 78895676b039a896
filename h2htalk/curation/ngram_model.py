"""A small linear model over hashed pieces of a folded text: NumPy alone, weights of one byte, nothing pickled.

A text's features are the hashes of its pieces (runs of characters, words, pairs of words with a gap), each once; its
score is the logistic function of their weights' sum over the root of their number and a little. Long texts are read in
sentences
as well: the surest counts, so that words around a sentence do not thin it out.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from h2htalk.data.dialogue import Language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BITS = 17  # 131,072 weights a model
_RUNS: dict[Language, tuple[int, ...]] = {"en": (4, 5), "zh": (1, 2, 3, 4)}
# Added to the number of a text's features, so that "yes i hope" is not sure of anything.
SMOOTH = 40
_WORD = re.compile(r"[a-z0-9*]+|[^\sa-z0-9]")
_SENTENCE = re.compile(r"[^.!?;]+[.!?;]*")
# A model was not taught on longer texts; what comes after is read in sentences.
WHOLE = 400
_MULTIPLIER = 0x9E3779B97F4A7C15


def features(folded: str, language: Language) -> NDArray[np.int64]:
    """The places of a folded text's pieces, each once, in [0, 2^BITS); empty for an empty text."""
    import numpy as np

    hashes: list[NDArray[np.uint64]] = []
    padded = f" {folded} " if language == "en" else f"\x02{folded}\x03"
    codes = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    hashes += _runs(codes, _RUNS[language], 1)
    if language == "en":
        words = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in _WORD.findall(folded)]
        codes = np.array([2, *words, 3], dtype=np.uint64)
        hashes += _runs(codes, (1, 2, 3), 2)
    hashes += _pairs(codes, 3)
    mixed = np.concatenate(hashes)
    places: NDArray[np.int64] = np.unique((mixed >> np.uint64(64 - BITS)).astype(np.int64))
    return places


def _runs(codes: NDArray[np.uint64], lengths: Sequence[int], kind: int) -> list[NDArray[np.uint64]]:
    """The hashes of every run of these lengths."""
    import numpy as np

    found = []
    running = codes * np.uint64(_MULTIPLIER) + np.uint64(kind)
    for length in range(1, max(lengths) + 1):
        if length > 1:
            if len(codes) < length:
                break
            running = (running[:-1] ^ (running[:-1] >> np.uint64(29))) * np.uint64(
                0xBF58476D1CE4E5B9
            ) + codes[length - 1 :]
        if length in lengths:
            found.append(_mixed(running + np.uint64(length)))
    return found


def _pairs(codes: NDArray[np.uint64], kind: int) -> list[NDArray[np.uint64]]:
    """The hashes of every two with one, and with two, between them."""
    import numpy as np

    found = []
    for gap in (2, 3):
        if len(codes) > gap:
            first = _mixed(codes[:-gap] + np.uint64(kind * 16))
            found.append(_mixed(first ^ (codes[gap:] * np.uint64(_MULTIPLIER))))
    return found


def _mixed(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The last steps of splitmix64: near inputs land far apart."""
    import numpy as np

    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)


def pieces(folded: str) -> list[tuple[int, int]]:
    """Where the readings of a folded text stand: the whole (its first WHOLE characters) and each sentence."""
    if not folded:
        return []
    found = [(0, min(len(folded), WHOLE))]
    sentences = [match.span() for match in _SENTENCE.finditer(folded)]
    if len(sentences) > 1 or len(folded) > WHOLE:
        for start, end in sentences:
            found += [(at, min(at + WHOLE, end)) for at in range(start, end, WHOLE)]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Weights and what their manifest says (thresholds, figures, hashes of the texts learned from)."""

    language: Language
    weights: NDArray[np.float32]
    bias: float
    manifest: Mapping[str, Any]

    def high(self, messages: int = 1) -> float:
        """From here on the score alone is enough, in a dialogue of so many messages: each is a chance to be wrong."""
        thresholds = self.manifest["high"]
        return float(thresholds[min(max(messages, 1), len(thresholds)) - 1])

    def low(self, messages: int = 1) -> float:
        """From here on a second sign is enough."""
        return float(self.manifest["second"]) * self.high(messages)

    def score(self, folded: str) -> tuple[float, int, int]:
        """The surest reading of a folded text, in [0, 1], and where it stands; 0 for an empty text."""
        return max(
            ((self.reading(folded[start:end]), start, end) for start, end in pieces(folded)),
            key=lambda found: (found[0], -found[1]),
            default=(0.0, 0, 0),
        )

    def reading(self, folded: str) -> float:
        """The score of one stretch as it stands."""
        places = features(folded, self.language)
        total = float(self.weights[places].sum()) / math.sqrt(len(places) + SMOOTH) + self.bias
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))


@cache
def load(folder: str, language: Language) -> Model:
    """A model of the package: `load("crisis_data", "en")`."""
    import numpy as np

    home = files("h2htalk.curation") / folder
    manifest = json.loads((home / f"{language}.json").read_text(encoding="utf-8"))
    raw = zlib.decompress((home / f"{language}.weights").read_bytes())
    weights = np.frombuffer(raw, dtype=np.int8).astype(np.float32) * np.float32(manifest["scale"])
    return Model(language, weights, float(manifest["bias"]), manifest)
