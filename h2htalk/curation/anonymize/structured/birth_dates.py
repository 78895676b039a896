"""Dates of birth: dates beside a word for being born or a birthday. Other dates stay."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.curation.anonymize.structured.reading import Hit, Reading

_RE = patterns("birth_dates")
_REACH = {"en": 40, "zh": 14}


def birth_dates(reading: Reading) -> Iterator[Hit]:
    """Dates with a cue in the same sentence, and in Chinese those that are somebody's: 我对象92年1月30号的."""
    text, language = reading.text, reading.language
    cues = [found.span() for found in _RE[f"cue_{language}"].finditer(text)]
    for found in _RE[f"date_{language}"].finditer(text):
        start, end = found.span()
        near = any(_is_near(text, start, end, cue, _REACH[language]) for cue in cues)
        if near or (language == "zh" and _is_of_somebody(text, start, end)):
            yield start + (4 if found.group().startswith("the ") else 0), end, 0.85


def _is_of_somebody(text: str, start: int, end: int) -> bool:
    dated = _RE["birth_year"].search(text, start, end) and _RE["of"].match(text, end)
    return bool(dated and _RE["of_somebody"].search(text, max(start - 6, 0), start))


def _is_near(text: str, start: int, end: int, cue: tuple[int, int], reach: int) -> bool:
    if cue[0] < end and start < cue[1]:
        return False
    between = text[cue[1] : start] if cue[1] <= start else text[end : cue[0]]
    parted = _RE["sentence_end"].search(between) and not _RE["lead"].fullmatch(between)
    return len(between) <= reach and not parted
