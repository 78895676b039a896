"""Values in another format: a number with other marks between its digits, a full name written as one word or with dots.

Text and values are compared by their letters and digits alone; what stands between them must be a mark or two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from h2htalk.curation.anonymize.allow_list import to_lower
from h2htalk.curation.anonymize.normalization import HAN_DIGITS
from h2htalk.curation.anonymize.spans import Span

SHORTEST = 6  # digits and letters: shorter ones are met by chance
_START = 4
_FEW_VALUES = 50  # values that are looked for one by one before a text is walked over
_HAN = re.compile("[\u4e00-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")
_DIGITS = str.maketrans(HAN_DIGITS)
_NUMBER_CHARS = re.compile("[0-9a-z]")
_NAME_CHARS = re.compile(r"[^\W\d_]")
_NUMBER_MARKS = re.compile(r"[\s.·/()_,，、:*+\-]{0,3}")
_NAME_MARKS = re.compile(r"[ ._*·'\-]?")

Known = tuple[str, float]  # type, score


class ReformattedValues:
    """The numbers and full names of one dialogue, by their letters and digits."""

    def __init__(self, numbers: Iterable[tuple[str, Known]], names: Iterable[tuple[str, Known]]) -> None:
        """`numbers`: digits and letters in lower case, `SHORTEST` or more; `names`: letters of full names."""
        self._numbers = _Stream({n: k for n, k in sorted(numbers) if len(n) >= SHORTEST})
        self._names = _Stream({n: k for n, k in sorted(names) if len(n) >= SHORTEST or (_HAN.match(n) and len(n) > 1)})

    def find(self, shown: str) -> list[Span]:
        """Where they stand in a text (plain), in order."""
        lowered = to_lower(shown)
        hits: list[Span] = []
        if self._numbers.values:
            text = lowered.translate(_DIGITS)
            for start, end, (kind, score) in self._numbers.find(text, _NUMBER_CHARS, _NUMBER_MARKS):
                if _stands_alone(text, start, end):
                    hits.append(Span(start, end, kind, score))
        if self._names.values:
            for start, end, (kind, score) in self._names.find(lowered, _NAME_CHARS, _NAME_MARKS):
                # Han characters that stand together are looked for as they are.
                together = end - start == len("".join(_HAN.findall(lowered, start, end)))
                if not together and not _latin(lowered, start - 1, start) and not _latin(lowered, end, end + 1):
                    hits.append(Span(start, end, kind, score))
        return sorted(hits)


class _Stream:
    def __init__(self, values: dict[str, Known]) -> None:
        self.values = values
        self._lengths: dict[str, list[int]] = {}
        for value in values:
            self._lengths.setdefault(value[:_START], []).append(len(value))
        for start, lengths in self._lengths.items():
            self._lengths[start] = sorted(set(lengths), reverse=True)
        # A name of two Han characters has no start of four.
        self._starts = sorted({len(start) for start in self._lengths}, reverse=True)

    def find(self, text: str, chars: re.Pattern[str], marks: re.Pattern[str]) -> list[tuple[int, int, Known]]:
        places = [m.start() for m in chars.finditer(text)]
        stream = "".join([text[at] for at in places])
        hits: list[tuple[int, int, Known]] = []
        if len(self.values) <= _FEW_VALUES and not any(value in stream for value in self.values):
            return hits
        at = 0
        while at < len(stream):
            length = 0
            for size in self._sizes(stream, at):
                known = self.values.get(stream[at : at + size])
                if known is not None and at + size <= len(stream) and _is_close(text, places, at, size, marks):
                    hits.append((places[at], places[at + size - 1] + 1, known))
                    length = size
                    break
            at += max(length, 1)
        return hits

    def _sizes(self, stream: str, at: int) -> list[int]:
        return [n for size in self._starts for n in self._lengths.get(stream[at : at + size], ())]


def _is_close(text: str, places: list[int], at: int, size: int, marks: re.Pattern[str]) -> bool:
    """Whether nothing but a mark or two stands between the characters."""
    return all(marks.fullmatch(text, places[n] + 1, places[n + 1]) is not None for n in range(at, at + size - 1))


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a number is not part of a longer one; one of digits in a row may stand in anything."""
    if text[start:end].isdigit():
        return True
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    if text[start:end].upper() == text[start:end]:  # digits and marks
        return not (before.isdigit() or after.isdigit())
    return not (_NUMBER_CHARS.match(before) or _NUMBER_CHARS.match(after))


def _latin(text: str, start: int, end: int) -> bool:
    char = text[max(start, 0) : end] if start >= 0 else ""
    return _LETTER.match(char) is not None and _HAN.match(char) is None
