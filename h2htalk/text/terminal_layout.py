"""Lay out a table on a terminal: columns that are folded at words, in blocks where they are too wide together.

The texts of a table are lines of cells: the heading first, an empty line for a gap between rows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

_TEXT = 20  # columns that are left to a text before other columns go to a further block
# After white space, a slash, a Chinese character, and a hyphen in a word, and before a capital in it.
_BREAKS = re.compile(
    r"(?<=[\s/\u2e80-\uffef])(?=[^\s%。，、；：？！）』」”])|(?<=\w[-_])(?=\w)|(?<=[a-z])(?=[A-Z])"
)
_FIGURE_BREAKS = re.compile("(?<=, )")  # before the interval, p or count of a figure


class Column(NamedTuple):
    """A column: whether it holds figures, the width of its widest line, and the width to which it may be folded."""

    right: bool
    widest: int
    least: int


def measure_column(texts: Sequence[str], right: bool, most: int) -> Column:
    """Measure a column by its texts, the heading first; `most` is the largest width that it may insist on."""
    heading, *values = texts
    widest = max(text_width(line) for line in "\n".join(texts).split("\n"))
    longest_word = max(text_width(word.rstrip()) for word in _BREAKS.split(heading))
    unbroken = 0 if right else _TEXT
    if right:
        for value in values:
            for figure in _FIGURE_BREAKS.split(value):
                unbroken = max(unbroken, text_width(figure.rstrip()))
    return Column(right=right, widest=widest, least=min(widest, max(unbroken, longest_word), most))


def divide_columns(
    columns: Sequence[Column], headings: Sequence[str], gap: int, width: int
) -> list[list[int]]:
    """Divide columns, by their numbers, into blocks that fit a width; each block repeats the first column."""
    blocks = [[0]]
    for number in range(1, len(columns)):
        block = [columns[index] for index in (*blocks[-1], number)]
        if _least_width(block, gap) > width:
            # Of two columns with one heading, such as `by`, each stays with the column before it if there is room.
            pair = [columns[0], columns[number - 1], columns[number]]
            has_room = len(blocks[-1]) > 2 and _least_width(pair, gap) <= width
            is_repeated = headings.count(headings[number]) > 1
            blocks.append([0, blocks[-1].pop()] if has_room and is_repeated else [0])
        blocks[-1].append(number)
    return blocks


def _least_width(columns: Sequence[Column], gap: int) -> int:
    return sum(column.least for column in columns) + gap * (len(columns) - 1)


def format_block(
    lines: Sequence[Sequence[str]], columns: Mapping[int, Column], gap: int, width: int
) -> str:
    """Format some columns of a table. The widest of those that may be folded are, until all fit."""
    for most in range(width, -1, -1):
        widths = [min(column.widest, max(column.least, most)) for column in columns.values()]
        if sum(widths) + gap * (len(widths) - 1) <= width:
            break
    formatted: list[str] = []
    for number, line in enumerate(lines):
        if not line:
            formatted.append("")
            continue
        cells = []
        for (index, column), column_width in zip(columns.items(), widths, strict=True):
            indent = "  " if index == 0 < number else ""
            breaks = _FIGURE_BREAKS if column.right and number else _BREAKS
            cells.append(fold(line[index], column_width, indent, breaks))
        if number == 0:  # a short heading stands just above its column
            upwards = zip_longest(*[cell[::-1] for cell in cells], fillvalue="")
            rows = list(upwards)[::-1]
        else:
            rows = list(zip_longest(*cells, fillvalue=""))
        for row in rows:
            texts = []
            for text, column_width, column in zip(row, widths, columns.values(), strict=True):
                spaces = " " * (column_width - text_width(text))
                texts.append(spaces + text if column.right else text + spaces)
            formatted.append((" " * gap).join(texts).rstrip())
    return "\n".join(formatted)


def fold(text: str, width: int, indent: str, breaks: re.Pattern[str] = _BREAKS) -> list[str]:
    """Break a text at its words into lines of a width, and longer words anywhere; all lines but the first `indent`."""
    if "\n" not in text and text_width(text) <= width:
        return [text]
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines.append("")
        for word in breaks.split(paragraph):
            is_short = text_width(word.rstrip()) <= width - len(indent)
            for piece in [word] if is_short else word:
                if text_width((lines[-1] + piece).rstrip()) > width:
                    lines.append(indent)
                lines[-1] += piece
    return [line.rstrip() for line in lines]


def text_width(text: str) -> int:
    """The columns that a text takes on a terminal: wide letters count twice, combining marks not at all."""
    if text.isascii():
        return len(text)
    width = len(text)
    for letter in text:
        width -= unicodedata.combining(letter) > 0
        width += unicodedata.east_asian_width(letter) in "WF"
    return width
