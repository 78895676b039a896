"""A table of figures with its title and notes, and its forms: terminal, CSV, Markdown, LaTeX, HTML."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from shutil import get_terminal_size
from typing import Any, NamedTuple

from markupsafe import Markup

from h2htalk.text.escaping import csv_text, escape_markdown, is_figure, latex_escaped, printable

NONE = "-"
Value = str | int | float | bool | None
_TEXT = 20  # columns that are left to a text before other columns go to a further block
# After white space, a slash, a Chinese character, and a hyphen in a word, and before a capital in it.
_BREAKS = re.compile(r"(?<=[\s/\u2e80-\uffef])(?=[^\s%。，、；：？！）」』”])|(?<=\w[-_])(?=\w)|(?<=[a-z])(?=[A-Z])")
_PARTS = re.compile("(?<=, )")  # of a figure: its interval, its p or count
# A figure that has more than a value: its interval as (3.7 to 11.8) or [3.7, 11.8] and its unit, its count or p.
_FIGURE = re.compile(
    r"([^(\[]+?)(?: [(\[] *([-+\d.,]+?)(?:,| to) +([-+\d.,]+)[)\]]( \w+)?|(?=, ))(?:, ((?:p |[\d,]+ of ).+))? *"
)
_BEGINS_A_FIGURE = re.compile(r"(?:at most |p )?[-+±<$]?[\[(]?[-+]?\.?\d")


@dataclass(frozen=True, slots=True)
class Table:
    """A table with notes below it; the first column holds names, and `name` is that of the table's files.

    A value is a text, a number, a truth value or None, which is shown as `-`. Numbers have commas, and three decimals
    below 1, else two; CSV holds them in full. A column in which most values are figures is aligned to the right. A line
    end in a heading breaks it on the terminal. An empty row separates blocks, on the terminal and in LaTeX. `Markup` is
    for HTML alone, `groups` (a heading above each column) for LaTeX.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]  # of `Value`
    notes: Sequence[str] = ()
    name: str = ""
    groups: Sequence[str] = ()

    def to(self, format: str) -> str:
        """Return it as `terminal`, `csv`, `json` (an object for each row), `markdown` or `latex`."""
        if format != "json":
            return str(getattr(self, f"to_{format}")())
        rows = [dict(zip(self.header, row, strict=True)) for row in filter(None, self.rows)]
        return json.dumps({"rows": rows, "notes": [*self.notes]}, ensure_ascii=False, indent=2) + "\n"

    def figures(self) -> list[bool]:
        """Return of each column whether it holds figures."""
        return [_holds_figures([row[k] for row in self.rows if row], k == 0) for k in range(len(self.header))]

    def _texts(self, escaped: Callable[[str], str]) -> list[list[str]]:
        return [[one if isinstance(one, Markup) else escaped(value_text(one)) for one in row] for row in self.rows]

    def to_terminal(self, gap: int = 2, width: int = 0) -> str:
        """Return lines without control characters, with a gap between columns; wide letters count twice.

        What is wider than `width` (0: than the terminal; 80 without one) is folded at words: headings, texts, notes.
        Columns that still find no room follow in blocks that repeat the first column. Nothing is cut.
        """
        width = width or get_terminal_size().columns
        heads = ["\n".join(map(printable, head.split("\n"))) for head in self.header]
        lines, columns, blocks = [heads, *self._texts(printable)], list[_Column](), [[0]]
        for (head, *texts), right in zip(zip(*filter(None, lines), strict=True), self.figures(), strict=True):
            widest = max(_width(line) for text in (head, *texts) for line in text.split("\n"))
            kept = max((_width(part.rstrip()) for one in texts for part in _PARTS.split(one)), default=0)
            kept = kept if right else _TEXT
            words = max(_width(word.rstrip()) for word in _BREAKS.split(head))
            columns.append(_Column(right, widest, min(widest, max(kept, words), (width - gap) // 2)))
        for k in range(1, len(columns)):
            if sum(columns[own].least + gap for own in blocks[-1]) + columns[k].least > width:
                # Of two columns with one heading, such as `by`, each stays with the column before it if there is room.
                room = sum(columns[own].least + gap for own in (0, k - 1)) + columns[k].least <= width
                joined = room and len(blocks[-1]) > 2 and self.header.count(self.header[k]) > 1
                blocks.append([0, blocks[-1].pop()] if joined else [0])
            blocks[-1].append(k)
        shown = (_block(lines, {k: columns[k] for k in block}, gap, width) for block in blocks)
        title, *notes = ("\n".join(_folded(printable(text), width, "  ")) for text in (self.title, *self.notes))
        return "\n".join([*filter(None, [title]), "\n\n".join(shown), *notes])

    def to_csv(self) -> str:
        """Return the header and the rows as `csv_text` does; no text is a formula to a spreadsheet."""
        return csv_text(self.header, filter(None, self.rows), figures=True)

    def to_markdown(self) -> str:
        """Return the title as a heading, the table and the notes as a list, all texts escaped."""
        marks = ["---:" if right else "---" for right in self.figures()]
        lines = [[*map(_markdown, self.header)], marks, *filter(None, self._texts(_markdown))]
        table = [f"| {' | '.join(line)} |" for line in lines]
        notes = [f"* {escape_markdown(note)}" for note in self.notes]
        return "\n".join([f"### {escape_markdown(self.title)}", "", *table, "", *notes]).rstrip() + "\n"

    def to_latex(self) -> str:
        """Return a `table` (over ten columns: `table*`) for booktabs and graphicx; its caption is title and notes."""
        alignment = "".join("r" if right else "l" for right in self.figures())
        texts = [[*map(_latex, self.header)], *self._texts(_latex)]
        lines = [" & ".join(line) + r" \\" if line else r"\midrule" for line in texts]
        caption = " ".join([f"{latex_escaped(self.title).removesuffix('.')}.", *map(latex_escaped, self.notes)])
        spans = [(title, len([*own])) for title, own in groupby(self.groups)]
        heads = " & ".join(rf"\multicolumn{{{span}}}{{c}}{{{_latex(title)}}}" for title, span in spans)
        above = [heads + r" \\"] if heads else []
        kind = "table*" if len(self.header) > 10 else "table"
        return "\n".join(
            [
                *("% needs \\usepackage{booktabs,graphicx}", rf"\begin{{{kind}}}[t]", r"\centering"),
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                *(rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", *above, lines[0], r"\midrule", *lines[1:]),
                *(r"\bottomrule", r"\end{tabular}}", rf"\caption{{{caption}}}", rf"\end{{{kind}}}", ""),
            ]
        )

    def to_html(self, language: str = "") -> Markup:
        """Return the table, whose values are in a language, and its notes; the page shows the title as its heading.

        A figure's interval, count or p stands in a column of its own below the same heading, as `ends`.
        """
        rows, figures = [*filter(None, self._texts(printable))], self.figures()
        texts = ([row[k] for row in rows] for k in range(len(figures)))
        columns = [_html_column(*one) for one in zip(count(), self.header, figures, texts, strict=False)]
        body = Markup('<tbody lang="{}">').format(language) if language else Markup("<tbody>")
        heads, *lines = (Markup("<tr>{}</tr>").format(Markup().join(line)) for line in zip(*columns, strict=True))
        head = Markup('<div class="wide" tabindex="0"><table>\n<thead>{}</thead>\n').format(heads)
        parts = [head + body, *lines, Markup("</tbody></table></div>")]
        if self.notes:
            notes = Markup().join(Markup("<li>{}</li>").format(printable(note)) for note in self.notes)
            parts.append(Markup('<ul class="notes">{}</ul>').format(notes))
        return Markup("\n").join(parts)


def _html_column(place: int, head: str, right: bool, texts: Sequence[str]) -> Iterator[Markup]:
    kind, cell = Markup(' class="num"' * right), "<td{}>{}</td>" if place else '<th scope="row"{}><bdi>{}</bdi></th>'
    found = [_FIGURE.fullmatch(text) if right else None for text in texts]
    span, shown = Markup(' colspan="2"' * any(found)), head if isinstance(head, Markup) else printable(head)
    yield Markup('<th scope="col"{}{}>{}</th>').format(span, kind, shown)
    for text, one in zip(texts, found, strict=True):
        value, low, high, unit, more = one.groups("") if one else (text, "", "", "", "")
        ends = low and f"{low}{' to ' if low[0] in '+-' else ' – '}{high}"
        asides = Markup(" ").join(Markup('<span class="ends">{}</span>').format(part) for part in (ends, more) if part)
        beside = Markup('<td class="num beside">{}</td>').format(asides) if span else ""
        yield Markup(cell).format(kind, value + unit) + beside


def value_text(value: Value) -> str:
    """Format a value as every form but CSV shows it."""
    if value is None or isinstance(value, bool):
        return NONE if value is None else "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:z,.3f}" if abs(value) < 1 else f"{value:,.2f}"  # z: no -0.000
    return f"{value:,}" if isinstance(value, int) else value


def _holds_figures(values: list[Value], first: bool) -> bool:
    values = [value.striptags() if isinstance(value, Markup) else value for value in values]
    said = [value for value in values if value not in (None, "", NONE)]
    if first:
        return bool(said) and not any(isinstance(value, str) for value in said)
    if values and not said:  # dashes alone stand for figures
        return not first
    return 2 * sum(bool(_BEGINS_A_FIGURE.match(value_text(value))) for value in said) > len(said)


class _Column(NamedTuple):
    right: bool
    widest: int
    least: int  # to which it may be folded


def _block(lines: Sequence[Sequence[str]], columns: Mapping[int, _Column], gap: int, width: int) -> str:
    """Format some columns of a table. The widest of those that may be folded are, until all fit."""
    tried = ([min(one.widest, max(one.least, most)) for one in columns.values()] for most in range(width, -1, -1))
    widths = next(own for own in tried if sum(own) + gap * (len(own) - 1) <= width)
    shown = list[str]()
    for n, line in enumerate(lines):
        cells = [
            _folded(line[k], own, "  " * (k == 0 < n), _PARTS if one.right and n else _BREAKS)
            for (k, one), own in zip(columns.items(), widths, strict=True)
            if line
        ]
        height = max(map(len, cells), default=1)
        padded = [[""] * (height - len(one)) + one if n == 0 else one + [""] * (height - len(one)) for one in cells]
        for row in zip(*padded, strict=True) if line else [()]:
            texts = (
                " " * (own - _width(text)) + text if one.right else text + " " * (own - _width(text))
                for text, own, one in zip(row, widths, columns.values(), strict=False)
            )
            shown.append((" " * gap).join(texts).rstrip())
    return "\n".join(shown)


def _folded(text: str, width: int, indent: str, breaks: re.Pattern[str] = _BREAKS) -> list[str]:
    """Break a text at its words into lines of a width, and longer words anywhere; `indent`: of all but the first."""
    if "\n" not in text and _width(text) <= width:
        return [text]
    lines = list[str]()
    for part in text.split("\n"):
        lines.append("")
        for word in breaks.split(part):
            for piece in [word] if _width(word.rstrip()) <= width - len(indent) else word:
                if _width((lines[-1] + piece).rstrip()) > width:
                    lines.append(indent)
                lines[-1] += piece
    return [line.rstrip() for line in lines]


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    marks = sum(unicodedata.combining(letter) > 0 for letter in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)


def _markdown(text: str) -> str:
    return text if is_figure(text) else escape_markdown(text)


def _latex(text: str) -> str:
    escaped = "--" if text == NONE else latex_escaped(text)
    return re.sub(r"-(?=\.?\d)", "$-$", escaped) if is_figure(text) else escaped
