"""Runs of digits, however they are written: grouped, spelt, in Han digits, with anything in between.

A run is a row of groups with short gaps between them; a window is a stretch of whole groups. What a window is, its
digits, its grouping and its cues say (`phones`, `identities`); nothing here knows a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText
from h2htalk.curation.anonymize.structured.number_cues import Near

MOST_DIGITS = 20
_WORDS = {
    **dict(
        zip(
            ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"],
            "0123456789",
            strict=True,
        )
    ),
    "oh": "0",
}
_WORD = "zero|one|two|three|four|five|six|seven|eight|nine|oh"
_TOKEN = re.compile(
    rf"[0-9]+|[{HAN}○◯⭕]+|(?<![a-z])(?:double|triple)[ -](?:{_WORD}|[0-9])(?![a-z0-9])|(?<![a-z])(?:{_WORD})(?![a-z])"
)
_PLAIN_TOKEN = re.compile(r"[0-9]+")
_ASCII_HAN_TOKEN = re.compile(rf"[0-9]+|[{HAN}○◯⭕]+")
# A number word beside another one or beside a digit: only then are words read at all.
_SPELT = re.compile(rf"(?<![a-z])(?:{_WORD})(?![a-z])[^\w\n]{{0,3}}(?:(?:{_WORD})(?![a-z])|[0-9])")
_GAP = re.compile(r"(?:[^\w$%¥€£=×]|_)*")
_LONGEST_GAP = 4
_LONG_ROW = 80
# What looks like a row of digits and is a day, a time, an amount.
_DATE = re.compile(
    r"(?<![0-9])(?:(?:19|20)[0-9]{2}(?P<a>[-./])(?:0?[1-9]|1[0-2])(?P=a)(?:[0-2]?[0-9]|3[01])"
    r"|(?:[0-2]?[0-9]|3[01])(?P<b>[-./])(?:[0-2]?[0-9]|3[01])(?P=b)(?:19|20)[0-9]{2}"
    r"|[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?)(?![0-9]|[-./:][0-9])"
)


@dataclass(frozen=True, slots=True)
class Group:
    """Digits without a gap, at `start` to `end` of a reading."""

    start: int
    end: int
    digits: str
    spelt: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Groups with short gaps; `gaps[i]` stands between groups i and i + 1."""

    groups: tuple[Group, ...]
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Groups `first` to `last` (inclusive) of a run, as one number.

    `shape`: digits a group. `gaps`: between them. `before`, `after`: the gap to the neighbour groups, None at the end
    of the run. `lead`: the three characters before it, `tail`: the three behind it. `near`: its cues.
    """

    start: int
    end: int
    digits: str
    shape: tuple[int, ...]
    gaps: tuple[str, ...]
    before: str | None
    after: str | None
    lead: str
    tail: str
    near: Near

    @property
    def whole(self) -> bool:
        """Nothing says that it is a piece of a longer row: no neighbour, or one that stands further off."""
        inner = {gap.strip() or gap for gap in self.gaps}
        return all(gap is None or _stronger(gap, inner) for gap in (self.before, self.after))

    @property
    def plus(self) -> bool:
        return re.search(r"\+[\s\-(]{0,2}$", self.lead) is not None

    @property
    def glued(self) -> bool:
        """It stands at a Latin letter, as the digits of a code do."""
        return self.lead[-1:].isascii() and self.lead[-1:].isalpha()


def _stronger(gap: str, inner: set[str]) -> bool:
    return (bool(re.search(r"[,;\n/|&]|,|\s{2}", gap)) and (gap.strip() or gap) not in inner) or (
        gap.strip() in ("(", ")", "[", "]", ":", "")
        and gap.strip() not in inner
        and not (gap.isspace() and gap in inner)
    )


def runs(normalized: NormalizedText, taken: list[tuple[int, int]]) -> Iterator[Run]:
    """The runs of a reading with five digits or more, outside of what is taken (ordered stretches)."""
    text = normalized.text
    token = _PLAIN_TOKEN
    if _SPELT.search(text):
        token = _TOKEN
    elif not text.isascii():
        token = _ASCII_HAN_TOKEN
    source = text if normalized.digits == text or token is not _PLAIN_TOKEN else normalized.digits
    groups: list[Group] = []
    at = 0
    for match in token.finditer(_zeroed(normalized) if source is text else source):
        start, end = match.span()
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        if at < len(taken) and taken[at][0] < end:
            yield from _run(groups, text)
            groups = []
            continue
        if groups and not _joins(text, groups[-1], start, match.group()):
            yield from _run(groups, text)
            groups = []
        groups.append(Group(start, end, *_value(match.group(), normalized.digits[start:end])))
    yield from _run(groups, text)


def _zeroed(normalized: NormalizedText) -> str:
    """The text with every `o` that reads as a zero as one, Han digits left."""
    if "o" not in normalized.text or normalized.text == normalized.digits:
        return normalized.text
    return "".join(
        ["0" if a == "o" and b == "0" else a for a, b in zip(normalized.text, normalized.digits, strict=True)]
    )


def _value(token: str, digits: str) -> tuple[str, bool]:
    if digits.isdigit():
        return digits, False
    first, _, second = token.replace("-", " ").partition(" ")
    if not second:
        return _WORDS.get(first, ""), True
    return _WORDS.get(second, second) * (2 if first == "double" else 3), True


def _joins(text: str, last: Group, start: int, token: str) -> bool:
    """Whether a token goes on with the row. A lone Han digit behind a mark begins a clause (二十年)."""
    if start - last.end > _LONGEST_GAP or _GAP.fullmatch(text, last.end, start) is None:
        return False
    other = (token in HAN) != (text[last.start] in HAN)
    return start == last.end or not other or min(len(token), last.end - last.start) > 1


def _run(groups: list[Group], text: str) -> Iterator[Run]:
    """The groups as a run, if they are enough; days and times cut it."""
    if sum(len(group.digits) for group in groups) < 5:
        return
    start, end = groups[0].start, groups[-1].end
    dates = [match.span() for match in _DATE.finditer(text, start, end)] if len(groups) > 1 else []
    piece: list[Group] = []
    for group in groups:
        if any(a <= group.start < b for a, b in dates):
            yield from _piece(piece, text)
            piece = []
        else:
            piece.append(group)
    yield from _piece(piece, text)


def _piece(groups: list[Group], text: str) -> Iterator[Run]:
    if sum(len(group.digits) for group in groups) >= 5:
        yield Run(tuple(groups), tuple(text[a.end : b.start] for a, b in pairwise(groups)))


def windows(run: Run, text: str, near: Near) -> Iterator[Window]:
    """Every stretch of whole groups with 5 to 20 digits.

    Of a long row (a table, a count) only those behind its beginning that stand apart from their neighbours.
    """
    groups, gaps = run.groups, run.gaps
    for first in range(len(groups)):
        digits = ""
        apart = len(groups) > _LONG_ROW and first > MOST_DIGITS
        inner: set[str] = set()
        for last in range(first, len(groups)):
            digits += groups[last].digits
            if last > first:
                inner.add(gaps[last - 1])
            if apart and gaps[first - 1] in inner:
                break
            if apart and last < len(gaps) and gaps[last] in inner:
                continue
            if len(digits) > MOST_DIGITS:
                break
            if len(digits) < 5:
                continue
            start, end = groups[first].start, groups[last].end
            yield Window(
                start,
                end,
                digits,
                tuple(len(group.digits) for group in groups[first : last + 1]),
                gaps[first:last],
                gaps[first - 1] if first else None,
                gaps[last] if last < len(gaps) else None,
                text[max(0, start - 3) : start],
                text[end : end + 3],
                near,
            )
