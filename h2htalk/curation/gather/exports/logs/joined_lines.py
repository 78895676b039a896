"""Lines of a log that begin no message and go on with the one before: parts of its text, or remarks of its keeper.

What they are, the file says. A line that stands alone and begins with a mark (a bracket, `>`, a bullet) is a remark
where no other line of its place goes on with a message, as somebody who lists things in a message writes several; its
place is an indent, or an empty line above. What the owner names in `leave_out` decides first.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LINES = "lines"  # the key of `leave_out` for lines of a log
ANY = "*"  # every value, or line
_MARKS = (
    "Ps",
    "Pd",
    "Po",
    "Sm",
)  # of Unicode: brackets, dashes, bullets and others, signs such as `>`
_QUOTES = frozenset("\"'¡¿&@%!?.,;:、。，！？")  # with which people begin what they say
_MOST_SINGLE = 0.5  # of the messages: where more go on, lines that do are no surprise


@dataclass(frozen=True, slots=True)
class JoinedLine:
    """A line that goes on with a message. `position`: in the message's lines."""

    position: int
    text: str  # with its indent
    number: int  # of the file
    after_blank: bool

    @property
    def place(self) -> tuple[bool, bool]:
        """Where lines of its kind stand."""
        return (self.after_blank, self.text[:1].isspace())


@dataclass(slots=True)
class Settled:
    """What became of the lines of a file that go on with messages."""

    remarks: list[tuple[int, JoinedLine]] = field(
        default_factory=list
    )  # with the number of their message
    joined: list[str] = field(default_factory=list)  # what an owner should look at


def settle(
    messages: Sequence[Sequence[JoinedLine]], leave_out: Mapping[str, Sequence[str]]
) -> Settled:
    """Which of the joined lines of some messages are remarks. `leave_out`: of the source."""
    settled = Settled()
    kept: list[JoinedLine] = []
    count = 0  # of messages that go on
    by_place = _blocks_by_place(messages)
    remark_places = {
        place for place, blocks in by_place.items() if all(map(_is_alone_and_marked, blocks))
    }
    for number, lines in enumerate(messages):
        staying = []
        for line in lines:
            if LINES in leave_out:
                is_remark = _is_named(line.text, leave_out[LINES])
            else:
                is_remark = line.place in remark_places
            if is_remark:
                settled.remarks.append((number, line))
            else:
                staying.append(line)
        count += bool(staying)
        kept += staying
    if count <= _MOST_SINGLE * len(messages):
        # Those with an empty line above are a remark more often.
        kept.sort(key=lambda line: not line.after_blank)
        settled.joined = [line.text.strip() for line in kept]
    return settled


def _is_named(text: str, words: Sequence[str]) -> bool:
    return any(word == ANY or word in text for word in words)


def _blocks_by_place(
    messages: Sequence[Sequence[JoinedLine]],
) -> dict[tuple[bool, bool], list[list[JoinedLine]]]:
    """The lines that follow each other, by where they stand."""
    blocks: dict[tuple[bool, bool], list[list[JoinedLine]]] = defaultdict(list)
    for lines in messages:
        block: list[JoinedLine] = []
        for line in lines:
            if block and line.number == block[-1].number + 1:
                block.append(line)
                continue
            block = [line]
            blocks[line.place].append(block)
    return blocks


def _is_alone_and_marked(block: Sequence[JoinedLine]) -> bool:
    bare = block[0].text.strip()
    is_marked = unicodedata.category(bare[0]) in _MARKS and bare[0] not in _QUOTES
    return len(block) == 1 and is_marked and any(sign.isalnum() for sign in bare)
