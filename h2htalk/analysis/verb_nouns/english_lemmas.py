"""Dictionary forms of English verbs and nouns: lemminflect, with a short list of words where it errs.

Every answer is cached by the word as written: texts repeat their words, and a lookup costs more than a rule.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from h2htalk.errors import MissingExtraError

REMEMBERED = 65_536  # words; enough for a large split, and a bound for hostile text

# Plural-only words, and words in -ie that lemminflect does not know (it gives "selfy").
_NOUNS = {
    "thanks": "thanks",
    "pants": "pants",
    "trousers": "trousers",
    "leggings": "leggings",
    "sweatpants": "sweatpants",
    "sunglasses": "sunglasses",
    "tights": "tights",
    "maths": "maths",
    "leaves": "leaf",
    "selfies": "selfie",
    "hoodies": "hoodie",
    "veggies": "veggie",
    "besties": "bestie",
    "foodies": "foodie",
    "newbies": "newbie",
    "onesies": "onesie",
    "people": "people",
    "media": "media",
    "data": "data",
    "dice": "dice",
}
# Forms whose first reading in a dictionary is not the one that takes an object.
_VERBS = {
    "lay": "lay",
    "n't": "not",
    "'ve": "have",
    "'d": "have",
    "'s": "be",
    "wanna": "want",
    "gotta": "get",
}
_PREFIXES = ("re", "un", "over", "out", "mis", "pre", "under", "up")
_VOWELS = frozenset("aeiou")


@lru_cache(maxsize=1)
def _lemminflect() -> Any:
    try:
        import lemminflect
    except ImportError:
        raise MissingExtraError("English lemmas", 'pip install "h2htalk[analysis]"') from None
    return lemminflect


@lru_cache(REMEMBERED)
def noun_lemma(word: str, proper: bool = False) -> str:
    """Return the singular of a noun, lower case; a proper noun is unchanged.

    Raises:
        MissingExtraError: lemminflect is not installed.
    """
    if proper:
        return word
    word = word.lower()
    if word in _NOUNS:
        return _NOUNS[word]
    if word.endswith("ss"):  # "hostess" is no plural, known or not
        return word
    lemmas = _lemminflect().getLemma(word, upos="NOUN")
    return str(lemmas[0]) if lemmas else word


@lru_cache(REMEMBERED)
def verb_lemma(word: str, finite_or_base: bool = False) -> str:
    """Return the infinitive of a verb form, lower case.

    Args:
        word: the form as written ("Fed", "lying").
        finite_or_base: the tagger says infinitive or present (VB, VBP): then "saw" is to saw, not to see.

    Raises:
        MissingExtraError: lemminflect is not installed.
    """
    word = word.lower()
    if word in _VERBS:
        return _VERBS[word]
    known = _known(word)
    if not known:
        return _unknown_verb(word)
    return word if finite_or_base and word in known else known[0]


def _known(word: str) -> tuple[str, ...]:
    lemmas: tuple[str, ...] = _lemminflect().getAllLemmas(word, upos="VERB").get("VERB", ())
    return lemmas


def _unknown_verb(word: str) -> str:
    """Lemmatise an unlisted verb: a known verb after a prefix ("re|potted"), else by the rules of spelling."""
    for prefix in _PREFIXES:
        rest = word.removeprefix(prefix).lstrip("-")
        if rest != word and len(rest) > 2 and (known := _known(rest)):
            return word[: len(word) - len(rest)] + known[0]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in _VOWELS | {"l", "s", "z"}:
            return stem[:-1]
    lemmas = _lemminflect().getLemma(word, upos="VERB")
    return str(lemmas[0]) if lemmas else word
