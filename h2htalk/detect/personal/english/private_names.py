"""Whether a name in English chat is a private person's, by a linear classifier over the words around it.

The same name may be a neighbour's or a singer's, and the same word a name or none ("hope", "will", a typing error):
only what stands around it tells. The classifier reads the words beside the candidate with their places, the words of
its message and of the messages before and after, and how it is written; never the candidate itself.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from h2htalk.detect.hashed import SMOOTH, NgramClassifier, load_classifier
from h2htalk.detect.personal.english.persons import (
    WORD_NAME,
    Tokens,
    classes_of,
    folded,
    public_names,
    words,
)

FOLDER = "personal/english/private_names"
BITS = 16
_BESIDE = 3  # words on either side that are read with their distance
_AROUND = 12  # words on either side that are read without it
_MESSAGES = 3  # messages on either side
_MARKS = {
    ",": "C",
    ".": "D",
    "?": "Q",
    "!": "Q",
    "\n": "N",
    '"': "U",
    "'": "U",
    ":": "O",
    "-": "H",
    "/": "H",
    "&": "A",
}


class Candidate(NamedTuple):
    """Words that may be a private name: the first, the one after the last, and for an organisation its end, and whether
    the words before it say that somebody works or is treated there."""

    first: int
    end: int
    kind: str = ""  # "" for a person
    stop: int = 0
    framed: bool = False


@lru_cache(maxsize=1 << 17)
def bucket(feature: str) -> int:
    """The place of a feature's weight."""
    return zlib.crc32(feature.encode()) & ((1 << BITS) - 1)


def log_odds(
    messages: Sequence[Tokens], candidates: Sequence[Sequence[Candidate]]
) -> list[list[float]]:
    """The log-odds that each candidate of each message of a dialogue is private."""
    model = load_classifier(FOLDER, "en")
    bias = model.manifest["bias"]
    log_odds_of_messages = []
    for tokens, near, of_message in zip(messages, features_near(messages), candidates, strict=True):
        total = _sum_of_weights(model, near)
        values = []
        for candidate in of_message:
            features = features_of(tokens, candidate)
            size = len(features) + len(near) + SMOOTH
            score = (_sum_of_weights(model, features) + total) / math.sqrt(size)
            values.append(round(score + bias, 6))
        log_odds_of_messages.append(values)
    return log_odds_of_messages


def _sum_of_weights(model: NgramClassifier, features: set[str]) -> float:
    buckets = np.fromiter(map(bucket, features), np.int64)
    return float(model.weights(buckets).sum())


@cache
def public_parts() -> tuple[frozenset[str], frozenset[str]]:
    """The first and the last words of the names of public people that have several."""
    names = [name.split() for name in public_names() if " " in name]
    first_words = frozenset(folded(name[0]) for name in names)
    last_words = frozenset(folded(name[-1]) for name in names)
    return first_words, last_words


def features_near(messages: Sequence[Tokens]) -> list[set[str]]:
    """For each message the features of the words of the messages before and after it."""
    bags = []
    for message in messages:
        bags.append({f"d{word}" for word in message.words if len(word) > 2})
    near = []
    for n in range(len(bags)):
        before = bags[max(0, n - _MESSAGES) : n]
        after = bags[n + 1 : n + 1 + _MESSAGES]
        near.append(set().union(*before, *after))
    return near


def features_of(tokens: Tokens, candidate: Candidate) -> set[str]:
    """The features of a candidate and of what stands beside it."""
    features = _features_of_form(tokens, candidate)
    index = candidate.first
    end = candidate.end
    word_kind = tokens.kinds[index]
    shape = tokens.shapes[index]
    before = _beside(tokens, index, -1)
    after = _beside(tokens, end - 1, 1)
    for distance in range(_BESIDE):
        features |= {f"b{distance}{before[distance]}", f"a{distance}{after[distance]}"}
        features |= {f"B{distance}{name}" for name in classes_of(before[distance])}
        features |= {f"A{distance}{name}" for name in classes_of(after[distance])}
    features |= {f"{word_kind}{shape}B{name}" for name in classes_of(before[0])}
    features |= {f"{word_kind}{shape}A{name}" for name in classes_of(after[0])}
    for distance in range(2):
        features.add(f"bs{distance}{before[distance][:4]}")
        features.add(f"as{distance}{after[distance][:4]}")
        features.add(f"ae{distance}{after[distance][-2:]}")
    features.add(f"x{before[1]} {before[0]}")
    features.add(f"y{after[0]} {after[1]}")
    features.add(f"z{before[0]} {after[0]}")
    features.add(f"q{before[2]} {before[1]} {before[0]}")
    features |= {f"m{word}" for word in tokens.words[max(0, index - _AROUND) : index]}
    features |= {f"m{word}" for word in tokens.words[end : end + _AROUND]}
    return features


def _features_of_form(tokens: Tokens, candidate: Candidate) -> set[str]:
    """The features of how a candidate is written, of the lists that hold its first word, and of the marks around it."""
    lists = words()
    index = candidate.first
    end = candidate.end
    kind = candidate.kind
    word = tokens.words[index]
    word_kind = tokens.kinds[index]
    shape = tokens.shapes[index]
    cased = int(tokens.cased)
    opens = int(tokens.opens[index])
    written = f"{kind}k{word_kind}s{shape}c{cased}o{opens}"
    is_word = int(word in lists.words)
    is_surname = int(word in lists.surnames)
    is_place = int(word in lists.hints["places"])
    listed = f"w{is_word}n{is_surname}p{is_place}"
    stop = tokens.ends[end - 1]
    possessive = int(tokens.possessive[end - 1])
    first_words, last_words = public_parts()
    is_first = int(word in first_words)
    is_last = int(word in last_words)
    features = {written, listed, written + listed}
    features.add(f"len{min(len(word), 6)}")
    features.add(f"{kind}n{min(end - index, 3)}{word_kind}{shape}")
    features.add(f"own{possessive}")
    features.add(f"after{_mark(tokens.text[stop : stop + 3])}")
    features.add(f"before{_mark(tokens.gap(index))}")
    features.add(f"long{int(len(tokens) > 30)}")
    features.add(f"u{is_first}{is_last}k{word_kind}")
    if not word_kind:
        features.add(f"end{word[-3:]}")
        features.add(f"end{word[-2:]}")
    if word_kind == WORD_NAME:
        features.add(f"i{shape}{word}")
    return features


def _beside(tokens: Tokens, index: int, step: int) -> list[str]:
    """The words on one side of a word up to the end of its sentence, empty beyond."""
    beside = list[str]()
    edge = index + 1 if step > 0 else index
    index += step
    while len(beside) < _BESIDE and 0 <= index < len(tokens) and not tokens.opens[edge]:
        beside.append(tokens.words[index])
        edge += step
        index += step
    while len(beside) < _BESIDE:
        beside.append("")
    return beside


def _mark(gap: str) -> str:
    """The kind of the first mark of what stands beside a word."""
    marks = gap.strip(" ")
    return _MARKS.get(marks[:1], "X") if marks else "S"
