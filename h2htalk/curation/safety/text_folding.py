"""One spelling for many: what the safety layers match against, and where each character of it came from.

`fold` folds compatibility forms, case, accents on Latin letters, invisible marks and traditional characters, character
by character. `fold_spelling` also takes out what is written between the letters of a word, for cues and classifiers.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import accumulate

from h2htalk.data.languages import Language, find_language
from h2htalk.text.traditional_chinese import simplified

# Letters whose accents are folded away; elsewhere (Japanese, Korean, Indic) marks make the letter.
_ACCENTED = ("LATIN", "GREEK", "CYRILLIC")
# "don't", "dont" and "don’t" are one word; ends of sentences, which no cue reaches over.
_SPELLING = str.maketrans(
    dict.fromkeys("'`´‘’ʼ＇", "")
    | {"\n": " . ", "。": ".", "！": "!", "？": "?", "…": ".", "；": ";", "，": ",", "、": ","}
)
# "想*死", "想.死": between two Chinese characters these part nothing.
_WEDGES = re.compile(r"(?<=[\u4e00-\u9fff])[·*_~+^|/\\\-]+(?=[\u4e00-\u9fff])")


class _Table(dict[int, str]):
    """Character to folded characters, filled as characters are met: at most one entry a code point."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold_character(chr(code))
        return folded


_TABLE = _Table()


def fold(text: str) -> str:
    """A text as the layers compare it; the same for every spelling that a reader takes for the same.

    Linear in the text. Zero-width characters, bidirectional controls and combining accents vanish; NUL and other
    controls become spaces, lone surrogates U+FFFD.
    """
    return text.translate(_TABLE)


@lru_cache(maxsize=8)
def fold_spelling(text: str, language: Language) -> str:
    """The folded text without apostrophes and with single spaces; in Chinese without spaces and wedges."""
    spread = fold(_with_line_ends(text)).translate(_SPELLING)
    if find_language(language).spaced:
        return " ".join(spread.split())
    return _WEDGES.sub("", "".join(spread.split()))


def original_places(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of `fold(text)` as spans of the text: invisible characters inside belong to them."""
    if not spans:
        return []
    widths = [len(_TABLE[ord(character)]) for character in text]
    if all(width == 1 for width in widths):
        return spans
    starts = [0, *accumulate(widths)]
    places = [place for place in range(len(text)) for _ in range(starts[place + 1] - starts[place])]
    return [(places[start], places[end - 1] + 1) for start, end in spans]


def spelling_place(text: str, language: Language, start: int, end: int) -> tuple[int, int]:
    """Where characters `start` to `end` (exclusive) of `fold_spelling(text)` stand in the text.

    The whole text where folding cannot be followed character by character.
    """
    folded, first = fold_spelling(text, language), fold(_with_line_ends(text))
    # Everything that folding deletes or adds is neither a letter nor a digit: these are counted from the left.
    before = sum(map(str.isalnum, folded[:start]))
    inside = sum(map(str.isalnum, folded[start:end]))
    places = [at for at, letter in enumerate(first) if letter.isalnum()]
    if not inside or len(places) != sum(map(str.isalnum, folded)):
        return 0, len(text)
    return original_places(_with_line_ends(text), [(places[before], places[before + inside - 1] + 1)])[0]


def is_chinese(letter: str) -> bool:
    """Whether a character is a Chinese one (of the two blocks in daily use)."""
    return "\u4e00" <= letter <= "\u9fff" or "\u3400" <= letter <= "\u4dbf"


def _with_line_ends(text: str) -> str:
    return text.replace("\n", "。")


def _fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    if category == "Cc":
        return " "
    if category == "Cf" or _is_variation_or_accent(ord(character)):
        return ""
    if character.isascii():
        return character.lower()
    spelled = unicodedata.normalize("NFKC", character)
    if unicodedata.name(character, "").startswith(_ACCENTED):
        plain = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
        spelled = plain or spelled
    return simplified(spelled).lower()


def _is_variation_or_accent(code: int) -> bool:
    return (
        0x0300 <= code <= 0x036F or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or code == 0x115F
    )
