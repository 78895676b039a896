"""What stays: names of companions, people and figures whom everybody knows, titles of works between 《》.

They are marked before anything is looked for, so that no part of them is taken for somebody private. (Help lines stay
too: `numbers.is_public` knows them.) A figure's name that somebody says is theirs ("my name is") is a person's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path

from h2htalk.curation.anonymize.chinese.words import usual
from h2htalk.curation.anonymize.english.persons import words
from h2htalk.curation.anonymize.spans import Span, plain
from h2htalk.curation.anonymize.structured.reading import patterns
from h2htalk.data.languages import find_language
from h2htalk.data.scenario import bundled_personas
from h2htalk.text.language_data import read_lines
from h2htalk.text.phrases import PhraseIndex

# Types of what stays.
COMPANION, FIGURE, TITLE = "companion", "figure", "title"
_RE = patterns("allow_list")
_LIKELY = 0.7


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether what stands at `start` to `end` is no part of a Latin word or number; Han characters part words."""
    edges = ((text[start - 1 : start], text[start]), (text[end - 1], text[end : end + 1]))
    return not any(all(char.isalnum() and ord(char) < 0x250 for char in edge) for edge in edges)


def _index(names: Iterable[str]) -> PhraseIndex[str]:
    """Names in lower case, Latin ones as whole words."""
    return PhraseIndex(((name, name) for name in map(to_lower, names) if name.strip()), is_whole_word)


def to_lower(text: str) -> str:
    """In lower case, one character for one."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def companion_names(names: Iterable[str]) -> list[str]:
    """How companions are called: their names, and the first of several Latin words."""
    return [form for name in names for form in dict.fromkeys([name, *[w for w in name.split()[:1] if len(w) > 1]])]


@cache
def _figures(language: str) -> PhraseIndex[str]:
    record = find_language(language)
    lines = read_lines(Path(__file__).parent / "public_figures" / f"figures_{language}.txt")
    own = [name for line in lines for name in line.split("|" if record.spaced else None)]
    return _index([*own, *import_module(record.name_recognizer).known_figures()])


@lru_cache(maxsize=64)
def _companions(names: tuple[str, ...]) -> PhraseIndex[str]:
    return _index([*_bundled(), *names])


@cache
def _bundled() -> tuple[str, ...]:
    return tuple(name for persona in bundled_personas().values() for name in persona.names.values())


def addressed_personas(texts: Iterable[str]) -> list[str]:
    """Names of bundled personas that a dialogue names in full: there "Nora" is Nora Vale, elsewhere somebody's."""
    lowered = to_lower(plain("\n".join(texts)))
    return [name for name in _bundled() if to_lower(name) in lowered]


def find_allowed(text: str, language: str, companions: Sequence[str] = ()) -> list[Span]:
    """What stays in a text, normalised one character to one, in order, with its type; none overlap.

    `companions` are names, each as it is (`companion_names` adds first words); bundled personas stay by their full
    names.
    """
    lowered = to_lower(text)
    found = [Span(*m.span(), TITLE, 1.0) for m in (_RE["title"].finditer(text) if "《" in text else ())]
    for start, end, _ in _companions(tuple(companions)).find(lowered):
        # The companion is "Nora", and "Nora Smith" is somebody else.
        single = " " not in text[start:end] and text[start].isascii()
        following = _RE["following"].match(text, end) if single else None
        continues = following is not None and to_lower(following[1]) not in words().words
        if not continues and _inside_han_name(text, start, end) is None:
            found.append(Span(start, end, COMPANION, 1.0))
    for start, end, _ in _figures(language).find(lowered):
        own = _RE["speakers_own"].search(lowered, max(start - 16, 0), start)
        dotted = "·" in (text[start - 1 : start], text[end : end + 1])  # a part of 苏珊·凯恩 alone is no figure
        if not own and not dotted:
            found.append(Span(start, end, FIGURE, 1.0))
    allowed: list[Span] = []
    for stays in sorted(found, key=lambda a: (a.start, -a.end)):  # of names inside titles and the like the longer stays
        if not allowed or stays.start >= allowed[-1].end:
            allowed.append(stays)
    return allowed


def longer_names(text: str, companions: Sequence[str] = ()) -> list[Span]:
    """Persons whose Chinese names hold a companion's. Arguments as in `find_allowed`."""
    places = _companions(tuple(companions)).find(to_lower(text))
    return [span for start, end, _ in places if (span := _inside_han_name(text, start, end)) is not None]


def _inside_han_name(text: str, start: int, end: int) -> Span | None:
    """Somebody else's name that a companion's is part of: 苏晚 in 叫苏晚彤, 小雨 in 陈小雨."""
    if not "\u4e00" <= text[start] <= "\u9fff" or end - start < 2:
        return None
    if _RE["surname_before"].search(text, max(start - 3, 0), start):
        return Span(start - 1, end, "PERSON", _LIKELY)
    if not _RE["given_behind"].match(text, end) or usual(text[end : end + 2]):
        return None
    told = _RE["called_before"].search(text, max(start - 3, 0), start) or _RE["name_end"].match(text, end + 1)
    return Span(start, end + 1, "PERSON", _LIKELY) if told else None
