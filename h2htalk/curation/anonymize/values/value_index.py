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
_HAN = re.compile("[\u4e00-\u9fff]")
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


class ReformattedValues:
    """The numbers and full names of one dialogue, known by letters and digits, with a mark or two between those."""

    def __init__(self, numbers: Iterable[tuple[str, Known]], names: Iterable[tuple[str, Known]]) -> None:
        """`numbers`: digits and letters in lower case, `SHORTEST` or more; `names`: letters of full names."""
        self._numbers = ValueIndex((n, k) for n, k in sorted(numbers) if len(n) >= SHORTEST)
        self._names = ValueIndex(
            (n, k) for n, k in sorted(names) if len(n) >= SHORTEST or (_HAN.match(n) and len(n) > 1)
        )

    def find(self, shown: str) -> list[Span]:
        """Where they stand in a text (plain), in order."""
        lowered = to_lower(shown)
        numbers = _compact(lowered.translate(_DIGITS), self._numbers, _NUMBER_CHARS, _NUMBER_MARKS)
        names = _compact(lowered, self._names, _NAME_CHARS, _NAME_MARKS)
        hits = [hit for hit in numbers if _is_whole_number(lowered, hit.start, hit.end)]
        # Han characters that stand together are looked for as they are.
        hits += [hit for hit in names if len(_HAN.findall(lowered, hit.start, hit.end)) < hit.end - hit.start
                 and not _LETTER.match(lowered, hit.end)
                 and not (hit.start and _LETTER.match(lowered, hit.start - 1))]  # fmt: skip
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
