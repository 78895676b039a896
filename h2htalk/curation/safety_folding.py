"""One spelling for many: what the safety layers match against, and where each character of it came from.

Compatibility forms, case, accents on Latin letters, marks that cannot be seen and traditional characters are folded,
character by character, so that a place in the folded text is a place in the original.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

_DATA = Path(__file__).parent / "safety_data"
# Letters whose accents are folded away; elsewhere (Japanese, Korean, Indic) marks make the letter.
_ACCENTED = ("LATIN", "GREEK", "CYRILLIC")


class _Table(dict[int, str]):
    """Character to folded characters, filled as characters are met: at most one entry a code point."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold_character(chr(code))
        return folded


def fold(text: str) -> str:
    """A text as the layers compare it; the same for every spelling that a reader takes for the same.

    Linear in the text. Zero-width characters, bidirectional controls and combining accents vanish; NUL and other
    controls become spaces, lone surrogates U+FFFD.
    """
    return text.translate(_table())


def original_places(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of the folded text as spans of the original: invisible characters inside belong to them."""
    if not spans:
        return []
    table = _table()
    starts = [0, *accumulate(len(table[ord(character)]) for character in text)]
    if starts[-1] == len(text) and all(len(table[ord(character)]) == 1 for character in text):
        return spans
    places = [place for place in range(len(text)) for _ in range(starts[place + 1] - starts[place])]
    return [(places[start], places[end - 1] + 1) for start, end in spans]


@lru_cache(maxsize=1)
def _table() -> _Table:
    return _Table()


@lru_cache(maxsize=1)
def _simplified() -> dict[str, str]:
    """Traditional character to simplified, of `traditional.txt`: pairs, one after another on a line."""
    lines = (_DATA / "traditional.txt").read_text(encoding="utf-8").splitlines()
    pairs = "".join(line for line in lines if not line.startswith("#"))
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def _fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    if category == "Cc":
        return " "
    if category == "Cf" or _is_variation_or_accent(character):
        return ""
    if character.isascii():
        return character.lower()
    spelled = unicodedata.normalize("NFKC", character)
    if unicodedata.name(character, "").startswith(_ACCENTED):
        plain = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
        spelled = plain or spelled
    return "".join(_simplified().get(c, c) for c in spelled).lower()


def _is_variation_or_accent(character: str) -> bool:
    code = ord(character)
    return (
        0x0300 <= code <= 0x036F or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or code == 0x115F
    )
