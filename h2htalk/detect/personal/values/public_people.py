"""Which of the names that everybody knows are names of people, public or invented, and no works, brands or sayings.

With `public_figures = "replace"` these alone are replaced. The lists hold titles of songs and books beside people
("Good Evening"), so that a name has to look like one: a given name and a surname, a surname that a listed full name
ends with, a Chinese surname and a given name, or a name of several parts.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from h2htalk.detect.personal.chinese.persons import given, surnames
from h2htalk.detect.personal.chinese.words import tags, usual
from h2htalk.detect.personal.chinese.words import words as chinese_words
from h2htalk.detect.personal.english.persons import (
    RARE,
    folded,
    hint,
    is_word,
    public_names,
    words,
)
from h2htalk.detect.personal.values.dialogue_values import name_words
from h2htalk.text.chinese_characters import DOUBLE_SURNAMES, looks_foreign, simplified

_HAN = re.compile("[\u4e00-\u9fff]+")
_DOTTED = re.compile("[\u4e00-\u9fffA-Za-z.]+(?:[·•・‧．][\u4e00-\u9fffA-Za-z.]+)+")
_SHORTEST_FOREIGN = 3
# Behind a name in Chinese: what is called by it, and is nobody.
_CALLED_BY_IT = re.compile(
    "量表|测验|症|病|综合征|效应|定律|定理|法则|奖|杯|传|记(?![得者录忆])|演义|公式|疗法|金字塔|家族|之[一-鿿]"
)
_COMMON_SURNAME = -7.0  # log probability of a surname that two characters need


def is_name_of_a_person(name: str, language: str, behind: str = "") -> bool:
    """Whether a listed name is a person's. `behind`: the text right behind it, where it stands."""
    if _HAN.search(name):
        return _is_chinese(simplified(name)) and _CALLED_BY_IT.match(behind) is None
    return _is_latin(name) if language == "en" or " " in name else False


@lru_cache(maxsize=4096)
def _is_latin(name: str) -> bool:
    parts = [folded(part.rstrip(".")) for part in name.split()]
    if not all(parts) or " ".join(parts) in words().named_like_people:
        return False
    if len(parts) == 1:
        return not is_word(parts[0]) and parts[0] in _parts_of_full_names()
    return _is_full_name(tuple(parts))


def _is_full_name(parts: tuple[str, ...]) -> bool:
    """Whether words are a given name or a form of address and a surname, with initials and particles between them."""
    lists = words()
    first = parts[0]
    last = parts[-1]
    particles = name_words()["particles"]
    inner = [part for part in parts[1:-1] if len(part) > 1 and part not in particles]
    surname = last in lists.surnames or not is_word(last)
    strange = any(
        is_word(part) and part not in lists.surnames and not lists.given.get(part) for part in inner
    )
    if strange or not surname or len(last) < 2:
        return False
    if first in hint("plain_titles"):
        return last not in hint("titles")
    kind = lists.given.get(first, 0)
    if kind >= RARE:
        return True
    # "Will Smith", "Keanu Reeves", "J. K. Rowling": a word or a rare name before a surname that the list holds.
    return (
        last in lists.surnames
        and not is_word(last)
        and (kind > 0 or len(first) == 1 or not is_word(first))
    )


@cache
def _parts_of_full_names() -> frozenset[str]:
    """The surnames of listed people, and their given names that hardly anybody else has."""
    found: set[str] = set()
    known = [name for names in words().known.values() for name in names]
    listed = [tuple(folded(part.rstrip(".")) for part in name.split()) for name in public_names()]
    for name in (*known, *listed):
        if len(name) > 1 and all(name) and _is_full_name(name):
            found.add(name[-1])
            if name[0] not in words().given:
                found.add(name[0])
    return frozenset(found)


@lru_cache(maxsize=4096)
def _is_chinese(name: str) -> bool:
    if _DOTTED.fullmatch(name):
        return True
    if not _HAN.fullmatch(name) or name in chinese_words(
        "persons", "ordinary", "named_like_people"
    ):
        return False
    if name[:2] in DOUBLE_SURNAMES and 3 <= len(name) <= 4:
        return True
    family = surnames().get(name[0], -99.0)
    everyday = usual(name, 3) and tags().get(name, "nr")[:2] != "nr"
    if len(name) in (2, 3) and family > (_COMMON_SURNAME if len(name) == 2 else -20.0):
        named = all(given(letter) is not None for letter in name[1:])
        if named and not everyday:
            return True
    return len(name) >= _SHORTEST_FOREIGN and looks_foreign(name) and not everyday
