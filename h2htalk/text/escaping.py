"""Escape text for spreadsheet cells, LaTeX, Markdown and the terminal, so that it is shown and never acts."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

# A spreadsheet reads these as the start of a formula; Chinese keyboards type the wide forms.
_FORMULA = tuple("=+-@＝＋－＠")


@contextmanager
def longest_field(characters: int) -> Iterator[None]:
    """Read CSV fields of at most so many characters within the block; the limit belongs to the process."""
    before = csv.field_size_limit(characters)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def csv_text(
    headings: Sequence[str], rows: Iterable[Sequence[object]], figures: bool = False
) -> str:
    """Format a heading line and rows as CSV: commas between cells, lines ended by a line feed.

    Every text is a `harmless_cell`, but with `figures` one such as `-5.9 (-9.6 to -2.4)` stays. None is an empty cell,
    a truth value `yes` or `no`. Numbers are written so that reading them gives the same number; a negative one stays
    a number.
    """
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow([harmless_cell(heading) for heading in headings])
    for row in rows:
        writer.writerow([value if figures and is_figure(value) else _cell(value) for value in row])
    return output.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return harmless_cell(value) if isinstance(value, str) else value


# Nothing in it names a function, a cell or a command.
_FIGURE = re.compile(
    r"-|[-+<]?\.?\d(?:[\d.,%()<+-]|[\[\] ]|\bto\b|\bp\b|\bof\b|\btied\b|\bpoints\b)*"
)


def is_figure(value: object) -> bool:
    """Whether a value is the text of a figure with its interval, p or count, or the `-` of a missing one."""
    return isinstance(value, str) and _FIGURE.fullmatch(value) is not None


def harmless_cell(text: str) -> str:
    """Escape a text for a spreadsheet cell: one line, and never the start of a formula.

    Invisible characters that act (tab, line ends, NUL, direction marks, lone surrogates) become escapes, as in
    `printable`. A text that begins with = + - @ or their full-width forms, also after white space, gets a single
    quote in front.
    """
    cell = printable(text)
    return f"'{cell}" if cell.lstrip().startswith(_FORMULA) else cell


# C0 and C1 controls, soft hyphen, direction marks and overrides, zero-width and other invisible format
# characters, line and paragraph separators, byte order mark, interlinear marks, lone surrogates, tags, and two
# characters that XML does not allow, so that a workbook with them cannot be opened.
# The joiner U+200D stays: emoji need it.
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    r"""Replace every control or invisible character with an escape: `\n`, `\x1b`, `\u202e`."""
    return _ACTING.sub(_escape, text)


def printable_lines(text: str) -> str:
    """As `printable`, but line ends stay."""
    return "\n".join(map(printable, _LINE_END.split(text)))


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # At the start of a line LaTeX would read these two as arguments of the line end before.
    "[": "{[}",
    "*": "{*}",
}


def latex_escaped(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(_LATEX.get(character, character) for character in printable(text))


# --- Markdown --------------------------------------------------------------------------------------------------------

# An underscore inside a word emphasises nothing.
# The last alternative ends a heading.
_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|(?<= )#+$")
# The start of a heading, a list, a rule or a line under a heading.
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
    escaped = _MARKUP.sub(r"\\\g<0>", line)
    return Markdown(_LINE_START.sub(r"\1\\\2", escaped))


def paragraphs(text: str) -> Markdown:
    """Escape a text of several lines; an empty line begins a paragraph."""
    texts = re.split(r"\n\s*\n", text.strip())
    return Markdown("\n\n".join(map(escape_markdown, texts)))


def code_block(text: str, language: str = "") -> Markdown:
    """A fenced block that nothing in the text can end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = "\n".join(map(printable, text.strip().splitlines()))
    return Markdown(f"{fence}{language}\n{lines}\n{fence}")
