"""`contexts`: one reply a line with the turns before it, `EOS`-joined: `1.0 0 3 Hi EOS 1.0 1 4 [Questions] Why?`

A turn is a weight, the speaker (0 the one who seeks help, 1 the one who gives it), the turn's number in its
conversation, a strategy in brackets, and what was said. Lines follow each other through a conversation and repeat
what went before, at times the last turns of it only. A conversation is put together from all its lines and stands at
its last one; the others are refused as `prefix`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.curation.gather.raw_files import raw_lines, text_of
from h2htalk.curation.gather.raw_items import Item, OnRead, RawDialogue, RefusedItem
from h2htalk.data.dialogue import Role

# A turn begins with its numbers, so that somebody may write EOS; columns may be tabs too.
_BETWEEN = re.compile(r"(?:\sEOS\s{1,8}|\t\s{0,8})(?=\d{1,4}\.\d{1,4} [01] \d{1,6}(?:\s|\Z))|\sEOS\Z")
_TURN = re.compile(r"\s*\d{1,4}\.\d{1,4} ([01]) (\d{1,6})\s(?:\s*\[[A-Za-z -]{1,60}\])?(.*)", re.DOTALL)

# Number of the turn -> who spoke, and what was said.
Turns = dict[int, tuple[Role, str]]


def read(path: Path, on_read: OnRead) -> Iterator[Item]:
    """Every line of a file, as the end of a conversation or refused; raises DataError for what cannot be counted."""
    conversation = _Conversation()
    for number, raw in raw_lines(path, on_read):
        if not raw.strip():
            continue
        try:
            turns = turns_of(text_of(raw, number))
        except RefusedItem as refused:
            refused.evidence = {"line": number, **refused.evidence}
            yield Item(number, number, refused)
            continue
        if conversation.turns:
            going_on = conversation.goes_on(turns)
            last = conversation.last_line
            yield Item(last, last, RefusedItem("prefix", line=last) if going_on else conversation.whole())
            conversation = conversation if going_on else _Conversation()
        conversation.add(turns, number)
    if conversation.turns:
        yield Item(conversation.last_line, conversation.last_line, conversation.whole())


def turns_of(line: str) -> Turns:
    """The turns of one line, in order; raises RefusedItem (`broken`)."""
    turns: Turns = {}
    for piece in _BETWEEN.split(line.strip()):
        if not piece:
            continue
        match = _TURN.fullmatch(piece + " ")
        if match is None or (turns and int(match[2]) <= max(turns)):
            raise RefusedItem("broken")
        turns[int(match[2])] = ("companion" if match[1] == "1" else "user", match[3].strip())
    if not turns:
        raise RefusedItem("broken")
    return turns


@dataclass(slots=True)
class _Conversation:
    """What its lines so far have told."""

    turns: Turns = field(default_factory=dict)
    last_line: int = 0

    def goes_on(self, turns: Turns) -> bool:
        """Whether a line belongs to it: it reaches further, and says the same where both speak."""
        return max(turns) > max(self.turns) and all(
            self.turns.get(n, turn) == turn for n, turn in turns.items()
        )

    def add(self, turns: Turns, line: int) -> None:
        self.turns.update(turns)
        self.last_line = line

    def whole(self) -> RawDialogue:
        """All turns in order. Where so many were spoken between two replies that no line shows the first of them,
        the dialogue is tagged `gap`."""
        numbers = sorted(self.turns)
        gap = numbers[-1] - numbers[0] >= len(numbers)
        said = tuple(self.turns[number] for number in numbers if self.turns[number][1])
        return RawDialogue(said, tags=("gap",) if gap or numbers[0] > 0 else ())
