"""A piece of personal data in a text: where it stands, what it is, and how sure we are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

# Each type, by Presidio's name where it has one, and our recogniser of it in Presidio's registry. PHONE_NUMBER is
# mobile and landline; NATIONAL_ID every number that a state gives to a person; ACCOUNT_NUMBER of banks (IBAN too),
# insurances and services; ADDRESS leads to a door or a building.
RECOGNIZERS = {
    "EMAIL_ADDRESS": "ChatWebRecognizer",
    "PHONE_NUMBER": "ChatNumberRecognizer",
    "NATIONAL_ID": "ChatNumberRecognizer",
    "CREDIT_CARD": "ChatNumberRecognizer",
    "ACCOUNT_NUMBER": "ChatNumberRecognizer",
    "QQ": "ChatAccountRecognizer",
    "WECHAT": "ChatAccountRecognizer",
    "HANDLE": "ChatAccountRecognizer",
    "LICENSE_PLATE": "ChatNumberRecognizer",
    "DATE_OF_BIRTH": "ChatNumberRecognizer",
    "URL": "ChatWebRecognizer",
    "IP_ADDRESS": "ChatWebRecognizer",
    "ADDRESS": "ChatAddressRecognizer",
    "PERSON": "ChatPersonRecognizer",
    "ORGANIZATION": "ChatOrganizationRecognizer",
}
TYPES = tuple(RECOGNIZERS)
# Which of two spans stays where both cover a character and are equally sure: what is checked by a rule before what is
# guessed, what names a person's place before what names a firm.
_RANK = {name: len(TYPES) - place for place, name in enumerate(TYPES)}
_FREE = re.compile(b"\0+")


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
    ordered = sorted(spans, key=lambda s: (-s.score, s.start - s.end, -_RANK.get(s.type, 0), s.start))
    taken = bytearray(max((span.end for span in ordered), default=0))
    kept: list[Span] = []
    for span in ordered:
        free = [found.span() for found in _FREE.finditer(taken, span.start, span.end)]
        kept += [replace(span, start=start, end=end) for start, end in free]
        taken[span.start : span.end] = b"\x01" * (span.end - span.start)
    return sorted(kept)
