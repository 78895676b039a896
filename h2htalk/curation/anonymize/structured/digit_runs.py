"""Runs of digits, however they are written: grouped, in Han digits, with anything in between.

A run is a row of groups with short gaps between them; a window is a stretch of whole groups. What a window is, its
digits, its grouping and its cues say (`phones`, `identity_numbers`); nothing here knows a type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from h2htalk.curation.anonymize.normalization import HAN
from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.curation.anonymize.structured.reading import Near, Reading

_RE = patterns("digit_runs")
_FEWEST_DIGITS, _MOST_DIGITS = 5, 20
_LONGEST_GAP = 4
# In a row of more groups (a table, a count) a number has few.
_LONG_ROW, _FEW = 80, 5


@dataclass(frozen=True, slots=True)
class Group:
    """Digits without a gap, at `start` to `end` of a reading."""

    start: int
    end: int
    digits: str


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring groups of a run, as one number.

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
        return all(gap is None or _parts(gap, inner) for gap in (self.before, self.after))

    @property
    def glued(self) -> bool:
        """It stands at a Latin letter, as the digits of a code do."""
        return self.lead[-1:].isascii() and self.lead[-1:].isalpha()


def _parts(gap: str, inner: set[str]) -> bool:
    """Whether a gap parts two numbers: another one than those inside, and a mark for it, a bracket or a space."""
    mark = gap.strip()
    return (mark or gap) not in inner and (mark in ("", *"()[]:") or _RE["strong_gap"].search(gap) is not None)


def runs(reading: Reading, taken: list[tuple[int, int]]) -> Iterator[list[Group]]:
    """The runs of a reading with five digits or more, outside of what is taken (ordered stretches)."""
    text = reading.text
    token, source = (_RE["token"], reading.digits) if text.isascii() else (_RE["token_han"], _zeroed(reading))
    groups: list[Group] = []
    at = 0
    for match in token.finditer(source):
        start, end = match.span()
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        covered = at < len(taken) and taken[at][0] < end
        if covered or (groups and not _joins(text, groups[-1], start, match.group())):
            yield from _run(groups, text)
            groups = []
        if not covered:
            groups.append(Group(start, end, reading.digits[start:end]))
    yield from _run(groups, text)


def _zeroed(reading: Reading) -> str:
    """The text with every `o` that reads as a zero as one, Han digits left."""
    pairs = zip(reading.text, reading.digits, strict=True)
    return "".join(["0" if a == "o" and b == "0" else a for a, b in pairs]) if "o" in reading.text else reading.text


def _joins(text: str, last: Group, start: int, token: str) -> bool:
    """Whether a token goes on with the row. A lone Han digit behind a mark begins a clause (二十年)."""
    if start - last.end > _LONGEST_GAP or _RE["gap"].fullmatch(text, last.end, start) is None:
        return False
    other = (token in HAN) != (text[last.start] in HAN)
    return start == last.end or not other or min(len(token), last.end - last.start) > 1


def _run(groups: list[Group], text: str) -> Iterator[list[Group]]:
    """The groups as runs, where they are enough; days and times part them."""
    if not groups:
        return
    dates = [match.span() for match in _RE["date"].finditer(text, groups[0].start, groups[-1].end)]
    pieces: list[list[Group]] = [[]]
    for group in groups:
        if len(groups) > 1 and any(a <= group.start < b for a, b in dates):
            pieces.append([])
        else:
            pieces[-1].append(group)
    yield from (piece for piece in pieces if sum(len(group.digits) for group in piece) >= _FEWEST_DIGITS)


def windows(run: list[Group], text: str, near: Near) -> Iterator[Window]:
    """Every stretch of whole groups with 5 to 20 digits; of a long row, of few groups."""
    gaps = [text[a.end : b.start] for a, b in pairwise(run)]
    most = _FEW if len(run) > _LONG_ROW else len(run)
    for first in range(len(run)):
        for last in range(first, min(first + most, len(run))):
            groups = run[first : last + 1]
            digits = "".join(group.digits for group in groups)
            if len(digits) > _MOST_DIGITS:
                break
            if len(digits) < _FEWEST_DIGITS:
                continue
            start, end = groups[0].start, groups[-1].end
            yield Window(
                start,
                end,
                digits,
                shape=tuple(len(group.digits) for group in groups),
                gaps=tuple(gaps[first:last]),
                before=gaps[first - 1] if first else None,
                after=gaps[last] if last < len(gaps) else None,
                lead=text[max(0, start - 3) : start],
                tail=text[end : end + 3],
                near=near,
            )
