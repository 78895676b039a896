"""Which characters of a reading are spoken for, asked and marked in constant time a character."""

from __future__ import annotations

from collections.abc import Iterable

from h2htalk.curation.anonymize.spans import Span


class Places:
    """The characters that spans found so far cover."""

    def __init__(self, size: int) -> None:
        self._marks = bytearray(size)

    def mark(self, spans: Iterable[Span]) -> None:
        for span in spans:
            self._marks[span.start : span.end] = b"\x01" * (span.end - span.start)

    def free(self, start: int, end: int) -> bool:
        """Whether no character from `start` to `end` is taken."""
        return self._marks.find(1, start, end) < 0

    def keep(self, spans: Iterable[Span]) -> list[Span]:
        """The spans that are free, each taken as it comes."""
        kept = []
        for span in spans:
            if self.free(span.start, span.end):
                self.mark([span])
                kept.append(span)
        return kept
