"""Guidelines as lines of plain text, for cells and text files."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_BULLET = re.compile(r"^(\s*)[-*+]\s+")
_LINK = re.compile(r"\[([^\]]+)\]\((?:mailto:)?([^)\s]+)\)")
# Bold, italic and code markup; a single asterisk stays.
_MARKS = re.compile(r"(\*\*|__|\*|`)(?=\S)(.+?)(?<=\S)\1")
_RULE = re.compile(r"(-{3,}|\*{3,}|_{3,})$")


def guideline_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of Markdown as (`title`, `heading` or `line`, text without markup)."""
    for raw in text.splitlines():
        line = raw.rstrip()
        heading = _HEADING.fullmatch(line)
        if heading:
            yield ("title" if len(heading[1]) == 1 else "heading"), _plain(heading[2])
        elif not _RULE.fullmatch(line):
            yield "line", _plain(_BULLET.sub(r"\1• ", line, count=1))


def _plain(line: str) -> str:
    return _MARKS.sub(r"\2", _LINK.sub(r"\1 (\2)", line)).removeprefix("> ")
