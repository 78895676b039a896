"""Guidelines from Markdown to what a cell or a plain text file shows: a line each, headings marked as such."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.rounds.spreadsheets.text import cell_text, portions

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_BULLET = re.compile(r"(\s*)[-*+]\s+(.*)")
# A numbered point, a quotation: begins a line of its own.
_OWN_LINE = re.compile(r"\s*\d{1,3}[.)]\s|> ")
_LINK = re.compile(r"\[([^\]]+)\]\((?:mailto:)?([^)\s]+)\)")
# Bold, italic and code marks around words; a lone asterisk stays.
_MARKS = re.compile(r"(\*\*|__|\*|`)(?=\S)(.+?)(?<=\S)\1")
_RULE = re.compile(r"(-{3,}|\*{3,}|_{3,})$")
# Units of the column: a page of A4 holds it whole, also where another font takes the place of ours. Of a cell, as many
# lines as a screen shows.
PAGE, _MOST_LINES = 82, 20


def guideline_lines(text: str) -> Iterator[tuple[str, str]]:
    """Of Markdown the lines as (`title`, `heading` or `line`, text without marks); an empty line between paragraphs.

    Lines that one paragraph or one point of a list runs over become one line.
    """
    before = "heading"
    for style, line in _joined(text):
        # The heading's own space is enough, and one empty line between paragraphs.
        if not line and before in ("heading", "title", "empty"):
            continue
        before = style if line else "empty"
        for portion in portions(cell_text(line), PAGE, _MOST_LINES):
            yield style, portion


def _joined(text: str) -> Iterator[tuple[str, str]]:
    held = ""
    for raw in text.splitlines():
        line = raw.rstrip()
        heading, bullet = _HEADING.fullmatch(line), _BULLET.fullmatch(line)
        plain = line and not heading and not bullet and not _RULE.fullmatch(line) and not line.startswith("|")
        if plain and held and not _OWN_LINE.match(raw):
            held += ("" if _wide(held[-1]) and _wide(line.lstrip()[0]) else " ") + line.lstrip()
            continue
        if held:
            yield "line", _bare(held)
            held = ""
        if heading:
            yield ("title" if len(heading[1]) == 1 else "heading"), _bare(heading[2])
        elif bullet:
            held = f"{bullet[1]}• {bullet[2]}"
        elif plain:
            held = line
        elif not _RULE.fullmatch(line):
            yield "line", _bare(line)
    if held:
        yield "line", _bare(held)


def _bare(line: str) -> str:
    shown = _LINK.sub(r"\1 (\2)", line)
    return _MARKS.sub(r"\2", shown).removeprefix("> ")


def _wide(sign: str) -> bool:
    """Chinese lines are joined without a blank."""
    return ord(sign) > 0x2E7F
