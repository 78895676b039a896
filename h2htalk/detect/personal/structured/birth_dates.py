"""Rule of dates of birth: dates beside a word for being born or a birthday; other dates stay."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.detect.personal.structured.reading import Hit, Reading, patterns

_BIRTH = patterns("birth_dates")
_REACH = {"en": 40, "zh": 14}
_ARTICLE = "the "


def birth_dates(reading: Reading) -> Iterator[Hit]:
    """Dates with a cue in the same sentence, and in Chinese those that are somebody's: 我对象92年1月30号的."""
    text = reading.text
    cues = [cue.span() for cue in _BIRTH[f"cue_{reading.language}"].finditer(text)]
    for match in _BIRTH[f"date_{reading.language}"].finditer(text):
        start = match.start()
        end = match.end()
        counts = _has_birth_cue(reading, cues, start, end)
        if not counts and reading.language == "zh":
            counts = _is_birth_of_somebody(text, start, end)
        if counts and not _BIRTH["past"].search(text, start, end + 6):
            if match.group().startswith(_ARTICLE):
                start += len(_ARTICLE)
            yield start, end, 0.85


def _has_birth_cue(reading: Reading, cues: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a word for a birth stands near a date, in the same sentence or right before it."""
    for cue_start, cue_end in cues:
        if cue_end <= start:
            between = reading.text[cue_end:start]
        else:
            between = reading.text[end:cue_start]
        if len(between) > _REACH[reading.language]:
            continue
        if _BIRTH["lead"].fullmatch(between) or not _BIRTH["sentence_end"].search(between):
            return True
    return False


def _is_birth_of_somebody(text: str, start: int, end: int) -> bool:
    """Whether a Chinese date with a year of birth is said to be somebody's."""
    if not _BIRTH["birth_year"].search(text, start, end):
        return False
    if not _BIRTH["of_somebody"].search(text, max(start - 6, 0), start):
        return False
    return _BIRTH["of"].match(text, end) is not None
