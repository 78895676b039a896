"""Word lists as they are written and as they are asked: classes of words, rules over classes, hidden words.

Everything is linear in the text: words are literals in one compiled expression, patterns are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any
from zlib import crc32

from h2htalk.curation.safety.text_folding import fold

HASH_DIGITS = 24
# What people put between the characters of a word to hide it.
_BETWEEN = r"[\s*.·_\-]{0,2}"
_LATIN_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# Between two words of a phrase: a space, a line's end and its indent, a comma.
_GAP = 3

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """Words of all these classes within so many characters (from start to start) are evidence of a category.

    `unless`: classes that, met anywhere in the text, take the rule back (a report of abuse is not an erotic text).
    """

    category: str
    score: float
    all: tuple[str, ...]
    within: int
    unless: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The lists of a language, compiled.

    Attributes:
        words: at each place, the longest Chinese word that starts there.
        phrases: Latin words one after another, by their first.
        classes: of each word as `bare` leaves it.
        patterns: expressions beside the words, each with its class.
        rules: what the classes mean.
        hashes: of hidden words, to their class.
        sieve: CRC-32 of the hidden words modulo 4,096: spares a SHA-256 of nearly every other word.
        lengths: of the hidden words that are Chinese; Latin ones are compared as whole words.
        everyday: phrases of every day that hold a word of the lists (taking out the rubbish).
    """

    words: re.Pattern[str]
    phrases: Mapping[str, tuple[tuple[str, ...], ...]]
    classes: Mapping[str, tuple[str, ...]]
    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    rules: tuple[Rule, ...]
    hashes: Mapping[str, str]
    sieve: frozenset[int]
    lengths: tuple[int, ...]
    everyday: re.Pattern[str]

    def hits(self, folded: str) -> dict[str, list[Place]]:
        """Where words of each class stand in a folded text, in order."""
        found: dict[str, set[Place]] = {}
        latin = [(match[0].replace("’", "'"), match.span()) for match in _LATIN_WORD.finditer(folded)]
        written = ((match[1], match.span(1)) for match in self.words.finditer(folded))
        for word, place in (*written, *self._phrases(latin)):
            for name in self.classes[bare(word)]:
                found.setdefault(name, set()).add(place)
        for name, pattern in self.patterns:
            found.setdefault(name, set()).update(match.span() for match in pattern.finditer(folded))
        for word, place in self._candidates(folded, latin):
            if crc32(word.encode()) % 4096 in self.sieve and hashed(word) in self.hashes:
                found.setdefault(self.hashes[hashed(word)], set()).add(place)
        return {name: sorted(places) for name, places in found.items() if places}

    def _phrases(self, latin: Sequence[tuple[str, Place]]) -> Iterator[tuple[str, Place]]:
        for at, (word, (start, _)) in enumerate(latin):
            for phrase in self.phrases.get(word, ()):
                stretch = latin[at : at + len(phrase)]
                close = all(b[1][0] - a[1][1] <= _GAP for a, b in pairwise(stretch))
                if close and tuple(other for other, _ in stretch) == phrase:
                    yield " ".join(phrase), (start, stretch[-1][1][1])

    def _candidates(self, folded: str, latin: Sequence[tuple[str, Place]]) -> Iterator[tuple[str, Place]]:
        """What could be a hidden word: Latin words, and every stretch of a length that a Chinese one has."""
        yield from latin
        for length in self.lengths:
            yield from (
                (folded[start : start + length], (start, start + length))
                for start in range(len(folded) - length + 1)
            )


def compiled(lists: Mapping[str, Any]) -> Lexicon:
    """Lists as a TOML file holds them: `words` (class to words), `patterns`, `hidden` (class to hashes), `rules`,
    `everyday` (phrases).

    A Latin word stands alone: each form of it is an entry. Hidden entries are what `hidden_entry` makes of a word.
    """
    classes: dict[str, tuple[str, ...]] = {}
    for name, words in lists["words"].items():
        for word in words:
            key = bare(fold(word))
            classes[key] = (*classes.get(key, ()), name)
    written = {fold(word) for words in lists["words"].values() for word in words}
    phrases: dict[str, tuple[tuple[str, ...], ...]] = {}
    for word in sorted(word for word in written if word.isascii()):
        tokens = tuple(_LATIN_WORD.findall(word))
        phrases[tokens[0]] = (*phrases.get(tokens[0], ()), tokens)
    chinese = sorted((word for word in written if not word.isascii()), key=lambda word: (-len(word), word))
    firsts = "".join(sorted({re.escape(word[0]) for word in chinese}))
    # Without Chinese words: an expression that matches nowhere.
    expression = f"(?=[{firsts}])(?=({'|'.join(map(_spaced, chinese))}))" if chinese else "(?!)"
    hidden = [
        (name, *entry.split(":")) for name, entries in lists.get("hidden", {}).items() for entry in entries
    ]
    rules = [
        Rule(
            row["category"],
            row["score"],
            tuple(row["all"]),
            row.get("within", 0),
            tuple(row.get("unless", ())),
        )
        for row in lists["rules"]
    ]
    return Lexicon(
        words=re.compile(expression),
        phrases=phrases,
        classes=classes,
        patterns=tuple(
            (name, re.compile(pattern))
            for name, patterns in lists.get("patterns", {}).items()
            for pattern in patterns
        ),
        rules=tuple(rules),
        hashes={code: name for name, _, code, _ in hidden},
        sieve=frozenset(int(bucket) for _, bucket, _, _ in hidden),
        lengths=tuple(sorted({int(length) for _, _, _, length in hidden if int(length)})),
        everyday=re.compile("|".join(map(re.escape, lists.get("everyday", ()))) or "(?!)"),
    )


def hidden_entry(word: str) -> str:
    """A word as a list hides it: `crc32 modulo 4096:hash:length`; length 0 where whole words are compared."""
    folded = bare(fold(word))
    return f"{crc32(folded.encode()) % 4096}:{hashed(folded)}:{0 if folded.isascii() else len(folded)}"


def hashed(folded: str) -> str:
    """The first digits of a folded word's SHA-256."""
    return sha256(folded.encode()).hexdigest()[:HASH_DIGITS]


def bare(folded: str) -> str:
    """A match without what may stand between its characters."""
    return re.sub(r"[\s*.·_\-]", "", folded)


def _spaced(folded: str) -> str:
    """A Chinese word as an expression, with room between its characters."""
    return _BETWEEN.join(re.escape(character) for character in folded if not character.isspace())
