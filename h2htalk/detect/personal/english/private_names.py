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

from h2htalk.detect.hashed import SMOOTH, load_classifier
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
_BESIDE, _AROUND, _MESSAGES = (
    3,
    12,
    3,
)  # words on either side with their place, and without; messages on either side
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
    found = []
    for tokens, near, own in zip(messages, features_near(messages), candidates, strict=True):
        total = model.weights(np.fromiter(map(bucket, near), np.int64)).sum()
        values = []
        for one in own:
            features = np.fromiter(map(bucket, features_of(tokens, one)), np.int64)
            size = len(features) + len(near) + SMOOTH
            score = (
                float(model.weights(features).sum() + total) / math.sqrt(size)
                + model.manifest["bias"]
            )
            values.append(round(score, 6))
        found.append(values)
    return found


@cache
def public_parts() -> tuple[frozenset[str], frozenset[str]]:
    """The first and the last words of the names of public people that have several."""
    names = [name.split() for name in public_names() if " " in name]
    return frozenset(folded(name[0]) for name in names), frozenset(
        folded(name[-1]) for name in names
    )


def features_near(messages: Sequence[Tokens]) -> list[set[str]]:
    """For each message the features of the words of the messages before and after it."""
    bags = [{f"d{word}" for word in message.words if len(word) > 2} for message in messages]
    return [
        set().union(*bags[max(0, n - _MESSAGES) : n], *bags[n + 1 : n + 1 + _MESSAGES])
        for n in range(len(bags))
    ]


def features_of(tokens: Tokens, one: Candidate) -> set[str]:
    """The features of a candidate and of what stands beside it."""
    lists = words()
    index = one.first
    end = one.end
    kind = one.kind
    word = tokens.words[index]
    given = tokens.kinds[index]
    shape = tokens.shapes[index]
    written = f"{kind}k{given}s{shape}c{int(tokens.cased)}o{int(tokens.opens[index])}"
    known = f"w{int(word in lists.words)}n{int(word in lists.surnames)}p{int(word in lists.hints['places'])}"
    found = {
        written,
        known,
        written + known,
        f"len{min(len(word), 6)}",
        f"{kind}n{min(end - index, 3)}{given}{shape}",
    }
    stop = tokens.ends[end - 1]
    found |= {
        f"own{int(tokens.possessive[end - 1])}",
        f"after{_mark(tokens.text[stop : stop + 3])}",
    }
    found |= {f"before{_mark(tokens.gap(index))}", f"long{int(len(tokens) > 30)}"}
    if not given:
        found |= {f"end{word[-3:]}", f"end{word[-2:]}"}
    first, last = public_parts()
    found.add(f"u{int(word in first)}{int(word in last)}k{given}")
    if given == WORD_NAME:
        found.add(f"i{shape}{word}")
    before = _beside(tokens, index, -1)
    after = _beside(tokens, end - 1, 1)
    for place in range(_BESIDE):
        found |= {f"b{place}{before[place]}", f"a{place}{after[place]}"}
        found |= {f"B{place}{name}" for name in classes_of(before[place])}
        found |= {f"A{place}{name}" for name in classes_of(after[place])}
    found |= {f"{given}{shape}B{name}" for name in classes_of(before[0])}
    found |= {f"{given}{shape}A{name}" for name in classes_of(after[0])}
    for place in range(2):
        found |= {
            f"bs{place}{before[place][:4]}",
            f"as{place}{after[place][:4]}",
            f"ae{place}{after[place][-2:]}",
        }
    found |= {f"x{before[1]} {before[0]}", f"y{after[0]} {after[1]}", f"z{before[0]} {after[0]}"}
    found.add(f"q{before[2]} {before[1]} {before[0]}")
    around = {*tokens.words[max(0, index - _AROUND) : index], *tokens.words[end : end + _AROUND]}
    return found | {f"m{other}" for other in around}


def _beside(tokens: Tokens, index: int, step: int) -> list[str]:
    """The words on one side of a word up to the end of its sentence, empty beyond."""
    found = list[str]()
    edge = index + (step > 0)
    index = index + step
    while len(found) < _BESIDE and 0 <= index < len(tokens) and not tokens.opens[edge]:
        found.append(tokens.words[index])
        edge = edge + step
        index = index + step
    return found + [""] * (_BESIDE - len(found))


def _mark(gap: str) -> str:
    """The kind of the first mark of what stands beside a word."""
    return _MARKS.get(gap.strip(" ")[:1], "X") if gap.strip(" ") else "S"
