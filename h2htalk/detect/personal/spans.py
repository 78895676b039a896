"""A piece of personal data in a text: where it stands, what it is, and how sure we are; and how a text reads.

People write the same letters, digits and marks in other shapes. `plain` gives one character for one, so places found in
it are places of the text as given. `NormalizedText` also leaves out what nobody sees, and remembers where everything
stood. `ValueShape` is what a value is without its format.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from h2htalk.text.language_data import pattern_table, read_data

_FILE = Path(__file__).with_name("spans.toml")
_RE = pattern_table(_FILE, "patterns")
RECOGNIZERS: dict[str, str] = read_data(_FILE)[
    "recognizers"
]  # by type, in the order of `resolve_overlaps`
TYPES = tuple(RECOGNIZERS)
# Of a span that stays: the name of somebody whom everybody knows (score 1), or may, by what the text talks of (0.5).
FIGURE = "figure"
_RANK = {name: len(TYPES) - place for place, name in enumerate(TYPES)}
_FREE = re.compile(b"\0+")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` to `end` (exclusive) of a text are personal data of a type; `score` in [0, 1]. `found_by` says
    which recogniser found it, where that is known."""

    start: int
    end: int
    type: str
    score: float
    found_by: str = field(default="", compare=False)

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end

    def lies_in(self, longer: Span) -> bool:
        return longer.start <= self.start and self.end <= longer.end


class AddressPart(NamedTuple):
    """Characters `start` to `end` (exclusive) of a text are a part of an address: a street, an estate, a room ..."""

    start: int
    end: int
    kind: str


def resolve_overlaps(spans: Iterable[Span]) -> list[Span]:
    """Spans that do not overlap, in the order of the text. Of two that do, the surer stays, then the longer, then the
    type that stands first in `TYPES`. What sticks out of the other on either side stays marked, so that nothing found
    shows again. Neighbours of one type stay apart ("Tom Ann" are two people)."""
    ordered = sorted(
        spans, key=lambda s: (-s.score, s.start - s.end, -_RANK.get(s.type, 0), s.start)
    )
    taken = bytearray(max((span.end for span in ordered), default=0))
    kept: list[Span] = []
    for span in ordered:
        free = [found.span() for found in _FREE.finditer(taken, span.start, span.end)]
        kept += [replace(span, start=start, end=end) for start, end in free]
        taken[span.start : span.end] = b"\x01" * (span.end - span.start)
    return sorted(kept)


def _read_signs(table: str) -> Iterator[tuple[str, str]]:
    """Each sign of a table of `spans.toml`, and what it reads as."""
    return (
        pair
        for signs, meant in read_data(_FILE)[table].items()
        for pair in zip(signs, meant, strict=True)
    )


_MARKS = {ord(sign): meant for sign, meant in _read_signs("marks")}
# Letters in filled circles and squares, and those that flags are made of.
_MARKS |= {first + i: chr(65 + i) for first in (0x1F150, 0x1F170, 0x1F1E6) for i in range(26)}
HAN_DIGITS = dict(_read_signs("han_digits"))
HAN = "".join(HAN_DIGITS)
DIGITS = str.maketrans(HAN_DIGITS | dict.fromkeys("○◯⭕", "0"))
_LOWER = {ord(c): ord(c) + 32 for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


class _Table(dict[int, str]):
    """What each character reads as, worked out when it is met first: a mark of the tables, its digit, the ASCII
    character that it is a shape of (full-width, circled, bold, of another script), or itself."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        shape = str(unicodedata.digit(char, "")) or unicodedata.normalize("NFKC", char)
        return self.setdefault(
            code, shape if len(shape) == 1 and shape.isascii() and shape.isprintable() else char
        )


_TABLE = _Table(_MARKS)


def plain(text: str) -> str:
    """The text with full-width, circled, bold and foreign digits, letters and marks as plain ones; same length. Dashes
    become `-`, middle dots `·`, tabs and wide spaces a space. Han digits, `。` and quotation marks stay."""
    return text if text.isascii() and "\t" not in text else text.translate(_TABLE)


@dataclass(frozen=True, slots=True)
class NormalizedText:
    """A text as the recognisers read it. All strings but `given`, the text as given, have one length.

    `visible`: the characters as given, without the unseen ones. `plain`: as `plain` reads them. `text`: those in lower
    case. `digits`: Han digits and an `o` among digits as digits too. `offsets`: where each stood in `given`.
    """

    visible: str
    plain: str
    text: str
    digits: str
    offsets: tuple[int, ...]
    given: str

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """A stretch of the reading as places of the text as given, with the unseen characters inside and, of key
        caps, behind it."""
        last = self.offsets[end - 1] + 1
        while last < len(self.given) and _RE["combining"].match(self.given[last]):
            last += 1
        return self.offsets[start], last


def normalize_text(given: str) -> NormalizedText:
    """How a text reads."""
    visible = given
    offsets = tuple(range(len(given)))
    if not given.isascii() and _RE["invisible"].search(given):
        visible = _RE["invisible"].sub("", given)
        offsets = tuple(i for i, char in enumerate(given) if not _RE["invisible"].match(char))
    shown = plain(visible)
    text = shown.translate(_LOWER)
    digits = text if text.isascii() else text.translate(DIGITS)
    for _ in range(
        3 if "o" in digits else 0
    ):  # "1oo4": each round reads the neighbours of the last
        digits = _RE["o_among_digits"].sub(lambda m: m.group().replace("o", "0"), digits)
    return NormalizedText(visible, shown, text, digits, offsets, given)


_DIGITS_IN_ORDER = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TENS = (
    "",
    "",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
)  # "eighty one"
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_DIGIT_WORDS = {"oh": "0"} | {
    word: str(n) for row in (_DIGITS_IN_ORDER, _TENS, _TEENS) for n, word in enumerate(row) if word
}
# Words that say how often a digit stands there, or that two zeros do.
_COUNTING_WORDS = ("double", "dbl", "triple", "treble", "quadruple", "hundred")
_SIGN = re.compile(
    rf"(?<![a-z])(?:{'|'.join(_DIGIT_WORDS)})(?![a-z])|(?P<skip>\b(?:{'|'.join(_COUNTING_WORDS)})\b)|[0-9a-z]"
)


@dataclass(frozen=True, slots=True)
class ValueShape:
    """A value as written, and where its letters and digits stand: `compact` in plain lower case, one for each place."""

    value: str
    offsets: tuple[tuple[int, int], ...]
    compact: str

    def reformatted(self, compact: str) -> str:
        """The value with other letters and digits, in capitals, in words or in Han digits where the value is."""
        parts = []
        at = 0
        for (start, end), char in zip(self.offsets, compact, strict=True):
            old = self.value[start:end]
            other = char
            if char.isdigit() and (old in HAN or old.lower() in _DIGIT_WORDS):
                words = _DIGITS_IN_ORDER
                if old.lower() in _TEENS:
                    words = _TEENS
                elif old.lower() in _TENS and char in "23456789":
                    words = _TENS
                other = "零一二三四五六七八九"[int(char)] if old in HAN else words[int(char)]
            parts += [
                self.value[at:start],
                other.upper() if len(old) == 1 and plain(old).isupper() else other,
            ]
            at = end
        return "".join([*parts, self.value[at:]])


def value_shape(value: str) -> ValueShape:
    """The shape of a value, in which Han digits, words for digits and an `o` among digits are digits."""
    normalized = normalize_text(value)
    signs = [sign for sign in _SIGN.finditer(normalized.digits) if not sign["skip"]]
    compact = "".join(_DIGIT_WORDS.get(sign[0], sign[0]) for sign in signs)
    return ValueShape(
        value, tuple(normalized.original_span(*sign.span()) for sign in signs), compact
    )
