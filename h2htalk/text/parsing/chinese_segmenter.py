"""Chinese word segmentation in the Universal Dependencies style: a linear tagger over characters.

Every character is the Beginning, Middle or End of a word or a word by itself (S). A linear model scores the four from
hashed features of the characters around it, of their types and of the dictionary words that start, end or run here,
and each pair of neighbours; the best sequence is found by Viterbi's algorithm. Weights: an averaged perceptron
(Collins 2002), trained by `tools/train_pipelines.py`.

The dictionary is kept as 32-bit hashes: 350,000 words in 1 MB, loaded in milliseconds (as strings: a second, 60 MB).
They answer whether a stretch of characters is a word, and of which class. One that is not a word matches one with a
probability of 8 in 100,000, in training as in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.uint64]

FEATURE_BITS = 20
BEGIN, MIDDLE, END, SINGLE = range(4)
# Longer stretches without white space are cut first, to bound memory; no sentence is so long.
LONGEST_STRETCH = 5000

# An emoji is one word with its skin tone, variation selector and joined emoji.
_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55]"
_STRETCH = re.compile(
    rf"\s+|{_EMOJI}(?:[\uFE00-\uFE0F\U0001F3FB-\U0001F3FF\u20E3]|\u200D{_EMOJI})*"
    rf"|(?:(?!{_EMOJI})\S){{1,{LONGEST_STRETCH}}}"
)
_FIRST_EMOJI = re.compile(_EMOJI)
_NUMERALS = "零一二三四五六七八九十百千万亿两几"
_NEVER = -1e9
# Character types, as the features see them.
_OTHER, _HAN, _LATIN, _NUMBER = range(4)
LONGEST = 5  # characters of a word that the segmenter asks for

_STEP = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)
_TOP = np.uint64(32)
_ZERO = np.uint64(0)
_EIGHT = np.uint64(8)


def code_points(text: str) -> Codes:
    """Return the text's code points, one a character."""
    encoded = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(encoded, dtype=np.uint32).astype(np.uint64)


def mixed(values: Codes) -> Codes:
    """Spread each value over all 64 bits (the highest are the best)."""
    spread = (values ^ (values >> _FOLD)) * _MIX
    return (spread ^ (spread >> _FOLD)) * _MIX


def window_hashes(codes: Codes, longest: int) -> list[NDArray[np.uint32]]:
    """Hash all stretches of each length 1..`longest`, by where they start."""
    hashes = []
    sums = np.zeros(len(codes), dtype=np.uint64)
    for length in range(1, min(longest, len(codes)) + 1):
        sums = sums[: len(codes) - length + 1] * _STEP + codes[length - 1 :]
        hashes.append((mixed(sums) >> _TOP).astype(np.uint32))
    return hashes


def word_hash(word: str) -> np.uint32:
    last: np.uint32 = window_hashes(code_points(word), len(word))[-1][0]
    return last


@dataclass(frozen=True, slots=True)
class WordClassLexicon:
    """Sorted hashes of the words, each with the number of its class."""

    hashes: NDArray[np.uint32]
    classes: NDArray[np.uint8]
    names: tuple[str, ...]

    @classmethod
    def build(cls, words: Iterable[tuple[str, str]]) -> WordClassLexicon:
        """Build from (word, class) pairs; of two words with one hash the first in order of spelling stays."""
        entries: dict[int, str] = {}
        for word, name in sorted(words):
            entries.setdefault(int(word_hash(word)), name)
        names = tuple(sorted(set(entries.values())))
        hashes = sorted(entries)
        classes = [names.index(entries[word]) for word in hashes]
        return cls(
            hashes=np.array(hashes, dtype=np.uint32),
            classes=np.array(classes, dtype=np.uint8),
            names=names,
        )

    def save(self, path: Path) -> None:
        """Store differences instead of hashes: they compress to half the size."""
        steps = np.diff(self.hashes, prepend=np.uint32(0)).astype(np.uint32)
        columns = steps.view(np.uint8).reshape(-1, 4).T.copy()
        np.savez_compressed(path, steps=columns, classes=self.classes, names=np.array(self.names))

    @classmethod
    def load(cls, path: Path) -> WordClassLexicon:
        with np.load(path) as stored:
            steps = stored["steps"].T.copy().view(np.uint32).ravel()
            return cls(
                hashes=np.cumsum(steps, dtype=np.uint32),
                classes=stored["classes"],
                names=tuple(map(str, stored["names"])),
            )

    def find(self, hashes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], Codes]:
        """Return which hashes are words, and the number of each one's class, counted from 1."""
        if not len(self.hashes):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
        entries = np.searchsorted(self.hashes, hashes).clip(max=len(self.hashes) - 1)
        words = np.flatnonzero(self.hashes[entries] == hashes)
        return words, self.classes[entries[words]].astype(np.uint64) + np.uint64(1)

    def class_of(self, word: str) -> str | None:
        """Return the word's class (jieba's tags: n, v, a, nr ...), or None for an unlisted word."""
        if not word:
            return None
        sought = word_hash(word)
        entry = int(np.searchsorted(self.hashes, sought))
        is_listed = entry < len(self.hashes) and self.hashes[entry] == sought
        return self.names[self.classes[entry]] if is_listed else None


@dataclass(frozen=True, slots=True)
class Segmenter:
    """`weights` has a row of four scores (B, M, E, S) a feature, `transitions` one for each pair in order."""

    weights: NDArray[np.float32]
    transitions: NDArray[np.float32]
    lexicon: WordClassLexicon

    @classmethod
    def load(cls, folder: Path) -> Segmenter:
        with np.load(folder / "weights.npz") as stored:
            weights = np.zeros((1 << FEATURE_BITS, 4), dtype=np.float32)
            weights[stored["rows"]] = stored["weights"]
            transitions = stored["transitions"].astype(np.float32)
        return cls(weights, transitions, WordClassLexicon.load(folder / "lexicon.npz"))

    def cut(self, text: str) -> list[str]:
        """Cut a text into words; each run of white space is an item. Joined, they are the text."""
        words: list[str] = []
        for stretch in _STRETCH.findall(text):
            # A single character is a word whatever its scores; scoring one takes 0.3 ms.
            if len(stretch) == 1 or stretch[0].isspace() or _FIRST_EMOJI.match(stretch):
                words.append(stretch)
            else:
                words += self._cut_stretch(stretch)
        return words

    def _cut_stretch(self, text: str) -> list[str]:
        codes = code_points(text)
        scores = self.weights[features(codes, self.lexicon)].sum(axis=1)
        tags = best_tags(scores, self.transitions, continues_word(codes))
        words = []
        start = 0
        for end in word_ends(tags):
            words.append(text[start:end])
            start = end
        return words


def character_types(codes: Codes) -> NDArray[np.uint64]:
    types = np.full(len(codes), _OTHER, dtype=np.uint64)
    types[(codes >= 0x4E00) & (codes <= 0x9FFF)] = _HAN
    lower = codes | np.uint64(0x20)
    types[(lower >= ord("a")) & (lower <= ord("z"))] = _LATIN
    types[(codes >= ord("0")) & (codes <= ord("9"))] = _NUMBER
    types[(codes >= 0xFF10) & (codes <= 0xFF19)] = _NUMBER
    types[np.isin(codes, code_points(_NUMERALS))] = _NUMBER
    return types


def continues_word(codes: Codes) -> NDArray[np.bool_]:
    """Whether a character belongs to the one before it whatever the scores: in Latin words, numbers, accents."""
    lower = codes | np.uint64(0x20)
    latin = ((lower >= ord("a")) & (lower <= ord("z"))) | ((codes >= 0xC0) & (codes <= 0x24F))
    digit = (codes >= ord("0")) & (codes <= ord("9"))
    inside = (codes >= 0x300) & (codes <= 0x36F)
    inside[1:] |= (latin[1:] & latin[:-1]) | (digit[1:] & digit[:-1])
    inside[:1] = False
    return inside


def features(codes: Codes, lexicon: WordClassLexicon) -> NDArray[np.int64]:
    """Return the rows of `weights` to add up for each character: shape (characters, features)."""
    count = len(codes)
    edge = np.full(2, ord("#"), np.uint64)
    padded = np.concatenate((edge, codes, edge))
    before2, before, current, after, after2 = (
        padded[offset : offset + count] for offset in range(5)
    )
    types = character_types(padded)
    around = types[1:-3] * np.uint64(16) + types[2:-2] * np.uint64(4) + types[3:-1]
    repeated = _packed(before == current, current == after, before2 == current, current == after2)
    words = dictionary_words(codes, lexicon)
    none = np.zeros(1, dtype=np.uint64)
    ends_before = np.append(none, words.ends[:-1])
    starts_after = np.append(words.starts[1:], none)
    class_before = np.append(none, words.end_classes[:-1])
    class_after = np.append(words.start_classes[1:], none)
    lengths = words.starts * _EIGHT + words.ends
    templates: tuple[tuple[Codes, ...], ...] = (
        (current,),
        (before,),
        (after,),
        (before2,),
        (after2,),
        (before, current),
        (current, after),
        (before2, before),
        (after, after2),
        (before2, before, current),
        (before, current, after),
        (current, after, after2),
        (before, after),
        (repeated,),
        (around,),
        (lengths * _EIGHT + words.runs,),
        (words.starts, current),
        (words.ends, current),
        (lengths, around),
        (lengths, starts_after * _EIGHT + ends_before),
        (words.start_classes, words.starts),
        (words.end_classes, words.ends),
        (words.start_classes, words.end_classes, lengths),
        (class_before, words.start_classes, ends_before * _EIGHT + words.starts),
        (words.end_classes, class_after, words.ends * _EIGHT + starts_after),
    )
    rows = [_rows(number, *values) for number, values in enumerate(templates)]
    return np.stack(rows, axis=1)


def _packed(*conditions: NDArray[np.bool_]) -> Codes:
    """Pack conditions into the bits of a number, the first one into the lowest."""
    packed = np.zeros(len(conditions[0]), dtype=np.uint64)
    for bit, condition in enumerate(conditions):
        packed |= condition.astype(np.uint64) << np.uint64(bit)
    return packed


def _rows(
    template: int, first: Codes, second: Codes | np.uint64 = _ZERO, third: Codes | np.uint64 = _ZERO
) -> NDArray[np.int64]:
    """Hash the values of a template at each character into rows of `weights`."""
    step = np.uint64(0x1000193)
    packed = ((first * step + second) * step + third) * np.uint64(64) + np.uint64(template)
    return (mixed(packed) >> np.uint64(64 - FEATURE_BITS)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class DictionaryWords:
    """The dictionary's words at each character.

    Attributes:
        starts, ends, runs: length (1 to 5) of the longest word that starts at it, ends at it and runs through it.
        start_classes, end_classes: classes of the first two, counted from 1; 0 where there is none.
    """

    starts: Codes
    ends: Codes
    runs: Codes
    start_classes: Codes
    end_classes: Codes


def dictionary_words(codes: Codes, lexicon: WordClassLexicon) -> DictionaryWords:
    words = DictionaryWords(
        starts=np.ones_like(codes),
        ends=np.ones_like(codes),
        runs=np.ones_like(codes),
        start_classes=np.zeros_like(codes),
        end_classes=np.zeros_like(codes),
    )
    for length, hashes in enumerate(window_hashes(codes, LONGEST), start=1):
        starts, classes = lexicon.find(hashes)
        last_characters = starts + (length - 1)
        # Lengths grow, so a later word is the longest.
        words.starts[starts] = length
        words.ends[last_characters] = length
        words.start_classes[starts] = classes
        words.end_classes[last_characters] = classes
        for inner in range(1, length - 1):
            words.runs[starts + inner] = length
    return words


def best_tags(
    scores: NDArray[np.float32], transitions: NDArray[np.float32], inside: NDArray[np.bool_]
) -> list[int]:
    """Find the best-scoring sequence in which a word is B M* E or S; of equals, the one that ends words earlier.

    Args:
        scores: the scores of the four tags, a row a character.
        transitions: what is added for each pair of neighbours, [before, after].
        inside: whether a character must continue the word before it.
    """
    pair = transitions.tolist()
    start, middle, end, single = 0.0, _NEVER, _NEVER, 0.0
    origins: list[tuple[int, int, int, int]] = []
    characters = zip(scores.tolist(), inside.tolist(), strict=True)
    for position, ((b, m, e, s), continues) in enumerate(characters):
        if position == 0:
            start = b
            single = s
            continue
        to_b = END if end + pair[END][BEGIN] > single + pair[SINGLE][BEGIN] else SINGLE
        to_s = END if end + pair[END][SINGLE] > single + pair[SINGLE][SINGLE] else SINGLE
        to_m = BEGIN if start + pair[BEGIN][MIDDLE] >= middle + pair[MIDDLE][MIDDLE] else MIDDLE
        to_e = BEGIN if start + pair[BEGIN][END] >= middle + pair[MIDDLE][END] else MIDDLE
        now = (start, middle, end, single)
        start = _NEVER if continues else now[to_b] + pair[to_b][BEGIN] + b
        middle = now[to_m] + pair[to_m][MIDDLE] + m
        end = now[to_e] + pair[to_e][END] + e
        single = _NEVER if continues else now[to_s] + pair[to_s][SINGLE] + s
        origins.append((to_b, to_m, to_e, to_s))
    tag = END if end > single else SINGLE
    tags = [tag]
    for origin in reversed(origins):
        tag = origin[tag]
        tags.append(tag)
    return tags[::-1]


def word_ends(tags: list[int]) -> list[int]:
    """Return where words end (exclusive)."""
    return [end for end, tag in enumerate(tags, start=1) if tag in (END, SINGLE)]


MODELS = Path(__file__).parents[1] / "models"
_LOADING = Lock()


def bundled_segmenter() -> Segmenter:
    """Return the segmenter that comes with the package, loaded once, also for concurrent threads."""
    with _LOADING:
        return _loaded()


@cache
def _loaded() -> Segmenter:
    return Segmenter.load(MODELS / "zh_segmenter")


def segment(text: str) -> list[str]:
    """Segment a Chinese text into words in the Universal Dependencies style, without white space.

    F 0.945 or more on the GSDSimp test (docs/measurements.md). BLEU's tokens come from `tokens.tokenize`.
    """
    return [word for word in bundled_segmenter().cut(text) if not word.isspace()]
