"""What stays: names of the companion, people and figures whom everybody knows, titles of works between 《》.

They are marked before anything is looked for, so that no part of them is taken for somebody private. (Help lines stay
too: `phones.is_hotline` knows them.) A figure's name beside a telephone number or an address is a person's all the
same, and so is one that somebody says is theirs ("my name is").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module, resources
from typing import Literal

from h2htalk.curation.anonymize.chinese.jieba_dictionary import usual
from h2htalk.curation.anonymize.english.word_lists import words
from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.data.languages import find_language
from h2htalk.data.scenario import bundled_personas

Kind = Literal["companion", "figure", "title"]
_RE = patterns("allow_list")
_NEAR = frozenset(
    ["PHONE_NUMBER", "ADDRESS", "NATIONAL_ID", "CREDIT_CARD", "ACCOUNT_NUMBER", "EMAIL_ADDRESS", "QQ", "WECHAT"]
)
_LONGEST_GAP = 24
_BESIDE = 0.7


@dataclass(frozen=True, slots=True)
class AllowedSpan:
    """Characters `start` to `end` stay, because of what they are."""

    start: int
    end: int
    kind: Kind

    def span(self) -> Span:
        """As recognisers take what they must leave alone."""
        return Span(self.start, self.end, f"allowed:{self.kind}", 1.0)


class NameIndex:
    """Names, found in a text in one walk over it: Latin ones as whole words, in any case."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_word: dict[str, list[str]] = {}
        self._by_start: dict[str, list[str]] = {}
        for name in sorted({to_lower(name) for name in names if name.strip()}, key=lambda n: (-len(n), n)):
            first = _RE["run"].match(name) if name[0].isascii() else None
            if first is not None:
                self._by_word.setdefault(first.group(), []).append(name)
            else:
                self._by_start.setdefault(name[:1], []).append(name)
        starts = "".join(map(re.escape, self._by_start))
        self._start = re.compile(f"[{starts}]") if starts else None

    def find(self, lowered: str) -> list[tuple[int, int]]:
        """Where names stand in a text in lower case, from left to right, the longest where several begin."""
        runs = _RE["run"].finditer(lowered)
        begins = [(run.start(), self._by_word[run.group()]) for run in runs if run.group() in self._by_word]
        if self._start:
            begins += [(start.start(), self._by_start[start.group()]) for start in self._start.finditer(lowered)]
        matches = []
        for at, names in begins:
            for name in names:
                if lowered.startswith(name, at) and (not name[0].isascii() or is_whole_word(lowered, at, name)):
                    matches.append((at, at + len(name)))
                    break
        return sorted(matches)


def is_whole_word(text: str, at: int, name: str) -> bool:
    """Whether a name that begins and ends in Latin letters or digits stands in a text as words of its own."""
    end = at + len(name)
    return not (_in_one_word(text[at - 1 : at], name[0]) or _in_one_word(name[-1], text[end : end + 1]))


def _in_one_word(*chars: str) -> bool:
    """Whether neighbours are Latin letters or digits; Han characters part words."""
    return all(char.isalnum() and ord(char) < 0x250 for char in chars)


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
def _figures(language: str) -> NameIndex:
    record = find_language(language)
    path = resources.files("h2htalk.curation.anonymize.public_figures") / f"figures_{language}.txt"
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    own = [name for line in lines for name in line.split("|" if record.spaced else None)]
    return NameIndex([*own, *import_module(record.name_recognizer).known_figures()])


@lru_cache(maxsize=64)
def _companions(names: tuple[str, ...]) -> NameIndex:
    return NameIndex([*_bundled(), *names])


@cache
def _bundled() -> tuple[str, ...]:
    return tuple(name for persona in bundled_personas().values() for name in persona.names.values())


def addressed_personas(texts: Iterable[str]) -> list[str]:
    """Names of bundled personas that a dialogue names in full: there "Nora" is Nora Vale, elsewhere somebody's."""
    lowered = to_lower(plain("\n".join(texts)))
    return [name for name in _bundled() if to_lower(name) in lowered]


def find_allowed(text: str, language: str, companions: Sequence[str] = ()) -> list[AllowedSpan]:
    """What stays in a text, in order; none overlap.

    Args:
        text: normalised one character to one character.
        language: `en` or `zh`.
        companions: names, each as it is (`companion_names` adds first words); bundled personas stay by their full
            names.
    """
    lowered = to_lower(text)
    found = [AllowedSpan(*m.span(), "title") for m in (_RE["title"].finditer(text) if "《" in text else ())]
    for start, end in _companions(tuple(companions)).find(lowered):
        if not _name_continues(text, start, end) and _inside_han_name(text, start, end) is None:
            found.append(AllowedSpan(start, end, "companion"))
    for start, end in _figures(language).find(lowered):
        own = _RE["speakers_own"].search(lowered, max(start - 16, 0), start)
        dotted = "·" in (text[start - 1 : start], text[end : end + 1])  # a part of 苏珊·凯恩 alone is no figure
        if not own and not dotted and not _is_private_mention(text, lowered, start, end):
            found.append(AllowedSpan(start, end, "figure"))
    allowed: list[AllowedSpan] = []
    for stays in sorted(found, key=lambda a: (a.start, -a.end)):  # of names inside titles and the like the longer stays
        if not allowed or stays.start >= allowed[-1].end:
            allowed.append(stays)
    return allowed


def private_namesakes(text: str, language: str, companions: Sequence[str] = ()) -> list[Span]:
    """Persons after all: figures' names that are somebody's whom the speaker knows, names longer than a companion's.

    Arguments as in `find_allowed`.
    """
    lowered = to_lower(text)
    longer = [_inside_han_name(text, a, b) for a, b in _companions(tuple(companions)).find(lowered)]
    figures = [place for place in _figures(language).find(lowered) if _is_private_mention(text, lowered, *place)]
    return [*filter(None, longer), *(Span(start, end, "PERSON", _BESIDE) for start, end in figures)]


def _is_private_mention(text: str, lowered: str, start: int, end: int) -> bool:
    """Whether a name that a private person may bear ("Chris Evans"; no "Gandalf") is said of one."""
    name = text[start:end]
    private = len(name.split()) == 2 if name[0].isascii() else len(name) <= 3 and name[0] in _any_surnames()
    cue = _RE["private_cue"].search(lowered, max(start - 48, 0), start) if private else None
    return cue is not None and (cue["self"] is None or _RE["no_name_word"].match(lowered, end) is not None)


@cache
def _any_surnames() -> frozenset[str]:
    from h2htalk.curation.anonymize.chinese.name_segmenter import surnames

    return frozenset(name[0] for name in surnames())


def _name_continues(text: str, start: int, end: int) -> bool:
    """Whether a word follows that makes it somebody else's: the companion is "Nora", and "Nora Smith" is not."""
    if " " in text[start:end] or not text[start].isascii():
        return False
    following = _RE["following"].match(text, end)
    return following is not None and to_lower(following[1]) not in words().words


def _inside_han_name(text: str, start: int, end: int) -> Span | None:
    """Somebody else's name that a companion's is part of: 苏晚 in 叫苏晚彤, 小雨 in 陈小雨."""
    if not "\u4e00" <= text[start] <= "\u9fff" or end - start < 2:
        return None
    if _RE["surname_before"].search(text, max(start - 3, 0), start):
        return Span(start - 1, end, "PERSON", _BESIDE)
    if not _RE["given_behind"].match(text, end) or usual(text[end : end + 2]):
        return None
    told = _RE["called_before"].search(text, max(start - 3, 0), start) or _RE["name_end"].match(text, end + 1)
    return Span(start, end + 1, "PERSON", _BESIDE) if told else None


def namesakes_beside_data(text: str, allowed: Sequence[AllowedSpan], found: Sequence[Span]) -> list[Span]:
    """Figures' names that stand beside what is somebody's: persons after all."""
    values = [span for span in found if span.type in _NEAR]
    figures = [a for a in allowed if a.kind == "figure" and any(_stands_beside(text, a, value) for value in values)]
    return [Span(figure.start, figure.end, "PERSON", _BESIDE) for figure in figures]


def _stands_beside(text: str, figure: AllowedSpan, value: Span) -> bool:
    """Whether a value is told right behind a name, with a cue between, or right before it."""
    if 0 <= value.start - figure.end <= _LONGEST_GAP:
        return _RE["between"].fullmatch(to_lower(text[figure.end : value.start])) is not None
    back = text[value.end : figure.start]
    return 0 <= figure.start - value.end <= 3 and not any(map(str.isalpha, back))
