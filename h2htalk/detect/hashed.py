"""Linear classifiers over hashed n-grams of a folded text: NumPy alone, weights of one byte, nothing pickled.

A text is split into readings (its sentences, or windows of some length), and the highest score counts, so that a long
kind message does not hide a short cruel one. The features of a reading are its distinct n-grams, hashed into buckets;
the manifest says which n-grams. A bucket has a weight and may have a scale (the log-count ratio of Wang and Manning,
2012, "Baselines and Bigrams"). The score is the logistic function of the sum of weights divided by the length of the
vector of scales.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2htalk.data.languages import Language
from h2htalk.data.records import read_record
from h2htalk.errors import DataError

_Features = tuple[list[tuple[int, int]], NDArray[np.int64], NDArray[np.int64]]

# Without scales: added to the number of features, so that the score of "yes i hope" is moderate.
SMOOTH = 40
_WORDS = {
    "splitmix": re.compile(r"[a-z0-9*]+|[^\sa-z0-9]"),
    "fibonacci": re.compile(r"[^\W_]+(?:'[^\W_]+)?"),
}
_SENTENCE = re.compile(r"[^.!?;]+[.!?;]*")
_CLAUSE = re.compile(r"[^.!?;,:]*[.!?;,:]*")
_ENDS = "\n。！？!?；;.…"
# 2^64 divided by the golden ratio, and the multipliers of splitmix64.
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_TOGETHER, _REMEMBERED = 64, 256  # texts that are read at once, and whose features are kept


class Reading(NamedTuple):
    """The score of a part of a folded text, in [0, 1], and its place."""

    score: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Features:
    """The n-grams that a classifier reads, and the readings of a text."""

    hashing: Literal["splitmix", "fibonacci"]  # weights belong to one way
    bits: int  # there are 2 ** bits buckets
    characters: tuple[int, ...]  # lengths of the n-grams of characters
    words: tuple[int, ...]  # and of words
    gaps: bool  # whether pairs of units (words, or characters) with one or two between them count
    window: int  # characters of a reading at most
    sentences: (
        bool  # whether readings are the start of a text and each sentence; else consecutive windows
    )
    clauses: bool = (
        False  # whether readings are runs of whole clauses, of at most `window` characters
    )

    def readings(self, folded: str) -> list[tuple[int, int]]:
        """The places of the readings of a folded text; none for an empty text. Linear in the text."""
        if self.clauses:
            return list(_runs_of_clauses(folded, self.window))
        if not self.sentences:
            return list(windows(folded, self.window)) if folded else []
        found = [(0, min(len(folded), self.window))] if folded else []
        sentences = [match.span() for match in _SENTENCE.finditer(folded)]
        if len(sentences) > 1 or len(folded) > self.window:
            for start, end in sentences:
                found += [(at, min(at + self.window, end)) for at in range(start, end, self.window)]
        return found

    def keys(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The distinct features of folded texts, sorted: the number of the text times 2 ** bits, plus the bucket."""
        around = "  " if self.words and self.hashing == "splitmix" else "\x02\x03"
        marked = [f"{around[0]}{text}{around[1]}" for text in texts]
        units = np.frombuffer("".join(marked).encode("utf-32-le", "surrogatepass"), "<u4").astype(
            np.uint64
        )
        owners = np.repeat(np.arange(len(texts)), [len(text) for text in marked])
        found = self._runs(units, owners, self.characters, 1)
        if self.words:
            found_words = (_WORDS[self.hashing].findall(text) for text in texts)
            words = [
                [2, *(zlib.crc32(w.encode("utf-8", "surrogatepass")) for w in line), 3]
                for line in found_words
            ]
            units = np.array([code for line in words for code in line], np.uint64)
            owners = np.repeat(np.arange(len(texts)), [len(line) for line in words])
            found += self._runs(units, owners, self.words, 2)
        for gap in (2, 3) if self.gaps else ():
            first = _mixed(units[:-gap] + np.uint64(48))
            found.append(
                self._keys(_mixed(first ^ (units[gap:] * np.uint64(_GOLDEN))), owners, gap)
            )
        keys: NDArray[np.int64] = np.sort(np.concatenate(found))  # `np.unique` takes twice as long
        return keys[np.diff(keys, prepend=-1) > 0]

    def _runs(
        self,
        units: NDArray[np.uint64],
        owners: NDArray[np.int64],
        lengths: Sequence[int],
        kind: int,
    ) -> list[NDArray[np.int64]]:
        """The keys of all n-grams of these lengths within one text; `kind` distinguishes the units."""
        golden = np.uint64(_GOLDEN)
        turn = np.uint64(29)
        found = []
        running = np.full(len(units), np.uint64(kind))
        for length in range(1, min(max(lengths), len(units)) + 1):
            added = units[length - 1 :]
            running = running[: len(added)]
            if self.hashing == "fibonacci":
                running = (running ^ added) * golden
                running ^= running >> turn
                hashes = (running + np.uint64(length)) * golden
            else:
                running = (
                    (running ^ (running >> turn)) * np.uint64(_FIRST) if length > 1 else running
                )
                running = running + (added if length > 1 else added * golden)
                hashes = _mixed(running + np.uint64(length))
            if length in lengths:
                found.append(self._keys(hashes, owners, length - 1))
        return found

    def _keys(
        self, hashes: NDArray[np.uint64], owners: NDArray[np.int64], reach: int
    ) -> NDArray[np.int64]:
        """Keys of the hashes of n-grams that end `reach` units after their start, within one text."""
        first = owners[: len(hashes)]
        keys: NDArray[np.int64] = (first << self.bits) | (
            hashes >> np.uint64(64 - self.bits)
        ).astype(np.int64)
        inside: NDArray[np.int64] = keys[first == owners[reach:]]
        return inside


@dataclass(frozen=True, slots=True, eq=False)
class NgramClassifier:
    """The weights of a language's classifier, and its manifest (thresholds, figures, training texts)."""

    language: Language
    features: Features
    rows: NDArray[
        np.int8
    ]  # weights in units of the manifest's `scale`, and perhaps the scales of buckets
    manifest: Mapping[str, Any]

    def high(self) -> float:
        """The score that is enough by itself."""
        return float(self.manifest["high"])

    def low(self) -> float:
        """The score that is enough with a second sign."""
        return float(self.manifest["low"])

    def weights(self, buckets: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weights of some buckets."""
        weights: NDArray[np.float64] = self.rows[0][buckets] * float(self.manifest["scale"])
        return weights

    def score(self, folded: str) -> Reading:
        """The reading of a folded text with the highest score, the first of equals; 0 for an empty text."""
        if not folded:
            return Reading(0.0, 0, 0)
        spans, owners, buckets = read_features(folded, self.features)
        sums = np.bincount(owners, self.weights(buckets), len(spans))
        if len(self.rows) == 1:
            norms = np.sqrt(np.bincount(owners, minlength=len(spans)) + SMOOTH)
        else:
            squares = self.rows[1].view(np.uint8)[buckets].astype(np.float64) ** 2
            norms = np.sqrt(np.maximum(np.bincount(owners, squares, len(spans)), 1.0))
        # Rounded, so that the last digits, which differ between machines, decide no threshold.
        totals = (sums / norms + self.manifest["bias"]).round(9)
        best = int(totals.argmax())
        return Reading(
            round(1 / (1 + math.exp(-max(-50.0, min(50.0, totals[best])))), 9), *spans[best]
        )


@dataclass(frozen=True, slots=True, eq=False)
class JointClassifier:
    """Several classifiers over the same features: `weights` are buckets times classifiers, in units of the `scales`."""

    features: Features
    weights: NDArray[np.int8]
    manifest: Mapping[str, Any]

    def scores(
        self, owners: NDArray[np.int64], buckets: NDArray[np.int64], count: int
    ) -> NDArray[np.float64]:
        """The scores of `count` readings (rows) by each classifier; `owners` names the reading of each bucket."""
        if not count:
            return np.zeros((0, self.weights.shape[1]))
        sums = np.add.reduceat(
            self.weights[buckets], np.searchsorted(owners, np.arange(count)), dtype=np.int32
        )
        norms = np.sqrt(np.bincount(owners, minlength=count) + SMOOTH)
        scores: NDArray[np.float64] = (
            sums * self.manifest["scales"] / norms[:, None] + self.manifest["biases"]
        )
        return scores


def _read_rows(
    folder: str, language: Language
) -> tuple[Mapping[str, Any], Features, NDArray[np.int8]]:
    """The manifest, the features and the weights (rows times buckets) in a folder of the package. Raises DataError."""
    home = Path(__file__).parent / folder
    try:
        manifest = json.loads((home / f"{language}.json").read_bytes())
        raw = zlib.decompress((home / f"{language}.weights").read_bytes())
    except (OSError, ValueError, zlib.error) as error:
        raise DataError(
            f"{home}: the classifier for language {language!r} cannot be read ({error}); install h2htalk again"
        ) from error
    features = read_record(Features, manifest["features"], f"{home / language}.json")
    return manifest, features, np.frombuffer(raw, np.int8).reshape(-1, 1 << features.bits)


@lru_cache(maxsize=32)
def load_classifier(folder: str, language: Language) -> NgramClassifier:
    """Read a classifier of the package, once a process: `load_classifier("safety/masked_data", "en")`. Raises
    DataError."""
    manifest, features, rows = _read_rows(folder, language)
    return NgramClassifier(language, features, rows, manifest)


@cache
def load_joint(folder: str, language: Language) -> JointClassifier:
    """Read several classifiers that stand in one file, once a process. Raises DataError."""
    manifest, features, rows = _read_rows(folder, language)
    return JointClassifier(features, np.ascontiguousarray(rows.T), manifest)


_READ: dict[tuple[str, Features], _Features] = {}


def read_features(folded: str, features: Features) -> _Features:
    """The readings of a text that is not empty, and the reading and bucket of each feature; several ask for them."""
    if (folded, features) not in _READ:
        read_together([folded], features)
    return _READ[folded, features]


def read_together(texts: Iterable[str], features: Features) -> None:
    """Read texts of a dialogue at once, for `read_features`: one by one takes several times as long."""
    new = [text for text in dict.fromkeys(texts) if text and (text, features) not in _READ]
    for at in range(0, len(new), _TOGETHER):
        several = new[at : at + _TOGETHER]
        if len(_READ) + len(several) > _REMEMBERED:
            _READ.clear()
        spans = [features.readings(text) for text in several]
        keys = features.keys(
            [
                text[start:end]
                for text, own in zip(several, spans, strict=True)
                for start, end in own
            ]
        )
        owners = keys >> features.bits
        buckets = keys & ((1 << features.bits) - 1)
        firsts = np.cumsum([0, *map(len, spans)])
        cuts = np.searchsorted(owners, firsts[1:-1])
        parts = zip(np.split(owners, cuts), np.split(buckets, cuts), strict=True)
        for text, own, first, (reading, bucket) in zip(
            several, spans, firsts[:-1], parts, strict=True
        ):
            _READ[text, features] = own, reading - first, bucket


def windows(folded: str, limit: int) -> Iterator[tuple[int, int]]:
    """Windows of at most `limit` characters that end with a sentence, if one ends in their second half."""
    start = 0
    while len(folded) - start > limit:
        stretch = folded[start : start + limit]
        half = limit // 2
        cut = (
            1 + max(stretch.rfind(end, half) for end in _ENDS)
            or 1 + stretch.rfind(" ", half)
            or limit
        )
        yield start, start + cut
        start += cut
    yield start, len(folded)


def _runs_of_clauses(folded: str, limit: int) -> Iterator[tuple[int, int]]:
    """Runs of whole clauses of at most `limit` characters, one after another; of a longer clause pieces."""
    start = end = 0
    for clause in _CLAUSE.finditer(folded):
        if clause.end() - start > limit and end > start:
            yield start, end
            start = end
        end = clause.end()
        while end - start > limit:
            yield start, start + limit
            start += limit
    if end > start:
        yield start, end


def _mixed(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The last steps of splitmix64, which spread similar inputs."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(_FIRST)
    return (hashes ^ (hashes >> np.uint64(27))) * np.uint64(_SECOND)
