"""What a run says about the items of a source: each problem once, with its number and its first place, and how many
messages of chats are no turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from h2htalk.curation.gather.exports.dialogues import EDITED, JOINED, REMARK, TURNED
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from h2htalk.curation.gather.source_files import Item
from h2htalk.errors import counted, quoted, shorten
from h2htalk.text.escaping import printable

_MOST_LINES = 6  # problems of a source that are said
_MOST_EXAMPLES = 3  # of lines
_LONGEST_EXAMPLE = 60  # characters
_MOST_NAMES = 8  # of keys and roles in a line
Problem = tuple[str, str]  # reason and problem


@dataclass(slots=True)
class Refusals:
    """The problems of the refused items of a source, which are said and not stored, as they name keys and roles."""

    counts: Counter[Problem] = field(default_factory=Counter)
    places: dict[Problem, str] = field(default_factory=dict)  # of its first item
    names: dict[Problem, dict[str, None]] = field(default_factory=dict)

    left_out: Counter[str] = field(default_factory=Counter)  # messages by kind
    examples: dict[str, dict[str, None]] = field(default_factory=dict)  # lines of logs

    def add(self, items: Iterable[Item]) -> None:
        """Add some items."""
        for item in items:
            refused = item.content
            if isinstance(refused, RawDialogue):
                self.left_out.update(refused.left_out)
                for kind, lines in refused.examples.items():
                    self.examples.setdefault(kind, {}).update(dict.fromkeys(lines))
                continue
            if not refused.problem:
                continue
            problem = (refused.reason, refused.problem)
            self.counts[problem] += 1
            self.places.setdefault(problem, _place(item, refused))
            known = self.names.setdefault(problem, {})
            known.update(
                dict.fromkeys(refused.names[:_MOST_NAMES] if len(known) < _MOST_NAMES else ())
            )

    def lines(self) -> list[str]:
        """A line for each problem, the most frequent first."""
        lines = []
        for problem, count in self.counts.most_common(_MOST_LINES):
            reason, text = problem
            names = ", ".join(map(quoted, list(self.names[problem])[:_MOST_NAMES]))
            found = f"; the file has {names}" if names else ""
            lines.append(
                f"{counted(count, 'item')} rejected ({reason}), first {self.places[problem]}: {text}{found}"
            )
        if len(self.counts) > _MOST_LINES:
            lines.append(
                f"{counted(len(self.counts) - _MOST_LINES, 'more problem')}; see the rejected records"
            )
        return lines

    def left_out_line(self) -> str:
        """How many messages of chats are no turns; empty where all are."""
        counts = Counter({kind: count for kind, count in self.left_out.items() if count})
        edited = counts.pop(EDITED, 0)
        turned = counts.pop(TURNED, 0)
        counts.pop(JOINED, None)
        kinds = ", ".join(
            f"{_KINDS.get(kind, kind)} {count:,}" for kind, count in sorted(counts.items())
        )
        texts = [f"messages left out: {kinds}"] if kinds else []
        if edited:
            texts.append(f"{counted(edited, 'edited message')} read as last edited")
        if turned:
            texts.append(
                f"newest first: {counted(turned, 'message')} read in the order of their times or numbers"
            )
        return "; ".join(texts)

    def joined_lines(self) -> list[str]:
        """Which lines of logs went on with the message before, and which did not: a file may mean the other."""
        lines = []
        if count := self.left_out[JOINED]:
            said = f"{counted(count, 'line')} without a name went on with the message before"
            advice = 'leave_out = { lines = ["WORDS"] } leaves out such lines that hold these words'
            lines.append(f"{said}: {self._examples(JOINED)}; {advice}")
        if REMARK in self.examples:
            said = "left out as remarks, as no other line of the file goes on with a message in their place"
            lines.append(
                f"{said}: {self._examples(REMARK)}; leave_out = {{ lines = [] }} reads them"
            )
        return lines

    def _examples(self, kind: str) -> str:
        texts = list(self.examples.get(kind, {}))[:_MOST_EXAMPLES]
        return ", ".join(f'"{printable(shorten(text, _LONGEST_EXAMPLE))}"' for text in texts)


_KINDS = {
    "system": "lines of the program",
    "hidden": "hidden ones",
    "broken": "broken lines",
    "tool": "calls of tools",
    "command": "commands",
    "duplicate": "rows that are there twice",
    "remark": "remarks",
    "named": "rows that leave_out names",
}


def _place(item: Item, refused: RefusedItem) -> str:
    """Where an item begins: `a.jsonl, line 3, message 2`."""
    parts = [item.file] if item.file else []
    parts.append(f"item {item.row}" if item.line is None else f"line {item.line}")
    parts += [
        f"{name} {number}"
        for name, number in refused.evidence.items()
        if name in ("message", "line", "column", "byte", "cells")
    ]
    return ", ".join(parts)
