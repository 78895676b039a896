"""Find many values in a text in one walk over it, as they are written or with other marks between their characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from h2htalk.curation.anonymize.allow_list import to_lower
from h2htalk.curation.anonymize.normalization import HAN_DIGITS
from h2htalk.curation.anonymize.spans import Span

T = TypeVar("T")
_START = 2  # characters by which values are told apart first
_FEW_VALUES = 50  # values that are looked for one by one before a text is walked over
SHORTEST = 6  # digits and letters of a reformatted value: shorter ones are met by chance
HAN = re.compile("[\u4e00-\u9fff]")
_LETTER = re.compile(r"[^\W\d_\u4e00-\u9fff]")
_DIGITS = str.maketrans(HAN_DIGITS)
_NUMBER_CHARS = re.compile("[0-9a-z]")
_NAME_CHARS = re.compile(r"[^\W\d_]")
_NUMBER_MARKS = re.compile(r"[\s.·/()_,，、:*+\-]{0,3}")
_NAME_MARKS = re.compile(r"[ ._*·'\-]?")

Known = tuple[str, float]  # type, score


class ValueIndex(Generic[T]):
    """What is known of each value, found by the value's first characters."""

    def __init__(self, values: Iterable[tuple[str, T]]) -> None:
        self.values = dict(values)
        self._sizes: dict[str, list[int]] = {}
        for size in sorted({len(value) for value in self.values}, reverse=True):
            for start in {value[:_START] for value in self.values if len(value) == size}:
                self._sizes.setdefault(start, []).append(size)

    def find(
        self, text: str, accepted: Callable[[int, int], bool] = lambda start, end: True
    ) -> Iterator[tuple[int, int, T]]:
        """(start, end, what is known) of each value in a text; of those that begin together, the longest accepted."""
        if len(self.values) <= _FEW_VALUES and not any(value in text for value in self.values):
            return
        at = 0
        while at < len(text):
            end = at + 1
            for size in self._sizes.get(text[at : at + _START], ()):
                known = self.values.get(text[at : at + size])
                if known is not None and at + size <= len(text) and accepted(at, at + size):
                    end = at + size
                    yield at, end, known
                    break
            at = end


def find_reformatted(shown: str, numbers: ValueIndex[Known], names: ValueIndex[Known]) -> list[Span]:
    """Where numbers and full names stand in a text (plain), in order, with a mark or two between their characters."""
    lowered = to_lower(shown)
    hits = [
        hit
        for hit in _compact(lowered.translate(_DIGITS), numbers, _NUMBER_CHARS, _NUMBER_MARKS)
        if _is_whole_number(lowered, hit.start, hit.end)
    ]
    for hit in _compact(lowered, names, _NAME_CHARS, _NAME_MARKS):
        # Han characters that stand together are looked for as they are.
        apart = len(HAN.findall(lowered, hit.start, hit.end)) < hit.end - hit.start
        if apart and not any(_LETTER.fullmatch(lowered[at : at + 1]) for at in (hit.start - 1, hit.end) if at >= 0):
            hits.append(hit)
    return sorted(hits)


def _compact(text: str, index: ValueIndex[Known], chars: re.Pattern[str], marks: re.Pattern[str]) -> Iterator[Span]:
    """Values in the text's characters of a kind, where nothing but a mark or two stands between those."""
    if not index.values:
        return
    places = [m.start() for m in chars.finditer(text)]

    def is_close(start: int, end: int) -> bool:
        return all(marks.fullmatch(text, places[n] + 1, places[n + 1]) for n in range(start, end - 1))

    for start, end, known in index.find("".join([text[at] for at in places]), is_close):
        yield Span(places[start], places[end - 1] + 1, *known)


def _is_whole_number(text: str, start: int, end: int) -> bool:
    """Whether a number is not part of a longer one; one of digits in a row may stand in anything."""
    found = text[start:end].translate(_DIGITS)
    if found.isdigit():
        return True
    others = re.compile("[0-9]" if found.upper() == found else "[0-9a-z]")  # digits and marks alone, or letters too
    return not (others.match(text[max(start - 1, 0) : start]) or others.match(text[end : end + 1]))
