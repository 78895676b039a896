"""The bundled classifier of offensive language: a linear model over hashed n-grams, read with numpy alone.

A text is folded and cut into windows of the length that the model learned from; a window's features are the distinct
n-grams of its characters (and of its words in English), hashed into a fixed number of buckets. Each bucket has a scale
(how differently the two classes use it: the log-count ratio of Wang and Manning, 2012, "Baselines and Bigrams") and a
learned weight. A text is as offensive as its worst window, so that a long kind message does not hide a short cruel one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from h2htalk.curation.safety_folding import fold
from h2htalk.data.dialogue import Language
from h2htalk.errors import DataError

DATA = Path(__file__).parent / "safety_data"
MANIFEST = "manifest.json"
# A multiplier without structure in its bits (2^64 divided by the golden ratio), as in Fibonacci hashing.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ENDS = "\n。！？!?；;.…"
_WINDOWS_AT_ONCE = 512

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Features:
    """Which n-grams a model looks at.

    Attributes:
        bits: buckets are 2 ** bits.
        characters: shortest and longest n-gram of characters.
        words: the same of words; (0, 0) for none.
        spaces: whether spaces count; Chinese is read without them.
        window: characters a window holds at most.
    """

    bits: int
    characters: tuple[int, int]
    words: tuple[int, int]
    spaces: bool
    window: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Features:
        characters, words = (tuple(map(int, values[name])) for name in ("characters", "words"))
        return cls(int(values["bits"]), characters, words, bool(values["spaces"]), int(values["window"]))  # type: ignore[arg-type]

    def windows(self, text: str) -> list[str]:
        """A text, folded, in windows that end with a sentence where they can; never none, linear in the text."""
        folded = " ".join(fold(text).split()) if self.spaces else "".join(fold(text).split())
        return list(_windows(folded, self.window))

    def buckets(self, windows: Sequence[str]) -> tuple[Array, Array]:
        """The distinct features of windows: for each the window it is of, and its bucket; both int64, sorted."""
        marked = [f"\x02{window}\x03" for window in windows]
        characters = np.frombuffer("".join(marked).encode("utf-32-le"), np.uint32).astype(np.uint64)
        owners = np.repeat(np.arange(len(windows)), [len(window) for window in marked])
        found = [_ngrams(characters, owners, self.characters, self.bits, seed=1)]
        if self.words[1]:
            words = [[crc32(word.encode()) for word in _WORD.findall(window)] for window in windows]
            hashes = np.array([code for line in words for code in (2, *line, 3)], np.uint64)
            owners = np.repeat(np.arange(len(windows)), [len(line) + 2 for line in words])
            found.append(_ngrams(hashes, owners, self.words, self.bits, seed=2))
        distinct = np.unique(np.concatenate(found))
        return distinct >> self.bits, distinct & ((1 << self.bits) - 1)


@dataclass(frozen=True, slots=True)
class Classifier:
    """A loaded model of one language.

    Attributes:
        language: which.
        low: below it a text counts as inoffensive.
        high: from it on, as offensive; between the two it is undecided.
        version: of the weights, for a stage's settings.
    """

    language: Language
    low: float
    high: float
    version: str
    features: Features
    scales: Array = field(repr=False)
    weights: Array = field(repr=False)
    bias: float
    slope: float
    offset: float

    def scores(self, texts: Sequence[str]) -> list[float]:
        """How likely each text is offensive: P in [0, 1], calibrated on COLD's and our own texts (Platt scaling).

        A text that folds to nothing is 0. The order of the texts and what else is asked along with them change
        nothing. Linear in the texts' length.
        """
        windows: list[str] = []
        owners: list[int] = []
        for place, text in enumerate(texts):
            cut = [window for window in self.features.windows(text) if window]
            windows += cut
            owners += [place] * len(cut)
        margins = [
            margin
            for start in range(0, len(windows), _WINDOWS_AT_ONCE)
            for margin in self.margins(windows[start : start + _WINDOWS_AT_ONCE])
        ]
        worst = [float("-inf")] * len(texts)
        for place, margin in zip(owners, margins, strict=True):
            worst[place] = max(worst[place], margin)
        return [self._probability(margin) for margin in worst]

    def margins(self, windows: Sequence[str]) -> list[float]:
        """The linear score of each window, which must be cut by `features.windows`; 0 is the learned border."""
        owners, buckets = self.features.buckets(windows)
        scales = self.scales[buckets].astype(np.float64)
        sums = np.bincount(owners, self.weights[buckets].astype(np.float64), len(windows))
        norms = np.sqrt(np.bincount(owners, scales * scales, len(windows)))
        return [float(value) for value in sums / np.maximum(norms, 1.0) + self.bias]

    def _probability(self, margin: float) -> float:
        return 1.0 / (1.0 + math.exp(-self.slope * margin - self.offset)) if margin > float("-inf") else 0.0


@lru_cache(maxsize=4)
def load(language: Language) -> Classifier:
    """The bundled classifier of a language, read once a process.

    Raises:
        DataError: its files are missing or damaged.
    """
    return read(DATA, language)


def read(folder: Path, language: Language) -> Classifier:
    """A classifier of a folder that `tools/train_safety.py` wrote; raises DataError as `load`."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))[language]
        with np.load(folder / f"offensive_{language}.npz", allow_pickle=False) as arrays:
            scales, weights = arrays["scales"], arrays["weights"]
        features = Features.from_dict(manifest["features"])
        if not scales.shape == weights.shape == (1 << features.bits,):
            raise ValueError(f"{scales.shape} scales and {weights.shape} weights")
        model = manifest["model"]
        return Classifier(
            language=language,
            low=float(manifest["low"]),
            high=float(manifest["high"]),
            version=str(manifest["version"]),
            features=features,
            scales=scales,
            weights=weights.astype(np.float32) * float(model["step"]),
            bias=float(model["bias"]),
            slope=float(model["slope"]),
            offset=float(model["offset"]),
        )
    except (OSError, KeyError, TypeError, ValueError, BadZipFile) as error:
        raise DataError(
            f"{folder}: the offensive-language model for {language!r} cannot be read ({error}); install h2htalk again"
        ) from error


def _windows(folded: str, limit: int) -> Iterator[str]:
    """Windows of at most `limit` characters; each looks back for an end of a sentence in its second half only."""
    start = 0
    while len(folded) - start > limit:
        stretch = folded[start : start + limit]
        cut = 1 + max(stretch.rfind(end, limit // 2) for end in _ENDS)
        if not cut:
            cut = 1 + stretch.rfind(" ", limit // 2) or limit
        yield stretch[:cut]
        start += cut
    yield folded[start:]


def _ngrams(units: Array, owners: Array, lengths: tuple[int, int], bits: int, seed: int) -> Array:
    """Hashes of all n-grams that lie within one owner: `owner * 2 ** bits + bucket`, int64.

    Args:
        units: characters or words as uint64, of all owners one after another.
        owners: whose each unit is, ascending.
        lengths: shortest and longest n.
        bits: buckets are 2 ** bits.
        seed: keeps kinds of n-grams apart.
    """
    found = []
    rolling = np.full(len(units), np.uint64(seed))
    for length in range(1, lengths[1] + 1):
        count = len(units) - length + 1
        if count <= 0:
            break
        rolling = (rolling[:count] ^ units[length - 1 :]) * _MULTIPLIER
        rolling ^= rolling >> np.uint64(29)
        if length < lengths[0]:
            continue
        inside = owners[:count] == owners[length - 1 :]
        buckets = ((rolling[inside] + np.uint64(length)) * _MULTIPLIER) >> np.uint64(64 - bits)
        found.append((owners[:count][inside] << bits) | buckets.astype(np.int64))
    return np.concatenate(found) if found else np.zeros(0, np.int64)
