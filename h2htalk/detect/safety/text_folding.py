"""Fold different spellings into one, which the safety layers match, and map places back to the original text.

`fold` folds compatibility forms, case, accents on Latin letters, invisible marks and traditional characters, character
by character. `fold_spelling` also removes signs between the letters of a word, for cues and classifiers.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import accumulate

from h2htalk.data.languages import Language, find_language
from h2htalk.text.chinese_characters import simplified

# Scripts whose accents are removed; elsewhere (Japanese, Korean, Indic) marks are part of the letter.
_ACCENTED = ("LATIN", "GREEK", "CYRILLIC")
# Accents that combine, and signs that choose a variant.
_REMOVED = re.compile("[\u0300-\u036f\ufe00-\ufe0f\U000e0100-\U000e01ef\u115f]")
# "don't", "dont" and "don’t" are one word; no cue reaches over the end of a sentence.
_SPELLING = str.maketrans(
    dict.fromkeys("'`´‘’ʼ＇", "")
    | {"\n": " . ", "。": ".", "！": "!", "？": "?", "…": ".", "；": ";", "，": ",", "、": ","}
)
# "想*死", "想.死": signs without a meaning between two Chinese characters.
_WEDGES = re.compile(r"(?<=[\u4e00-\u9fff])[·*_~+^|/\\\-]+(?=[\u4e00-\u9fff])")


class _Table(dict[int, str]):
    """Character -> folded characters, filled on demand."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        name = unicodedata.name(character, "")
        if category in ("Cs", "Cc"):
            folded = "\ufffd" if category == "Cs" else " "
        elif category == "Cf" or _REMOVED.match(character):
            folded = ""
        else:
            spelled = unicodedata.normalize("NFKC", character)
            if name.startswith(_ACCENTED) and not character.isascii():
                plain = (
                    c
                    for c in unicodedata.normalize("NFKD", character)
                    if not unicodedata.combining(c)
                )
                spelled = "".join(plain) or spelled
            folded = simplified(spelled).lower()
        self[code] = folded
        return folded


_TABLE = _Table()


def fold(text: str) -> str:
    """Fold a text, so that spellings that look the same to a reader are equal; linear in the text.

    Invisible characters and accents are removed; controls become spaces, lone surrogates U+FFFD.
    """
    return text.translate(_TABLE)


@lru_cache(maxsize=128)
def fold_spelling(text: str, language: Language) -> str:
    """The folded text without apostrophes and with single spaces; in Chinese without spaces and inserted signs."""
    spread = fold(text.replace("\n", "。")).translate(_SPELLING)
    if find_language(language).spaced:
        return " ".join(spread.split())
    return _WEDGES.sub("", "".join(spread.split()))


def original_places(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Map spans of `fold(text)` to spans of the text, which include invisible characters inside them."""
    if not spans:
        return []
    widths = [len(_TABLE[ord(character)]) for character in text]
    if all(width == 1 for width in widths):
        return spans
    starts = [0, *accumulate(widths)]
    places = [place for place in range(len(text)) for _ in range(starts[place + 1] - starts[place])]
    return [(places[start], places[end - 1] + 1) for start, end in spans]


def spelling_place(text: str, language: Language, start: int, end: int) -> tuple[int, int]:
    """Map characters `start` to `end` (exclusive) of `fold_spelling(text)` to a span of the text, else to all of it."""
    ended = text.replace("\n", "。")
    folded = fold_spelling(text, language)
    first = fold(ended)
    # Folding deletes and adds no letters or digits, so they can be counted from the left.
    before = sum(map(str.isalnum, folded[:start]))
    inside = sum(map(str.isalnum, folded[start:end]))
    places = [at for at, letter in enumerate(first) if letter.isalnum()]
    if not inside or len(places) != sum(map(str.isalnum, folded)):
        return 0, len(text)
    return original_places(ended, [(places[before], places[before + inside - 1] + 1)])[0]
