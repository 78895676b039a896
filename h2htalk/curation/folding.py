"""Folded once more for cues and models: no apostrophes, single spaces; in Chinese no spaces and no wedges.

`safety_folding` folds width, case, invisible signs and traditional characters; here go what is written between the
letters of a word that would be found otherwise. `origin` says where a folded stretch stands in the text itself.
"""

from __future__ import annotations

import re
from functools import cache

from h2htalk.curation import safety_folding
from h2htalk.data.dialogue import Language

# "don't", "dont" and "don’t" are one word.
_APOSTROPHES = "'`´‘’ʼ＇"
# "想*死", "想.死": between two Chinese characters these part nothing.
_WEDGES = re.compile(r"(?<=[\u4e00-\u9fff])[·*_~+^|/\\\-]+(?=[\u4e00-\u9fff])")
# Ends of sentences, which no cue reaches over.
_ENDS = {"\n": " . ", "。": ".", "！": "!", "？": "?", "…": ".", "；": ";", "，": ",", "、": ","}


def fold(text: str, language: Language) -> str:
    """The text as cues and models read it. Linear in the text; any text, lone surrogates and NUL included."""
    spread = safety_folding.fold(text.replace("\n", "。")).translate(_table())
    if language == "en":
        return " ".join(spread.split())
    return _WEDGES.sub("", "".join(spread.split()))


def origin(text: str, language: Language, start: int, end: int) -> tuple[int, int]:
    """Where characters `start` to `end` (exclusive) of the folded text stand in the text itself.

    The whole text where folding cannot be followed character by character.
    """
    folded = fold(text, language)
    # Everything that folding deletes or adds is neither a letter nor a digit: these are counted from the left.
    before = sum(map(str.isalnum, folded[:start]))
    inside = sum(map(str.isalnum, folded[start:end]))
    first = safety_folding.fold(text.replace("\n", "。"))
    places = [at for at, letter in enumerate(first) if letter.isalnum()]
    if not inside or len(places) != sum(map(str.isalnum, folded)):
        return 0, len(text)
    spread = (places[before], places[before + inside - 1] + 1)
    return safety_folding.original_places(text.replace("\n", "。"), [spread])[0]


def is_chinese(letter: str) -> bool:
    """Whether a character is a Chinese one (of the two blocks in daily use)."""
    return "\u4e00" <= letter <= "\u9fff" or "\u3400" <= letter <= "\u4dbf"


@cache
def _table() -> dict[int, str]:
    table = {ord(letter): "" for letter in _APOSTROPHES}
    return table | {ord(letter): end for letter, end in _ENDS.items()}
