"""Items as text for cells: without formulas and control characters, and with an estimate of its lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from h2htalk.data.languages import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.texts.interface import interface_text, label_text, passage_title, question_title, rating_text
from h2htalk.text.escaping import harmless_cell, printable_lines

# Excel shows rows of up to 409 points: about 27 lines, fewer with wide fonts.
MAX_LINES = 22
# Longest part of a line in one row (characters): 18 lines of Chinese in a column of 70.
_MAX_PART = 600
_WIDE = re.compile("[\u2e80-\uffef]")


@dataclass(frozen=True, slots=True)
class Block:
    """A title and its lines: (speaker, or empty; text)."""

    title: str
    lines: tuple[tuple[str, str], ...]


def cell_text(text: str) -> str:
    """Return a text for a cell that no program takes for a formula; line ends stay."""
    first, end, rest = printable_lines(text).lstrip("\n").partition("\n")
    while end and not first.strip():
        first, end, rest = rest.partition("\n")
    return harmless_cell(first) + end + rest


def item_blocks(item: Item, language: Language) -> tuple[Block, ...]:
    """Return the whole item."""
    note = (Block(interface_text("note", language), (("", item.note),)),) if item.note.strip() else ()
    return (*note, *context_blocks(item, language), *reply_blocks(item, language))


def context_blocks(item: Item, language: Language) -> tuple[Block, ...]:
    """Return passages and the conversation."""
    blocks = [Block(passage_title(name, language), (("", text),)) for name, text in item.context]
    if item.turns:
        turns = tuple((interface_text(turn.role, language), turn.content) for turn in item.turns)
        blocks.append(Block(interface_text("conversation", language), turns))
    return tuple(blocks)


def reply_blocks(item: Item, language: Language) -> tuple[Block, ...]:
    """Return the reply to judge and the proposed reply, if there are any."""
    both = (("reply_to_judge", item.response), ("proposed_reply", item.reference))
    return tuple(Block(interface_text(name, language), (("", text),)) for name, text in both if text.strip())


def join_blocks(blocks: Sequence[Block], *, titled: bool) -> str:
    """Join blocks to one text. Without `titled`, a single block has no title."""
    parts = []
    for block in blocks:
        lines = [
            f"{speaker}{': ' if speaker.isascii() else '：'}{text}" if speaker else text
            for speaker, text in block.lines
        ]
        parts.append("\n".join([block.title, *lines] if titled or len(blocks) > 1 else lines))
    return "\n\n".join(parts)


def suggestion_text(item: Item, questions: Sequence[Question], language: Language) -> str:
    """Return a model's answers as annotators read them, each below its question."""
    lines = []
    for question in questions:
        if question.name in item.suggested:
            value = item.suggested[question.name]
            if question.form == "rating":
                text = rating_text(question.name, int(question.read(value)), language)  # type: ignore[arg-type]
            elif question.form == "text":
                text = str(value)
            else:
                labels = value if isinstance(value, tuple) else (str(value),)
                text = "; ".join(label_text(question.name, label, language) for label in labels)
            lines.append(f"{question_title(question.name, language)}\n{text}")
    return "\n".join(lines)


def line_count(text: str, width: int) -> int:
    """Estimate the lines of a text in a column of `width` Latin letters; Chinese characters are twice as wide."""
    return sum(1 + (len(line) + len(_WIDE.findall(line))) // width for line in text.split("\n"))


def split_text(text: str) -> Iterator[str]:
    """Split a text into its lines, and long lines into parts that one row can show."""
    for line in text.split("\n"):
        yield from textwrap.wrap(line, _MAX_PART, drop_whitespace=False, replace_whitespace=False) or [""]
