"""Find any of many phrases in a text, in one walk over it (Aho-Corasick)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Accepted = Callable[[str, int, int], bool]


class PhraseIndex(Generic[T]):
    """Phrases, each with a value. Texts and phrases are compared as they are: give both in one case."""

    def __init__(self, phrases: Iterable[tuple[str, T]], accepted: Accepted | None = None) -> None:
        """`accepted` says of text, start and end whether a phrase counts there (None: everywhere)."""
        import ahocorasick

        self._automaton: Any = ahocorasick.Automaton()
        self._accepted = accepted
        for phrase, value in phrases:
            if phrase:
                self._automaton.add_word(phrase, (len(phrase), value))
        if self._automaton:
            self._automaton.make_automaton()

    def __bool__(self) -> bool:
        """Whether the index holds any phrase."""
        return bool(self._automaton)

    def values(self, text: str) -> set[T]:
        """The values of all phrases that a text contains, of those that overlap, too."""
        return {value for _, (_, value) in self._automaton.iter(text)} if self._automaton else set()

    def find(self, text: str, accepted: Accepted | None = None) -> Iterator[tuple[int, int, T]]:
        """Start, end and value of phrases in a text, from left to right; none overlap, the longest that starts first.

        Time grows with the text and the number of matches. `accepted` replaces that of the index for this text.
        """
        if not self._automaton:
            return
        accepted = accepted or self._accepted
        hits = [
            (last + 1 - size, -size, value) for last, (size, value) in self._automaton.iter(text)
        ]
        position = 0
        for start, minus_size, value in sorted(hits, key=lambda hit: hit[:2]):
            end = start - minus_size
            if start >= position and (accepted is None or accepted(text, start, end)):
                yield start, end, value
                position = end
