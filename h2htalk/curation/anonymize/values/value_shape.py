"""A value's letters and digits apart from their format: full-width, circled, in words, with marks in between."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.curation.anonymize.normalization import HAN_DIGITS, plain

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGIT_SOUNDS = re.compile(
    r"(?<![a-z])(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)(?![a-z])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ValueShape:
    """A value as written, and where its letters and digits stand: `compact` in plain lower case, one for each place."""

    value: str
    offsets: tuple[tuple[int, int], ...]
    compact: str

    @property
    def digits(self) -> str:
        return "".join(char for char in self.compact if char.isdigit())

    def reformatted(self, compact: str) -> str:
        """The value with other letters and digits, plainly written, in capitals where the value is."""
        parts = []
        at = 0
        for (start, end), char in zip(self.offsets, compact, strict=True):
            upper = end - start == 1 and plain(self.value[start:end]).isupper()
            parts += [self.value[at:start], char.upper() if upper else char]
            at = end
        return "".join([*parts, self.value[at:]])


def value_shape(value: str, *, numeric: bool) -> ValueShape:
    """The shape of a value; of a `numeric` one, Han digits, words for digits and `o` among digits count as digits."""
    seen = plain(value)
    offsets: list[tuple[int, int]] = []
    compact: list[str] = []
    spoken = {m.start(): m for m in _DIGIT_SOUNDS.finditer(seen)} if numeric else {}
    at = 0
    while at < len(value):
        word = spoken.get(at)
        if word is not None:
            offsets.append(word.span())
            said = word.group().lower()
            compact.append("0" if said == "oh" else str(_WORDS.index(said)))
            at = word.end()
            continue
        char = _plain_char(value, seen, at, numeric)
        if char:
            offsets.append((at, at + 1))
            compact.append(char)
        at += 1
    return ValueShape(value, tuple(offsets), "".join(compact))


def _plain_char(value: str, seen: str, at: int, numeric: bool) -> str:
    char = seen[at]
    if char.isascii() and char.isalnum():
        if numeric and char in "oO" and _among_digits(seen, at):
            return "0"
        return char.lower()
    if numeric and value[at] in HAN_DIGITS:
        return HAN_DIGITS[value[at]]
    return ""


def _among_digits(text: str, at: int) -> bool:
    around = [c for c in (text[at - 1 : at], text[at + 1 : at + 2]) if c]
    return any(c.isdigit() for c in around) and not any(c.isalpha() and c not in "oO" for c in around)


def numbers_in(texts: Sequence[str]) -> set[str]:
    """Every number of four digits or more that a text writes in one run."""
    return {number for text in texts for number in re.findall(r"[0-9]{4,}", plain(text))}
