"""`contexts`: a reply a line with the turns before it, joined by `EOS`: `1.0 0 3 Hi EOS 1.0 1 4 [Questions] Why?`

A turn has a weight, the speaker (0 seeks help, 1 gives it), its number in the conversation, a strategy in brackets, and
the text. The lines of a conversation follow each other, and each repeats earlier turns, at times only the last ones. A
conversation is put together from all its lines; it is the item of its last line, and the others are refused as
`earlier_state`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.curation.gather.raw_files import raw_lines, text_of
from h2htalk.curation.gather.raw_items import OnRead, RawDialogue, RawItem, RefusedItem
from h2htalk.curation.outcomes import EARLIER_STATE
from h2htalk.data.scenario import Role

# A turn begins with its numbers, so that a text may contain EOS; columns may also be separated by tabs.
_BETWEEN = re.compile(r"(?:\sEOS\s{1,8}|\t\s{0,8})(?=\d{1,4}\.\d{1,4} [01] \d{1,6}(?:\s|\Z))|\sEOS\Z")
_TURN = re.compile(r"\s*\d{1,4}\.\d{1,4} ([01]) (\d{1,6})\s(?:\s*\[[A-Za-z -]{1,60}\])?(.*)", re.DOTALL)

# Number of the turn -> speaker and text.
Turns = dict[int, tuple[Role, str]]


def read(path: Path, on_read: OnRead) -> Iterator[RawItem]:
    """Read every line of a file, as the end of a conversation or refused; raises DataError for an unreadable file."""
    conversation = _Conversation()
    for number, raw in raw_lines(path, on_read):
        if raw is not None and not raw.strip():
            continue
        try:
            turns = read_line(text_of(raw, number))
        except RefusedItem as refused:
            yield RawItem(number, number, refused.at_line(number))
            continue
        if conversation.turns:
            continues, last = conversation.continues(turns), conversation.last_line
            yield RawItem(last, last, RefusedItem(EARLIER_STATE, line=last) if continues else conversation.whole())
            conversation = conversation if continues else _Conversation()
        conversation.turns.update(turns)
        conversation.last_line = number
    if conversation.turns:
        yield RawItem(conversation.last_line, conversation.last_line, conversation.whole())


def read_line(line: str) -> Turns:
    """The turns of one line, in order; raises RefusedItem (`broken`)."""
    turns: Turns = {}
    for piece in filter(None, _BETWEEN.split(line.strip())):
        match = _TURN.fullmatch(piece + " ")
        if match is None or (turns and int(match[2]) <= max(turns)):
            raise RefusedItem("broken")
        turns[int(match[2])] = ("companion" if match[1] == "1" else "user", match[3].strip())
    if not turns:
        raise RefusedItem("broken")
    return turns


@dataclass(slots=True)
class _Conversation:
    """The turns of the lines of a conversation that were read so far."""

    turns: Turns = field(default_factory=dict)
    last_line: int = 0

    def continues(self, turns: Turns) -> bool:
        """Whether a line belongs to it: it goes further, and has the same text for the turns of both."""
        return max(turns) > max(self.turns) and all(self.turns.get(n, turn) == turn for n, turn in turns.items())

    def whole(self) -> RawDialogue:
        """All turns in order; tagged `gap` where no line contains some of them."""
        numbers = sorted(self.turns)
        gap = numbers[0] > 0 or numbers[-1] - numbers[0] >= len(numbers)
        messages = tuple(self.turns[number] for number in numbers if self.turns[number][1])
        return RawDialogue(messages, tags=("gap",) if gap else ())
