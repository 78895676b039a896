"""An item as a ballot shows it: runs of plain and bold text, harmless in a cell, and how many lines they take."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from h2htalk.data.dialogue import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question, Value
from h2htalk.rounds.texts import label_text, passage_title, question_title, rating_text, word
from h2htalk.text.cells import harmless_cell
from h2htalk.text.printable import printable

# A piece of text, and whether it is bold.
Run = tuple[str, bool]
# What Excel holds in a cell is 32,767 characters; escapes need room (characters).
MAX_CELL = 24_000
_LINE_END = re.compile(r"\r\n|\r|\n")
# Not of this world, says XML 1.0: a workbook that holds one cannot be opened.
_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Block:
    """A heading (empty for none) and what stands under it: (who speaks, empty for nobody; what they say)."""

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


def cell_runs(made: Iterable[Run]) -> list[Run]:
    """Runs for a cell of their own, none of which is empty: as `cell_text`."""
    kept = [run for run in made if run[0]]
    while kept and not kept[0][0].strip():
        del kept[0]
    return [(cell_text(kept[0][0]), kept[0][1]), *kept[1:]] if kept else []


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


def runs(blocks: Sequence[Block], *, titled: bool) -> list[Run]:
    """Blocks as one text, headings and speakers bold. Without `titled` a single block's heading is left out."""
    made: list[Run] = []
    for at, block in enumerate(blocks):
        if titled or len(blocks) > 1:
            made.append(("\n\n" * (at > 0) + lines_shown(block.title) + "\n", True))
        for number, (speaker, text) in enumerate(block.lines):
            if speaker:
                colon = ": " if speaker.isascii() else "："
                made.append(("\n" * (number > 0) + speaker + colon, True))
            made.append((lines_shown(text), False))
    return made


def plain(made: Iterable[Run]) -> str:
    return "".join(text for text, _ in made)


def suggestion(item: Item, questions: Sequence[Question], language: Language) -> str:
    """A model's answers in the voter's words, a line each."""
    lines = []
    for question in questions:
        if question.name in item.suggested:
            shown = answer_text(question, item.suggested[question.name], language)
            lines.append(f"{question_title(question.name, language)}\n{shown}")
    return cell_text("\n".join(lines))


def answer_text(question: Question, value: Value, language: Language) -> str:
    """A stored answer in the voter's words."""
    if question.form == "rating":
        return rating_text(question.name, question.read(value), language)  # type: ignore[arg-type]
    if question.form in ("label", "labels"):
        labels = [value] if isinstance(value, str) else list(value) if isinstance(value, tuple) else []
        return "; ".join(label_text(question.name, label, language) for label in labels)
    return str(value)


@lru_cache(maxsize=4096)  # the same text stands in the ballots of twenty voters
def line_count(text: str, width: float) -> int:
    """Lines that a text takes in a column `width` signs wide; rather one too many than one too few."""
    return sum(len(wrapped(line, width)) for line in text.split("\n"))


class _Widths(dict[str, int]):
    """Of a sign, the pixels that Arial 10 takes on a screen of 96 to the inch; `_UNIT` of them are a column's unit.

    Screens round letters to whole pixels, so that on paper a line takes some hundredths less.
    """

    def __missing__(self, sign: str) -> int:
        wide = unicodedata.east_asian_width(sign) in "WFA"
        self[sign] = 13 if wide else 10 if sign.isupper() else _UNIT
        return self[sign]


_UNIT = 7
_WIDTHS = _Widths(
    dict.fromkeys("ijl'|", 3)
    | dict.fromkeys(" ftI.,:;!/\\[]()-r", 4)
    | dict.fromkeys('*"{}cksvxyzJ', 6)
    | dict.fromkeys("+<=>~FTLZ", 8)
    | dict.fromkeys("ABEKPSVXY&w", 9)
    | {"m": 11, "M": 11, "G": 11, "O": 11, "Q": 11, "%": 12, "W": 13, "@": 14}
    # Of Chinese and of English texts alike, in the font of either.
    | dict.fromkeys("“”‘’…—–·", 13)
)


def wrapped(line: str, width: float) -> list[str]:
    """A line in pieces of at most `width`, cut at blanks where there are some; no sign is wider than two units."""
    if len(line) * 2 <= width:
        return [line]
    pieces: list[str] = []
    start = used = 0
    blank = -1
    for at, sign in enumerate(line):
        used += _WIDTHS[sign]
        while used > width * _UNIT and at > start:
            end = blank + 1 if blank >= start else at
            pieces.append(line[start:end])
            start, blank = end, -1
            used = sum(_WIDTHS[one] for one in line[start : at + 1])
        if sign == " ":
            blank = at
    return [*pieces, line[start:]]


def widest_word(text: str) -> int:
    """Units that the widest word of a text takes; Chinese is cut between any two signs."""
    words = re.split(r"[\s\u2e80-\uffef]+", text)
    return max(-(-sum(_WIDTHS[sign] for sign in word) // _UNIT) for word in words)


def portions(text: str, width: int, most: int) -> Iterator[str]:
    """A text in portions of at most `most` lines of a column `width` signs wide, nothing left out."""
    held: list[str] = []
    lines = used = 0
    for line in text.split("\n"):
        for number, piece in enumerate(wrapped(line, width)):
            if lines == most or used + len(piece) > MAX_CELL:
                yield "".join(held)
                held, lines, used = [], 0, 0
            elif number == 0 and held:
                held.append("\n")
            held.append(piece)
            lines, used = lines + 1, used + len(piece) + 1
    yield "".join(held)
