"""Content words of a text: stop words are left out, and forms of a word count as one."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from h2htalk.analysis.measures.words import stop_words
from h2htalk.data.languages import Language, find_language
from h2htalk.text.counting import units, words

_APOSTROPHE = re.compile("['’].*")
# Endings of English forms: planting, planted and plants count as plant.
_ENDING = re.compile("(?<=[a-z]{3})(?:ing|ed|es|s|e)$")


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
