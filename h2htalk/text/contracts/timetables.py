"""Check timetables: `HH:MM Activity` lines and numbered sub-schedules (docs/contracts.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from h2htalk.data.languages import Language, find_language
from h2htalk.errors import shorten
from h2htalk.text.contracts.first_person import find_first_person, patterns
from h2htalk.text.contracts.violations import Violation
from h2htalk.text.counting import count_length

ACTIVITIES = (2, 5)
LATEST_START_OF_EVENING = "20:00"

# Full-width digits, colon and point are read as their half-width forms.
_HALF_WIDTH = str.maketrans("０１２３４５６７８９：．", "0123456789:.")
_DAY_LINE = re.compile(r"(\d+:\d+)(?:\s+|(?=[\u3400-\u9fff]))([^\s\-–—:|,，、].*)")
_NUMBERED_LINE = re.compile(r"(\d+)\s?[.、)）]\s*(\S.*)")
_ANY_TIME = re.compile(r"(?<![\d:])\d+:\d+(?![\d:])")
_TIME = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)


def check_day(text: str, language: Language) -> list[Violation]:
    """Check ItineraryMiddle: 2-5 lines `HH:MM Activity`, times ascending, the last one sleep at 20:00 or later."""
    violations: list[Violation] = []
    times: list[str] = []
    lines = _lines(text)
    for line in lines:
        match = _DAY_LINE.fullmatch(line)
        if match is None:
            violations.append(Violation("line_form", f"not HH:MM and an activity: {shorten(line)}"))
            continue
        times.append(match[1])
        violations += _check_activity(match[2], language)
    low, high = ACTIVITIES
    if not low <= len(lines) <= high:
        violations.append(Violation("activity_count", f"{len(lines)} lines; {low} to {high} are asked"))
    violations += _check_times(times)
    if lines and not _is_sleep(lines[-1], language):
        violations.append(Violation("sleep", f"the last line must be sleep at 20:00 or later: {shorten(lines[-1])}"))
    return violations


def check_sub_schedule(text: str, language: Language) -> list[Violation]:
    """Check ItineraryAdvanced: at least 2 lines, numbered from 1, each with a time, times ascending, no first person.

    The time of a line is the first in it.
    """
    violations: list[Violation] = []
    times: list[str] = []
    lines = _lines(text)
    numbers: list[int] = []
    for line in lines:
        match = _NUMBERED_LINE.fullmatch(line)
        if match is None:
            violations.append(Violation("line_form", f"not a numbered line: {shorten(line)}"))
            continue
        numbers.append(int(match[1][:6]))
        time = _ANY_TIME.search(match[2])
        if time is None:
            violations.append(Violation("time", f"line {match[1][:6]} names no time HH:MM"))
        else:
            times.append(time[0])
        violations += _check_person(match[2], language)
    if numbers != list(range(1, len(numbers) + 1)):
        violations.append(Violation("numbering", f"lines are numbered {shorten(', '.join(map(str, numbers)))}"))
    if len(lines) < 2:
        violations.append(Violation("activity_count", f"{len(lines)} line; at least 2 are asked"))
    return violations + _check_times(times)


def _lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.translate(_HALF_WIDTH).splitlines())
    return [line for line in stripped if line]


def _check_activity(activity: str, language: Language) -> list[Violation]:
    violations: list[Violation] = []
    length, limit = count_length(activity, language), find_language(language).lengths["activity"]
    if length > limit:
        violations.append(Violation("too_long", f"activity of {length}; at most {limit}: {shorten(activity)}"))
    return violations + _check_person(activity, language)


def _check_person(line: str, language: Language) -> list[Violation]:
    pronoun = find_first_person(line, language)
    return [] if pronoun is None else [Violation("third_person", f"says {pronoun!r}: {shorten(line)}")]


def _check_times(times: Sequence[str]) -> list[Violation]:
    """Check that times are `HH:MM` and strictly ascend; invalid ones are left out of the order."""
    violations = [Violation("time", f"{shorten(t)} is not HH:MM, 00:00 to 23:59") for t in times if not _valid(t)]
    valid = [time for time in times if _valid(time)]
    for earlier, later in pairwise(valid):
        if earlier >= later:
            violations.append(Violation("time_order", f"{later} comes after {earlier}"))
            break
    return violations


def _valid(time: str) -> bool:
    return _TIME.fullmatch(time) is not None


def _is_sleep(line: str, language: Language) -> bool:
    match = _DAY_LINE.fullmatch(line)
    if match is None or not patterns(language)["sleep"].search(match[2]):
        return False
    return match[1] >= LATEST_START_OF_EVENING if _valid(match[1]) else True
