"""How an erased dialogue is recognised when its messages changed: by the lines that an item has in common with it.

Messages are edited, deleted or left out of a later export; then neither the whole nor the beginning of a dialogue is
what it was. A tombstone holds a keyed hash of each line of the erased dialogue, in their order, without those that a
dialogue that stays has as well. An item of the same source is of the erased dialogue where all its lines are of that
dialogue, in the same order, and have 24 characters or more together (a Chinese character counts as three).

In an export of one chat (`Program.is_one_chat`), where all lines are of the same two people, it is so also where it
has in common with the erased dialogue

* a line of the user of 40 characters or more (`LEAST_CHARACTERS`) that no other item of the export has, or
* two lines of 16 or more in the same order, which together have 40 or more and are a quarter of the item, the user's
  shared lines being 16 or more, or
* six lines in the same order, however short, that are half of the item's and together have 40 or more.

Records, and exports that hold many conversations, may have one opener, one persona prompt or one button in each of
them. In them the user's lines alone count, of the same person if the record names one, and two or more lines in the
same order have to be two thirds of the item, by number and by length, with 40 characters or more.

So "ok" and "good morning" identify nobody, nor does what a companion says to everybody or what many users begin with.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from h2htalk.curation.gather.exports.programs import PROGRAMS
from h2htalk.curation.gather.source_files import LEAST_CHARACTERS
from h2htalk.curation.workspace import mark, source_of

_LEAST_OF_WHOLE = 24
_LEAST_OF_LINE = 16
_SHORT_LINES = 6
_PART_OF_ITEM = 4  # a quarter
_PART_OF_LINES = 2  # half
_MOST_OF_CONVERSATION = 2 / 3

# Mark of a line -> the erased dialogues that have it, by number, and where in each.
LinePlaces = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a message: its keyed hash, and its length in bytes, of which a Chinese character has three."""

    mark: str
    length: int
    is_user: bool


@dataclass(frozen=True, slots=True)
class ErasedMarks:
    """What the tombstones hold of everybody who was erased.

    Attributes:
        marks: of ids, persons and words.
        lines: source -> for each erased dialogue the marks of its lines, in their order.
        recurring: marks of lines that several items of a chat have, found when it is read.
    """

    marks: frozenset[str] = frozenset()
    lines: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    recurring: set[str] = field(default_factory=set)
    _places: dict[str, dict[str, list[tuple[int, int]]]] = field(default_factory=dict)

    def line_places(self, source: str) -> LinePlaces:
        """Where the erased dialogues of a source have each line; made once."""
        if source not in self._places:
            places: dict[str, list[tuple[int, int]]] = {}
            for dialogue, line_marks in enumerate(self.lines.get(source, ())):
                for position, line_mark in enumerate(line_marks):
                    places.setdefault(line_mark, []).append((dialogue, position))
            self._places[source] = places
        return self._places[source]


def erased_marks(tombstones: Iterable[Mapping[str, Any]]) -> ErasedMarks:
    """The marks of everybody with a tombstone. Those of earlier versions have no lines."""
    marks: set[str] = set()
    lines: dict[str, list[Sequence[str]]] = {}
    for tombstone in tombstones:
        marks.update(tombstone.get("marks", ()))
        if tombstone.get("lines"):
            lines.setdefault(source_of(str(tombstone["id"])), []).append(tombstone["lines"])
    return ErasedMarks(marks=frozenset(marks), lines=lines)


def lines_of(
    key: bytes, form: str, person: str | None, messages: Iterable[Sequence[str]]
) -> list[Line]:
    """The different lines of a dialogue, in their order; but for exports of one chat, the user's alone.

    `form`: of the source.

    Consecutive messages of one speaker are one message once they are gathered, so a line is what can be compared.
    """
    one_chat = is_one_chat(form)
    # The owner of a chat may rename a contact; what a record says of a person stays.
    name = "" if form in PROGRAMS else (person or "")
    lines: dict[str, Line] = {}
    for role, text in messages:
        if role != "user" and not one_chat:
            continue
        for written in text.splitlines():
            words = " ".join(unicodedata.normalize("NFKC", written).casefold().split())
            if not words:
                continue
            line_mark = mark(key, "line", name, role, words)
            length = len(words.encode("utf-8", "surrogatepass"))
            lines.setdefault(line_mark, Line(mark=line_mark, length=length, is_user=role == "user"))
    return list(lines.values())


def is_one_chat(form: str) -> bool:
    """Whether a file of a format holds one chat, so that all its lines are of the same people."""
    return form in PROGRAMS and PROGRAMS[form].is_one_chat


def has_erased_lines(
    lines: Sequence[Line], places: LinePlaces, form: str, recurring: Set[str]
) -> bool:
    """Whether an item with these lines has enough in common with one of the erased dialogues of its source.

    `recurring`: marks of lines that other items of the chat have too; none of them alone is enough.
    """
    shared: dict[int, list[tuple[int, Line]]] = {}
    for line in lines:
        for dialogue, position in places.get(line.mark, ()):
            shared.setdefault(dialogue, []).append((position, line))
    one_chat = is_one_chat(form)
    for in_common in shared.values():
        long_lines = {
            line.mark for _, line in in_common if line.is_user and line.length >= LEAST_CHARACTERS
        }
        if one_chat and long_lines - recurring:
            return True
        is_enough = _is_enough_of_chat if one_chat else _is_enough_of_conversation
        if _is_whole(in_common, lines) or is_enough(in_common, lines):
            return True
    return False


def _is_whole(shared: Sequence[tuple[int, Line]], lines: Sequence[Line]) -> bool:
    """Whether all lines of an item are of one erased dialogue. `shared`: in the order of the item."""
    length = sum(line.length for line in lines)
    return _in_order(shared) == len(lines) and length >= _LEAST_OF_WHOLE


def _is_enough_of_conversation(shared: Sequence[tuple[int, Line]], lines: Sequence[Line]) -> bool:
    """Whether most of a conversation beside many others is one erased dialogue's."""
    length = sum(line.length for _, line in shared)
    of_item = sum(line.length for line in lines)
    in_order = _in_order(shared)
    if in_order < 2 or length < LEAST_CHARACTERS:
        return False
    is_most_lines = in_order >= _MOST_OF_CONVERSATION * len(lines)
    return is_most_lines and length >= _MOST_OF_CONVERSATION * of_item


def _is_enough_of_chat(shared: Sequence[tuple[int, Line]], lines: Sequence[Line]) -> bool:
    """Whether several lines that an item of a chat shares with one erased dialogue of this chat identify it."""
    of_item = sum(line.length for line in lines)
    telling = [(position, line) for position, line in shared if line.length >= _LEAST_OF_LINE]
    length = sum(line.length for _, line in telling)
    of_user = sum(line.length for _, line in shared if line.is_user)
    is_a_part = length >= LEAST_CHARACTERS and length * _PART_OF_ITEM >= of_item
    if is_a_part and of_user >= _LEAST_OF_LINE and _in_order(telling) >= 2:
        return True
    in_order = _in_order(shared)
    is_half = in_order >= _SHORT_LINES and in_order * _PART_OF_LINES >= len(lines)
    return is_half and sum(line.length for _, line in shared) >= LEAST_CHARACTERS


def _in_order(shared: Sequence[tuple[int, Line]]) -> int:
    """How many of the shared lines stand in the same order in both dialogues: the longest growing row of places."""
    ends: list[int] = []  # of rows of 1, 2, ... places the smallest last place
    for position, _ in shared:
        at = bisect_left(ends, position)
        ends[at : at + 1] = [position]
    return len(ends)


def lines_that_identify(
    erased: Mapping[str, Sequence[Line]], staying: Iterable[Line]
) -> dict[str, list[str]]:
    """Erased dialogue -> the marks of its lines, without those that a dialogue that stays has as well."""
    sought = {line.mark for line in chain.from_iterable(erased.values())}
    common = {line.mark for line in staying if line.mark in sought}
    return {
        name: [line.mark for line in lines if line.mark not in common]
        for name, lines in erased.items()
    }
