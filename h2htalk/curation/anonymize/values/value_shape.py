"""A value's letters and digits apart from their format: full-width, circled, in words, with marks in between."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.curation.anonymize.normalization import HAN_DIGITS, plain

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGIT_SOUNDS = re.compile(
    r"(?<![a-z])(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)(?![a-z])", re.IGNORECASE
)
_HAN_SETS = ("〇一二三四五六七八九", "零一二三四五六七八九", "零壹贰叁肆伍陆柒捌玖", "零一二三四五六七八九")


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
        """The value with other letters and digits, each in the format of the one it stands for."""
        parts = []
        at = 0
        for (start, end), char in zip(self.offsets, compact, strict=True):
            parts += [self.value[at:start], _in_format_of(self.value[start:end], char)]
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


def _in_format_of(written: str, char: str) -> str:
    """`char` (a plain lower-case letter or digit) as `written` was."""
    if len(written) > 1:  # a word for a digit
        word = _WORDS[int(char)] if char.isdigit() else char
        return word.upper() if written.isupper() else word.capitalize() if written[0].isupper() else word
    if written in HAN_DIGITS and char.isdigit():
        return next(s for s in _HAN_SETS if written in s or s is _HAN_SETS[-1])[int(char)]
    if char.isalpha():
        upper = char.upper() if plain(written).isupper() else char
        return chr(ord(upper) + 0xFEE0) if "\uff01" <= written <= "\uff5e" else upper
    if written.isascii() or not char.isdigit():
        return char
    return _digit_like(written, int(char))


def _digit_like(written: str, digit: int) -> str:
    """A digit of the same set (full-width, circled, bold), where it has one."""
    known = unicodedata.digit(written, None)
    if known is None:
        return str(digit)
    if written == "⓪" or "①" <= written <= "⑨":
        return "⓪" if digit == 0 else chr(ord("①") + digit - 1)
    other = chr(ord(written) - known + digit)
    return other if unicodedata.digit(other, None) == digit else str(digit)


def numbers_in(texts: Sequence[str]) -> set[str]:
    """Every number of four digits or more that a text writes in one run."""
    return {number for text in texts for number in re.findall(r"[0-9]{4,}", plain(text))}
