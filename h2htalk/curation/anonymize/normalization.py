"""One character for one character: what people write in other shapes of the same letters, digits and marks.

`plain` keeps the length, so places found in it are places of the text as given. `NormalizedText` also leaves out what
nobody sees, and remembers where everything stood. `ValueShape` is what a value is without its format.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Signs in other shapes, and what each reads as.
_PAIRS = (
    ("․·•∙⋅‧・･᛫●▪", "·" * 11),
    ("‐‑‒–—―−﹘﹣－➖ー─━⸺", "-" * 15),
    ("、﹑【】「」『』〔〕《》〈〉“”‘’⁄∕＿～〜∶꞉➕", ",,[][][][]<><>\"\"''//_~~::+"),
    ("\t\u00a0\u2007\u202f\u3000", " " * 5),
    ("❶❷❸❹❺❻❼❽❾⓿⓵⓶⓷⓸⓹⓺⓻⓼⓽⑴⑵⑶⑷⑸⑹⑺⑻⑼⒈⒉⒊⒋⒌⒍⒎⒏⒐", "1234567890" + "123456789" * 3),
    ("➀➁➂➃➄➅➆➇➈➊➋➌➍➎➏➐➑➒", "123456789" * 2),
    # Cyrillic and Greek letters that look like Latin ones, seen only where somebody dodges a filter.
    ("аеорсухіѕјАВЕКМНОРСТХοΟ", "aeopcyxisjABEKMHOPCTXoO"),
)
_MARKS = {ord(a): b for given, meant in _PAIRS for a, b in zip(given, meant, strict=True)}
# Letters in filled circles and squares, and those that flags are made of.
_MARKS |= {first + i: chr(65 + i) for first in (0x1F150, 0x1F170, 0x1F1E6) for i in range(26)}
HAN_DIGITS = dict(
    zip("〇零一二三四五六七八九幺壹贰叁肆伍陆柒捌玖貳參陸弌弍弎", "001234567891123456789236123", strict=True)
)
HAN = "".join(HAN_DIGITS)
_HAN_TABLE = str.maketrans(HAN_DIGITS | dict.fromkeys("○◯⭕", "0"))
# Characters that nobody sees: zero-width ones, soft hyphens, direction marks, variation selectors, key caps, strokes
# laid over a character.
_INVISIBLE = re.compile(
    "[\u00ad\u0300-\u036f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u20d0-\u20ff"
    "\ufe00-\ufe0f\ufeff]"
)
# Those of them that belong to the character before.
_COMBINING = re.compile("[\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f]")
_LOWER = {ord(c): ord(c) + 32 for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_O_AMONG_DIGITS = re.compile(
    r"(?<=[0-9])([^a-z0-9\n]?)o(?=[^a-z]|$)|(?<![a-z])o(?=[^a-z0-9\n]?[0-9])|(?<=[0-9])oo(?=[0-9])"
)


class _Table(dict[int, str]):
    """What each character reads as, worked out when it is met first: a mark of the tables, the ASCII character that it
    is a shape of (full-width, circled, bold, of another script), or itself."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        digit, shape = unicodedata.digit(char, None), unicodedata.normalize("NFKC", char)
        if code in _MARKS:
            read = _MARKS[code]
        elif digit is not None:
            read = str(digit)
        else:
            read = shape if len(shape) == 1 and shape.isascii() and shape.isprintable() else char
        return self.setdefault(code, read)


_TABLE = _Table({ord(char): char for char in "。｡《》〈〉“”‘’「」『』"})


def plain(text: str) -> str:
    """The text with full-width, circled, bold and foreign digits, letters and marks as plain ones; same length.

    Dashes become `-`, middle dots `·`, tabs and wide spaces a space. Han digits, `。` and quotation marks stay.
    """
    return text if text.isascii() and "\t" not in text else text.translate(_TABLE)


@dataclass(frozen=True, slots=True)
class NormalizedText:
    """A text as the recognisers read it. All strings have one length.

    `visible`: the characters as given, without the unseen ones. `text`: plain, in lower case. `digits`: Han digits and
    an `o` among digits as digits too. `offsets`: where each character stood, or None where nothing was left out;
    `given`: the text as given.
    """

    visible: str
    text: str
    digits: str
    offsets: tuple[int, ...] | None
    given: str

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """A stretch of the reading as places of the text as given, with the unseen characters inside and, of key
        caps, behind it."""
        if self.offsets is None:
            return start, end
        last = self.offsets[end - 1] + 1
        while last < len(self.given) and _COMBINING.match(self.given[last]):
            last += 1
        return self.offsets[start], last


def normalize_text(given: str) -> NormalizedText:
    """How a text reads."""
    visible, offsets = given, None
    if not given.isascii() and _INVISIBLE.search(given):
        visible = _INVISIBLE.sub("", given)
        offsets = tuple(i for i, char in enumerate(given) if not _INVISIBLE.match(char))
    text = plain(visible).translate(_LOWER)
    digits = text if text.isascii() else text.translate(_HAN_TABLE)
    for _ in range(3 if "o" in digits else 0):  # "1oo4": each round reads the neighbours of the last
        digits = _O_AMONG_DIGITS.sub(lambda m: m.group().replace("o", "0"), digits)
    return NormalizedText(visible, text, digits, offsets, given)


# --- A value's letters and digits apart from their format ---

_DIGITS_IN_ORDER = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGIT_WORDS = {"oh": "0"} | {word: str(digit) for digit, word in enumerate(_DIGITS_IN_ORDER)}
_SIGN = re.compile(rf"(?<![a-z])(?:{'|'.join(_DIGIT_WORDS)})(?![a-z])|[0-9a-z]")


@dataclass(frozen=True, slots=True)
class ValueShape:
    """A value as written, and where its letters and digits stand: `compact` in plain lower case, one for each place."""

    value: str
    offsets: tuple[tuple[int, int], ...]
    compact: str

    def reformatted(self, compact: str) -> str:
        """The value with other letters and digits, plainly written, in capitals where the value is."""
        parts = []
        at = 0
        for (start, end), char in zip(self.offsets, compact, strict=True):
            upper = end - start == 1 and plain(self.value[start:end]).isupper()
            parts += [self.value[at:start], char.upper() if upper else char]
            at = end
        return "".join([*parts, self.value[at:]])


def value_shape(value: str) -> ValueShape:
    """The shape of a value, in which Han digits, words for digits and an `o` among digits are digits."""
    normalized = normalize_text(value)
    signs = list(_SIGN.finditer(normalized.digits))
    compact = "".join(_DIGIT_WORDS.get(sign[0], sign[0]) for sign in signs)
    return ValueShape(value, tuple(normalized.original_span(*sign.span()) for sign in signs), compact)
