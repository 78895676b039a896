"""Heights of rows, estimated from the texts of their cells, the widths of columns, and the size of letters.

A row without a height is fitted by Excel when it opens a file. LibreOffice and others show one line of it, and the
sheets are protected. So every row has a height here. An estimate is rather too large: a font that another machine puts
in place of the workbook's may be wider.
"""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache

# Excel shows rows of up to 409 points (1/72 inch).
MAX_HEIGHT = 409
# Size of the workbook's letters, and heights of a line of them; Chinese fonts have higher lines (points).
FONT_SIZE, _LINE, _WIDE_LINE = 11, 15.0, 16.5
# Space above and below the lines of a cell together, and the size of a pixel (points).
_SPACE, _PIXEL = 1.5, 0.75
# Sizes of the letters of styles with others than that (points), and the styles with bold letters.
FONT_SIZES = {"title": 18, "heading": 13}
BOLD = frozenset({"title", "heading", "head", "rotated", "notice"})
# Widths of characters as multiples of a digit's, in which the widths of columns are given. Bold letters are wider than
# others by a tenth; wide characters are not.
_NARROW, _CAPITAL, _BROAD, _WIDE, _BOLD = 1.0, 1.3, 1.8, 2.1, 1.1
_BROAD_LETTERS = frozenset("mwMW@%—…")
# What a program keeps free at both sides of a cell, in digits.
_MARGIN = 0.4
# A character after which a line may end (wide ones), a word, or space, which never begins a new line.
_BREAKABLE = r"\u1100-\u11ff\u2e80-\uffef\U0001f000-\U0003ffff"
_UNIT = re.compile(rf"[{_BREAKABLE}]|[^\s{_BREAKABLE}]+|\s+")


@lru_cache(maxsize=4096)
def character_width(char: str) -> float:
    """Return the width of a character as a multiple of a digit's; wide characters (Chinese, emoji) count double."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in ("W", "F"):
        return _WIDE
    if char in _BROAD_LETTERS:
        return _BROAD
    if unicodedata.category(char) == "Lu":
        return _CAPITAL
    return _NARROW


@lru_cache(maxsize=4096)
def line_count(text: str, width: float, *, is_bold: bool = False) -> int:
    """Return the number of lines of a wrapped text in a column of `width` digits."""
    room = max(_WIDE, width - _MARGIN)
    return sum(_wrapped_lines(paragraph, room, is_bold) for paragraph in text.split("\n"))


def _wrapped_lines(paragraph: str, room: float, is_bold: bool) -> int:
    lines, used = 1, 0.0
    for unit in _UNIT.findall(paragraph):
        needed = sum(map(character_width, unit))
        if is_bold and needed != _WIDE:
            needed *= _BOLD
        if unit.isspace() or used + needed <= room:
            used += needed
            continue
        if used:
            lines += 1
        used = needed
        if needed > room:
            # A word that is wider than the column continues on the next lines; an address breaks at a slash before.
            lines += math.ceil(needed / room)
            used = room
    return lines


def text_height(text: str, width: float, style: str = "plain") -> float:
    """Return the height of a wrapped text (points) in a column of `width` digits, in one of the workbook's styles."""
    scale = FONT_SIZES.get(style, FONT_SIZE) / FONT_SIZE
    lines = line_count(text, width / scale, is_bold=style in BOLD)
    is_wide = not text.isascii() and any(character_width(char) == _WIDE for char in text)
    height = lines * scale * (_WIDE_LINE if is_wide else _LINE) + _SPACE
    # Programs round heights down to pixels.
    return math.ceil(height / _PIXEL) * _PIXEL
