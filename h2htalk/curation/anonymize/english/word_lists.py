"""The lists that English name rules ask: given names, surnames, words, and what words around a name say."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from h2htalk.text.language_data import read_data

_FOLDER = Path(__file__).parent / "words"
_NEITHER = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ß": "ss", "æ": "ae", "đ": "d", "ı": "i"})
WORD_NAME, RARE, COMMON = 1, 2, 3


@dataclass(frozen=True, slots=True)
class WordLists:
    """The lists: folded words (lower-case ASCII letters alone)."""

    given: dict[str, int]  # COMMON, RARE, or WORD_NAME for one that is an English word or a place too
    surnames: frozenset[str]
    words: frozenset[str]
    never: frozenset[str]
    hints: dict[str, frozenset[str]]
    known: dict[str, tuple[tuple[str, ...], ...]]  # public and invented people, by their first word
    works: dict[str, tuple[tuple[str, ...], ...]]  # works, brands, dishes and sayings that hold a name


@cache
def words() -> WordLists:
    """The lists, read once (about 30 ms)."""
    raw: dict[str, str] = {}
    for name in ("hints.toml", "grammar.toml"):
        raw |= read_data(_FOLDER / name)
    hints = {key: frozenset(value.split()) for key, value in raw.items()}
    given = dict.fromkeys(_listed("given_rare.txt"), RARE)
    given |= dict.fromkeys([*_listed("given_common.txt"), *map(folded, hints["given_more"])], COMMON)
    ordinary = frozenset(_listed("words.txt"))
    given |= dict.fromkeys([*_listed("given_words.txt"), *hints["given_words_more"]], WORD_NAME)
    given |= {word: WORD_NAME for word in given if word in ordinary}
    given |= {word: WORD_NAME for word in given if word in hints["named_after_places"]}
    given |= dict.fromkeys(map(folded, hints["given_after_all"]), COMMON)
    for word in hints["never_given"] | hints["makes"] | (hints["places"] - hints["named_after_places"]):
        given.pop(word, None)
    for word in (hints["titles"] | hints["kin"]) - {"nan", "nana", "pal", "sis"}:
        given.pop(word, None)
    surnames = frozenset(_listed("surnames.txt")) - hints["never_given"] - hints["makes"]
    never = hints["never_given"] | hints["makes"]
    known, works = _phrases(raw["known_people"]), _phrases("\n".join(_lines("works.txt")))
    return WordLists(given, surnames, ordinary | never, never, hints, known, works)


def _phrases(text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Names of one or several words, parted by `|` or line ends, by their first word; the longest first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for entry in re.split(r"[|\n]", text):
        if parts := tuple(map(folded, entry.split())):
            found.setdefault(parts[0], []).append(parts)
    return {word: tuple(sorted(each, key=len, reverse=True)) for word, each in found.items()}


@cache
def hint(key: str) -> frozenset[str]:
    """One of the small sets of words of hints.toml and grammar.toml, by its name there."""
    return words().hints[key]


@cache
def endings() -> tuple[str, ...]:
    """How English words end that the list may lack."""
    return tuple(hint("endings"))


def _lines(name: str) -> list[str]:
    """The lines of a text file, without its comments."""
    lines = (_FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _listed(name: str) -> list[str]:
    return " ".join(_lines(name)).split()


def is_word(word: str) -> bool:
    """Whether English has it as a word, by the list or by how it ends ("explosive", and not the surname "Manning")."""
    lists = words()
    if word in lists.words:
        return True
    return len(word) > 6 and word.endswith(endings()) and word not in lists.surnames and word not in lists.given


def folded(word: str) -> str:
    """Lower-case ASCII letters where there are such: Zoë is zoe, O'Malley omalley; other letters stay."""
    if not word.isascii():
        parts = unicodedata.normalize("NFKD", word.translate(_NEITHER))
        word = "".join(c for c in parts if not unicodedata.combining(c))
    return word.lower().replace("'", "").replace("’", "").replace("-", "")
