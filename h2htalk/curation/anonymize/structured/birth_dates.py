"""Dates of birth: a date beside a word for being born or a birthday. Other dates stay."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured.patterns import patterns

_RE = patterns("birth_dates")
_REACH = {"en": 40, "zh": 14}


def birth_date_spans(text: str, language: str) -> Iterator[Span]:
    """Spans of DATE_OF_BIRTH in a plain text in lower case."""
    cues = [found.span() for found in _RE[f"cue_{language}"].finditer(text)]
    for found in _RE[f"date_{language}"].finditer(text):
        start, end = found.span()
        near = any(_is_near(text, start, end, cue, _REACH[language]) for cue in cues)
        if near or _is_of_somebody(text, start, end, language):
            yield Span(start + (4 if found.group().startswith("the ") else 0), end, "DATE_OF_BIRTH", 0.85)


def _is_of_somebody(text: str, start: int, end: int, language: str) -> bool:
    """Whether a date with its year is said of a person: 我对象92年1月30号的, "my daughter's 27 nov 2011"."""
    if not _RE["birth_year"].search(text, start, end):
        return False
    if language == "en":
        before = (_RE["of_somebody_en"], 24), (_RE["on_paper"], 60)
        return any(pattern.search(text, max(start - reach, 0), start) for pattern, reach in before)
    said = _RE["of_somebody"].search(text, max(start - 6, 0), start) and _RE["of"].match(text, end)
    beside = _RE["listed"].match(text, end) or _RE["born"].match(text, end)
    beside = beside or _RE["listed_after"].search(text, max(start - 8, 0), start)
    return bool(said or beside)


def _is_near(text: str, start: int, end: int, cue: tuple[int, int], reach: int) -> bool:
    """Whether a cue stands in the same sentence, near the date."""
    if cue[0] < end and start < cue[1]:
        return False
    between = text[cue[1] : start] if cue[1] <= start else text[end : cue[0]]
    return len(between) <= reach and (not _RE["sentence_end"].search(between) or bool(_RE["lead"].fullmatch(between)))
