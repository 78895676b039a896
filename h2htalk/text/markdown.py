"""Escape values for Markdown, so that they are shown and never act as markup, HTML or the border of a table."""

from __future__ import annotations

import html
import re

from h2htalk.text.escaping import printable

# An underscore inside a word emphasises nothing.
_ACTING = re.compile(r"[\\`*\[\]|~$]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|(?<= )#+$")  # the last ends a heading
# Of a heading, a list, a rule or a line under a heading.
_LINE_START = re.compile(r"^(\d+(?=[.)](?:\s|$))|)([.)#+\-=:])")


class Markdown(str):
    """A text that is Markdown already and is not escaped."""

    __slots__ = ()


def escape_markdown(value: object) -> Markdown:
    """Escape a value as one line, wherever it stands: in a paragraph, a heading or a cell. Thousands get a comma."""
    if isinstance(value, Markdown):
        return value
    text = f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())
    line = html.escape(printable(text), quote=False)
    return Markdown(_LINE_START.sub(r"\1\\\2", _ACTING.sub(r"\\\g<0>", line)))


def paragraphs(text: str) -> Markdown:
    """Escape a text of several lines; an empty line begins a paragraph."""
    return Markdown("\n\n".join(escape_markdown(part) for part in re.split(r"\n\s*\n", text.strip())))


def code_block(text: str, language: str = "") -> Markdown:
    """A fenced block that nothing in the text can end."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    lines = "\n".join(map(printable, text.strip().splitlines()))
    return Markdown(f"{fence}{language}\n{lines}\n{fence}")
