"""An item as text for cells: harmless in a spreadsheet, and about how many lines it takes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from h2htalk.data.languages import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.texts.interface import label_text, passage_title, question_title, rating_text, word
from h2htalk.text.escaping import harmless_cell, printable

# Excel shows no row of more than 409 points: about 27 lines. Some room is left for wider fonts.
MOST_LINES = 22
# Of one line, at most so many characters in a row: 18 lines of Chinese in a column of 70.
_PORTION = 600
_LINE_END = re.compile(r"\r\n|\r|\n")
_WIDE = re.compile("[\u2e80-\uffef]")
# Not allowed by XML 1.0: a workbook that holds one cannot be opened.
_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Block:
    """A heading and what stands under it: (who speaks, empty for nobody; what they say)."""

    title: str
    lines: tuple[tuple[str, str], ...]


def lines_shown(text: str) -> str:
    """A text in which only line ends act: every other control or invisible character stands as its escape."""
    shown = "\n".join(map(printable, _LINE_END.split(text)))
    return _NO_XML.sub(lambda match: f"\\u{ord(match.group()):04x}", shown)


def cell_text(text: str) -> str:
    """A text of several lines for a cell of its own: as `harmless_cell`, but its line ends stay."""
    first, end, rest = lines_shown(text).lstrip("\n").partition("\n")
    while end and not first.strip():
        first, end, rest = rest.partition("\n")
    return harmless_cell(first) + end + rest


def whole_text(item: Item, language: Language) -> tuple[Block, ...]:
    """All that an item shows, as it stands on a sheet or in a file of its own."""
    note = (Block(word("note", language), (("", item.note),)),) if item.note.strip() else ()
    return (*note, *material(item, language), *replies(item, language))


def material(item: Item, language: Language) -> tuple[Block, ...]:
    """Passages and the conversation, each under its heading."""
    blocks = [Block(passage_title(name, language), (("", text),)) for name, text in item.context]
    if item.turns:
        said = tuple((word(turn.role, language), turn.content) for turn in item.turns)
        blocks.append(Block(word("conversation", language), said))
    return tuple(blocks)


def replies(item: Item, language: Language) -> tuple[Block, ...]:
    """The reply to judge, and the one that was proposed."""
    both = (("reply_to_judge", item.response), ("proposed_reply", item.reference))
    return tuple(Block(word(name, language), (("", text),)) for name, text in both if text.strip())


def joined(blocks: Sequence[Block], *, titled: bool) -> str:
    """Blocks as one text. Without `titled` a single block's heading is left out."""
    parts = []
    for block in blocks:
        lines = [
            f"{speaker}{': ' if speaker.isascii() else '：'}{text}" if speaker else text
            for speaker, text in block.lines
        ]
        parts.append("\n".join([block.title, *lines] if titled or len(blocks) > 1 else lines))
    return "\n\n".join(parts)


def suggestion(item: Item, questions: Sequence[Question], language: Language) -> str:
    """A model's answers in the annotator's words, each below its question."""
    lines = []
    for question in questions:
        if question.name in item.suggested:
            value = item.suggested[question.name]
            if question.form == "rating":
                shown = rating_text(question.name, int(question.read(value)), language)  # type: ignore[arg-type]
            elif question.form == "text":
                shown = str(value)
            else:
                labels = value if isinstance(value, tuple) else (str(value),)
                shown = "; ".join(label_text(question.name, label, language) for label in labels)
            lines.append(f"{question_title(question.name, language)}\n{shown}")
    return "\n".join(lines)


def line_count(text: str, width: int) -> int:
    """About how many lines a text takes in a column `width` Latin letters wide; a Chinese sign counts as two."""
    return sum(1 + (len(line) + len(_WIDE.findall(line))) // width for line in text.split("\n"))


def portions(text: str, width: int) -> Iterator[str]:
    """A text in portions that one row each can show, nothing left out."""
    held: list[str] = []
    used = 0
    for line in text.split("\n"):
        pieces = textwrap.wrap(line, _PORTION, drop_whitespace=False, replace_whitespace=False) or [""]
        for number, piece in enumerate(pieces):
            lines = line_count(piece, width)
            if held and (number > 0 or used + lines > MOST_LINES):
                yield "\n".join(held)
                held, used = [], 0
            held.append(piece)
            used += lines
    yield "\n".join(held)
