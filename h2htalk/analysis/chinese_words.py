"""Closed classes of Chinese for the verb-noun rules, read from `chinese_words.toml`, and the dictionary's classes."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from h2htalk.text.segmenter import bundled_segmenter

_LISTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def _characters(name: str) -> frozenset[str]:
    return frozenset("".join(_LISTS[name].split()))


ADVERBS = _words("adverbs")
BARE_CLASSIFIERS = _characters("bare_classifiers")
VESSELS = _characters("vessels")
CLASSIFIERS = _characters("classifiers") | _words("long_classifiers")
CONJUNCTIONS = _words("conjunctions")
DETERMINERS = _words("determiners")
LOCALIZERS = _words("localizers")
MODALS = _words("modals")
NUMERAL_CHARACTERS = _characters("numeral_characters")
NUMERALS = _words("numerals")
PARTICLES = _words("particles")
PLACES = _words("place_nouns")
PREPOSITIONS = _words("prepositions")
PRONOUNS = _words("pronouns")
TIMES = _words("time_nouns")
PEOPLE = _words("kin")

# Verbs by what may follow them.
CAUSING = _words("causing_verbs")
CLAUSAL = _words("clause_verbs")
DIRECTIONS = _words("directions")
FREE_VERBS = _characters("free_verbs")
GIVING = _words("giving_verbs")
INTRANSITIVE = _words("intransitive")
LINKING = _words("linking_verbs")

# What ends an action and stands behind its verb: the first are always cut off, the others when no dictionary
# has the two as one word.
ENDINGS = _words("endings")
RESULTS = _words("results") | _words("long_results")

# First character -> second characters: 喝 -> 水茶酒.
COMPOUNDS: dict[str, str] = _LISTS["compounds"]
NOUNS = _words("nouns")
NOUNS_LIKE_COMPOUNDS = _words("nouns_like_compounds")
SEPARABLE: dict[str, str] = _LISTS["separable"]
BOUND_OBJECTS = frozenset("".join(SEPARABLE.values()))

ASPECTS = frozenset("了着过")
FREE_NOUNS = frozenset("".join(COMPOUNDS.values()))
# Words whose kind a closed class decides: they are never cut.
KNOWN = (
    ADVERBS
    | CLASSIFIERS
    | CONJUNCTIONS
    | DETERMINERS
    | LOCALIZERS
    | MODALS
    | NUMERALS
    | PARTICLES
    | PLACES
    | PREPOSITIONS
    | PRONOUNS
    | TIMES
)

# Compounds that look like a verb with its ending, and nouns that look like a modifier with its head.
WHOLE = _words("whole_verbs")
DOUBLED = _words("doubled_verbs")
# Words that end in 得 and are no verb with its degree.
BOUND_DE = _words("words_in_de")
ONE_THING = _words("whole_nouns")
# Localizers that make a clause a time: what stands before keeps its object (失去奶奶以后).
AFTERWARDS = _words("after_clauses")
# Of CLAUSAL, those that take a thing as well: a predicate after it changes nothing unless it is a person.
PERCEIVING = _words("perceiving_verbs")
# People and seasons are their objects too.
FEELING = _words("feeling_verbs")
MESSAGES = _words("messages")
# Heads of relative clauses that say when, where or how, not what is acted on.
ADJUNCTS = _words("adjunct_heads") | TIMES
AUXILIARIES = _words("auxiliaries")
TIME_UNITS = _words("time_units")
# After these a word that can be a verb is a noun: 有帮助.
WITH_DEEDS = _words("before_deeds")
DEGREES = _words("degrees")
# Words that look like an adverb with its verb.
ADVERBIAL_WORDS = _words("adverbial_words")

# Unions and differences that the rules ask for word by word: made once, for making one costs more than any rule.
AFTER_VERB = RESULTS | ENDINGS
GOING = INTRANSITIVE | DIRECTIONS
FUNCTIONAL = KNOWN - CLASSIFIERS
MEASURES = BARE_CLASSIFIERS | VESSELS
COUNTED = CLASSIFIERS - TIME_UNITS
SURE_VERBS = frozenset(word for word in INTRANSITIVE | DOUBLED if len(word) > 1)


@lru_cache(65536)
def word_class(word: str) -> str:
    """jieba's class of a word (`n`, `v`, `a`, `nr` ...), "" for a word that is not listed."""
    return bundled_segmenter().lexicon.class_of(word) or ""


def is_noun(word: str) -> bool:
    return word in NOUNS or word_class(word)[:1] == "n"


def is_han(text: str) -> bool:
    return "\u4e00" <= text[0] <= "\u9fff"
