"""Names in Latin letters inside Chinese text: English given names and pinyin (`Kevin`, `David Chen`, `liu yang`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from h2htalk.curation.anonymize.chinese.name_segmenter import KIN, left_cue, right_cue
from h2htalk.curation.anonymize.chinese.words import patterns, sections
from h2htalk.curation.anonymize.english.word_lists import RARE, folded, words

_RE = patterns("latin_names")

_PREFIX = "阿小老"
_LONGEST_RUN = 4  # more Latin words in a row are a foreign sentence
_BEFORE = 1.9


@cache
def _lowered(file: str, section: str) -> frozenset[str]:
    return frozenset(name.lower() for name in sections(file)[section])


def latin_names(text: str) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each name, from left to right."""
    run: list[re.Match[str]] = []
    for word in _RE["word"].finditer(text):
        if run and text[run[-1].end() : word.start()] not in (" ", "·"):
            yield from _in_run(text, run)
            run = []
        run.append(word)
    yield from _in_run(text, run)


def _in_run(text: str, run: list[re.Match[str]]) -> Iterator[tuple[int, int, float]]:
    public = _lowered("public_figures", "")
    if not run or len(run) > _LONGEST_RUN or text[run[0].start() : run[-1].end()].lower() in public:
        return
    if text[: run[0].start()].endswith(("（作者：", "(作者:", "(作者：")):
        return
    at = 0
    while at < len(run):
        size, score = _name(text, run, at)
        start, end = run[at].start(), run[at + max(size, 1) - 1].end()
        if size and text[start:end].lower() not in public:
            yield *_titled(text, start, end), score
        at += max(size, 1)


def _titled(text: str, start: int, end: int) -> tuple[int, int]:
    """With the form of address on either side: 阿May, Vivian姐."""
    title = _RE["title"].match(text, end)
    before = text[start - 1 : start]
    return start - 1 if before and before in _PREFIX else start, title.end() if title else end


def _name(text: str, run: list[re.Match[str]], at: int) -> tuple[int, float]:
    """How many words from `at` on are a name, and how sure that is."""
    first, second = run[at].group(), run[at + 1].group() if at + 1 < len(run) else ""
    left = left_cue(text, run[at].start()) if at == 0 else 0.0
    surnames = sections("foreign_names")["pinyin_surnames"]
    listed = first.lower() in _lowered("foreign_names", "latin")
    if listed and (left >= KIN or first.lower() not in _lowered("foreign_names", "latin_words")):
        if second[:1].isupper() and first[0].isupper() and (second.lower() in surnames or len(run) == 2):
            return 2, 0.85
        return (1, 0.8) if first[0].isupper() or len(run) == 1 else (0, 0.0)
    if len(run) == 1 and _is_cued(text, run[at], left):
        return 1, 0.7
    alike = bool(second) and first[0].isupper() == second[0].isupper()
    if alike and _two_words(first.lower(), second.lower(), surnames):
        around = max(left, right_cue(text, run[at + 1].end()))
        if first[0].isupper() or around > _BEFORE or left > 1.0:
            return 2, 0.8
    return 0, 0.0


def _is_cued(text: str, found: re.Match[str], left: float) -> bool:
    """A capitalised word that the English lists know as a given name, or that stands with a form of address."""
    word, name, lists = found.group(), folded(found.group()), words()
    if not word[0].isupper() or (word.isupper() and len(word) > 1):
        return False
    titled = _titled(text, *found.span()) != found.span() and name not in lists.never
    kind = lists.given.get(name, 0)
    return titled or kind >= RARE or (kind > 0 and left >= KIN)


def _two_words(first: str, second: str, surnames: frozenset[str]) -> bool:
    english = sections("foreign_names")["english"]
    surname, given = (first, second) if first in surnames else (second, first)
    return surname in surnames and english.isdisjoint((surname, given)) and _RE["given"].fullmatch(given) is not None
