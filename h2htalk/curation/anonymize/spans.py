"""A piece of personal data in a text: where it stands, what it is, and how sure we are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

# Presidio's names where it has one. PHONE_NUMBER is mobile and landline; NATIONAL_ID every number that a state gives
# to a person; ACCOUNT_NUMBER of banks (IBAN too), insurances and services; ADDRESS leads to a door or a building.
TYPES = (
    "EMAIL_ADDRESS",
    "PHONE_NUMBER",
    "NATIONAL_ID",
    "CREDIT_CARD",
    "ACCOUNT_NUMBER",
    "QQ",
    "WECHAT",
    "HANDLE",
    "LICENSE_PLATE",
    "DATE_OF_BIRTH",
    "URL",
    "IP_ADDRESS",
    "ADDRESS",
    "PERSON",
    "ORGANIZATION",
)
# Which of two spans stays where both cover a character and are equally sure: what is checked by a rule before what is
# guessed, what names a person's place before what names a firm.
_RANK = {name: len(TYPES) - place for place, name in enumerate(TYPES)}


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` to `end` (exclusive) of a text are personal data of a type; `score` in [0, 1].

    `found_by` says which recogniser found it, where that is known.
    """

    start: int
    end: int
    type: str
    score: float
    found_by: str = field(default="", compare=False)

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end


def resolve_overlaps(spans: Iterable[Span]) -> list[Span]:
    """Spans that do not overlap, in the order of the text.

    Of two that do, the surer stays, then the longer, then the type that stands first in `TYPES`. One that holds a
    surer one whole is not lost: what sticks out on either side stays marked, so that nothing found shows again.
    Neighbours of one type stay apart ("Tom Ann" are two people).
    """
    settled: list[Span] = []
    group: list[Span] = []
    reach = 0
    # Group by group of spans that touch: a long text has many, and each looks at those of its group alone.
    for span in sorted(spans):
        if group and span.start >= reach:
            settled += _resolve_group(group)
            group, reach = [], 0
        group.append(span)
        reach = max(reach, span.end)
    return settled + _resolve_group(group)


def _resolve_group(group: list[Span]) -> list[Span]:
    if len(group) < 2:
        return group
    kept: list[Span] = []
    for span in sorted(group, key=lambda s: (-s.score, s.start - s.end, -_RANK.get(s.type, 0), s.start)):
        kept.extend(uncovered(span, [other for other in kept if other.overlaps(span)]))
    return sorted(kept)


def uncovered(span: Span, taken: Sequence[Span]) -> list[Span]:
    """The stretches of a span that no taken one covers; the taken ones do not overlap each other."""
    ordered = sorted(taken)
    starts = [span.start, *(max(other.end, span.start) for other in ordered)]
    ends = [*(min(other.start, span.end) for other in ordered), span.end]
    return [replace(span, start=a, end=b) for a, b in zip(starts, ends, strict=True) if a < b]


class TakenCharacters:
    """The characters that spans found so far cover."""

    def __init__(self, size: int) -> None:
        self._marks = bytearray(size)

    def mark(self, start: int, end: int) -> None:
        self._marks[start:end] = b"\x01" * (end - start)

    def free(self, start: int, end: int) -> bool:
        """Whether no character from `start` to `end` is taken."""
        return self._marks.find(1, start, end) < 0

    def keep(self, spans: Iterable[Span]) -> list[Span]:
        """The spans that are free, each taken as it comes."""
        kept = []
        for span in spans:
            if self.free(span.start, span.end):
                self.mark(span.start, span.end)
                kept.append(span)
        return kept
