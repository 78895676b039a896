"""Items as text for cells: titled blocks, without formulas and control characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.data.languages import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.texts.interface import interface_text, passage_title
from h2htalk.text.escaping import harmless_cell, printable_lines


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
    note = (
        (Block(interface_text("note", language), (("", item.note),)),) if item.note.strip() else ()
    )
    return (*note, *context_blocks(item, language), *reply_blocks(item, language))


def context_blocks(item: Item, language: Language) -> tuple[Block, ...]:
    """Return passages and the conversation."""
    blocks = [Block(passage_title(name, language), (("", text),)) for name, text in item.context]
    if item.turns:
        turns = tuple((interface_text(turn.role, language), turn.content) for turn in item.turns)
        blocks.append(Block(interface_text("conversation", language), turns))
    return tuple(blocks)


def reply_blocks(item: Item, language: Language) -> tuple[Block, ...]:
    """Return the reply to judge and the proposed replies, if there are any."""
    replies = [("reply_to_judge", item.response), ("proposed_reply", item.reference)]
    replies += [("other_reply", text) for text in item.other_references]
    return tuple(
        Block(interface_text(name, language), (("", text),))
        for name, text in replies
        if text.strip()
    )


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
