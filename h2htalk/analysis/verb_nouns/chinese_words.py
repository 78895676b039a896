"""Closed classes of Chinese words for the verb-noun rules, from `chinese_words.toml`, and the dictionary's classes."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from h2htalk.text.parsing.chinese_segmenter import bundled_segmenter

_LISTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _words(*names: str) -> frozenset[str]:
    return frozenset(word for name in names for word in _LISTS[name].split())


def _characters(name: str) -> frozenset[str]:
    return frozenset("".join(_LISTS[name].split()))


ADVERBS, AUXILIARIES, CONJUNCTIONS = _words("adverbs"), _words("auxiliaries"), _words("conjunctions")
LOCALIZERS, MODALS, PARTICLES = _words("localizers"), _words("modals"), _words("particles")
NUMERALS, PREPOSITIONS = _words("determiners", "numerals"), _words("prepositions")
PRONOUNS, TIMES, TIME_UNITS = _words("pronouns"), _words("time_nouns", "place_nouns"), _words("time_units")
PEOPLE, NOUNS = _words("kin"), _words("nouns")
NUMERAL_CHARACTERS = _characters("numeral_characters")
CLASSIFIERS = _characters("classifiers") | _words("long_classifiers")
MEASURES = _characters("bare_classifiers") | _characters("vessels")  # behind a verb without a number: 打个电话

CAUSING, CLAUSAL, LINKING = _words("causing_verbs"), _words("clause_verbs"), _words("linking_verbs")
PERCEIVING = _words("perceiving_verbs")  # of CLAUSAL, those that take a thing as well
FREE_VERBS, GOING = _characters("free_verbs"), _words("intransitive", "directions")
NO_OBJECT = LINKING | CAUSING | GOING
# A verb after these is a noun: 有帮助.
WITH_DEEDS = _words("before_deeds") | (FREE_VERBS - MODALS - (CLAUSAL - PERCEIVING))
# Of an action, always cut off a verb; other results are where no dictionary has the two as one word.
ENDINGS = _words("endings")
AFTER_VERB = ENDINGS | _words("results", "long_results")
WHOLE, DOUBLED, STATIVE = _words("whole_verbs"), _words("doubled_verbs"), _words("stative_verbs")
SUFFIXES, SPLIT = _characters("noun_suffixes"), _words("split_words")

COMPOUNDS: dict[str, str] = _LISTS["compounds"]  # first character -> second characters: 喝 -> 水茶酒
NOUNS_LIKE_COMPOUNDS = _words("nouns_like_compounds")
FREE_NOUNS = frozenset("".join(COMPOUNDS.values()))
ADJUNCTS = _words("adjunct_heads", "time_nouns")  # heads of relative clauses that say when, where or how
AFTERWARDS = _words("after_clauses")  # localizers that make a clause a time: 失去奶奶以后
STUCK = frozenset("没都先再刚也又就还忘想爱要敢别")  # written together with the verb behind them, as is 太
ADVERBIAL_WORDS = _words("adverbial_words")  # one word, though they begin with one of STUCK

ASPECTS = frozenset("了着过")
BEFORE_VERB = ADVERBS | MODALS | PREPOSITIONS | TIMES
FUNCTIONAL = BEFORE_VERB | CONJUNCTIONS | LOCALIZERS | NUMERALS | PARTICLES | PRONOUNS
KNOWN = FUNCTIONAL | CLASSIFIERS


@lru_cache(65536)
def word_class(word: str) -> str:
    """Return jieba's class of a word (`n`, `v`, `a`, `nr` ...), "" for an unlisted word."""
    return bundled_segmenter().lexicon.class_of(word) or ""


def is_listed(word: str) -> bool:
    """Whether the dictionary lists the word; many of its names are not words (封信, 太冷)."""
    return word_class(word) not in ("", "nr", "nrt", "nrfg", "nz")


def is_noun(word: str) -> bool:
    return word in NOUNS or (word_class(word)[:1] == "n" and is_listed(word))


def is_han(text: str) -> bool:
    return "\u4e00" <= text[0] <= "\u9fff"
