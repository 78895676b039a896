"""Find any of many phrases in a text, in one walk over it (Aho-Corasick)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Accepted = Callable[[str, int, int], bool]


def everywhere(text: str, start: int, end: int) -> bool:
    """Accept a phrase wherever it stands."""
    return True


class PhraseIndex(Generic[T]):
    """Phrases, each with a value. Texts and phrases are compared as they are: give both in one case."""

    def __init__(self, phrases: Iterable[tuple[str, T]], accepted: Accepted = everywhere) -> None:
        """`accepted` says of text, start and end whether a phrase counts there, such as whole words alone."""
        import ahocorasick

        self._automaton: Any = ahocorasick.Automaton()
        self._accepted = accepted
        for phrase, value in phrases:
            if phrase:
                self._automaton.add_word(phrase, (len(phrase), value))
        if self._automaton:
            self._automaton.make_automaton()

    def find(self, text: str) -> Iterator[tuple[int, int, T]]:
        """Start, end and value of phrases in a text, from left to right; none overlap, the longest that starts first.

        Time grows with the text and the number of matches.
        """
        if not self._automaton:
            return
        hits = [(last + 1 - size, -size, value) for last, (size, value) in self._automaton.iter(text)]
        at = 0
        for start, minus_size, value in sorted(hits, key=lambda hit: hit[:2]):
            end = start - minus_size
            if start >= at and self._accepted(text, start, end):
                yield start, end, value
                at = end
