"""Content words of a text: stop words are left out, and forms of a word count as one."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

from h2htalk.data.languages import Language, find_language
from h2htalk.text.counting import units, words

_APOSTROPHE = re.compile("['’].*")
# Endings of English forms: planting, planted and plants count as plant.
_ENDING = re.compile("(?<=[a-z]{3})(?:ing|ed|es|s|e)$")


@cache
def stop_words(language: Language) -> frozenset[str]:
    """Read the words that are not counted: function words only, so that the words that the paper discusses are kept.

    Raises:
        ConfigError: an unknown language.
    """
    find_language(language)
    path = files("h2htalk.text") / "stop_words" / f"{language}.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


@lru_cache(maxsize=4096)  # turns and memories are the same for every sample of an item
def content_words(text: str, language: Language) -> frozenset[str]:
    """Return the content words of a text, lower-cased and without endings.

    Where no spaces separate words, two neighbouring characters count as a word: texts that share a word share a pair,
    however the words around it are cut.
    """
    stops = stop_words(language)
    if not find_language(language).spaced:
        pairs = pairwise(("" if one in stops else one) for one in units(text.lower()))
        return frozenset(a + b for a, b in pairs if a and b and a + b not in stops)
    bare = {_APOSTROPHE.sub("", word) for word in words(text.lower())} - stops
    found = (_ENDING.sub("", word) for word in bare if len(word) > 2 and word[0].isalpha())
    return frozenset(word[:-1] if word[-1] == word[-2] else word for word in found)
