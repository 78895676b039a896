"""A table of figures with its title and notes, and its forms: terminal, CSV, Markdown, LaTeX, HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from shutil import get_terminal_size
from typing import Any

from markupsafe import Markup

from h2htalk.text.escaping import csv_text, escape_markdown, is_figure, latex_escaped, printable
from h2htalk.text.terminal_layout import divide_columns, fold, format_block, measure_column

NONE = "-"
Value = str | int | float | bool | None
# A figure that has more than a value: its interval as (3.7 to 11.8) or [3.7, 11.8] and its unit, its count, ties or p.
_FIGURE = re.compile(
    r"([^(\[]+?)(?: [(\[] *([-+\d.,]+?)(?:,| to) +([-+\d.,]+)[)\]]( \w+)?|(?=, ))"
    r"(?:, ((?:p |[\d,]+ (?:of|tied) ).+))? *"
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
        rows = [dict(zip(self.header, row, strict=True)) for row in self.rows if row]
        content = {"rows": rows, "notes": list(self.notes)}
        return json.dumps(content, ensure_ascii=False, indent=2) + "\n"

    def figures(self) -> list[bool]:
        """Return of each column whether it holds figures."""
        figures = []
        for index in range(len(self.header)):
            values = [row[index] for row in self.rows if row]
            figures.append(_holds_figures(values, is_first=index == 0))
        return figures

    def _texts(self, escape: Callable[[str], str]) -> list[list[str]]:
        lines = []
        for row in self.rows:
            lines.append(
                [value if isinstance(value, Markup) else escape(value_text(value)) for value in row]
            )
        return lines

    def to_terminal(self, gap: int = 2, width: int = 0) -> str:
        """Return lines without control characters, with a gap between columns; wide letters count twice.

        What is wider than `width` (0: than the terminal; 80 without one) is folded at words: headings, texts, notes.
        Columns that still find no room follow in blocks that repeat the first column. Nothing is cut.
        """
        width = width or get_terminal_size().columns
        headings = ["\n".join(map(printable, heading.split("\n"))) for heading in self.header]
        lines = [headings, *self._texts(printable)]
        columns = []
        for texts, right in zip(
            zip(*filter(None, lines), strict=True), self.figures(), strict=True
        ):
            columns.append(measure_column(texts, right, most=(width - gap) // 2))
        blocks = []
        for numbers in divide_columns(columns, self.header, gap, width):
            block = {number: columns[number] for number in numbers}
            blocks.append(format_block(lines, block, gap, width))
        title, *notes = [
            "\n".join(fold(printable(text), width, "  ")) for text in (self.title, *self.notes)
        ]
        titles = [title] if title else []
        return "\n".join([*titles, "\n\n".join(blocks), *notes])

    def to_csv(self) -> str:
        """Return the header and the rows as `csv_text` does; no text is a formula to a spreadsheet."""
        return csv_text(self.header, filter(None, self.rows), figures=True)

    def to_markdown(self) -> str:
        """Return the title as a heading, the table and the notes as a list, all texts escaped."""
        marks = ["---:" if right else "---" for right in self.figures()]
        lines = [[*map(_markdown, self.header)], marks, *filter(None, self._texts(_markdown))]
        table = [f"| {' | '.join(line)} |" for line in lines]
        notes = [f"* {escape_markdown(note)}" for note in self.notes]
        text = "\n".join([f"### {escape_markdown(self.title)}", "", *table, "", *notes])
        return text.rstrip() + "\n"

    def to_latex(self) -> str:
        """Return a `table` (over ten columns: `table*`) for booktabs and graphicx; its caption is title and notes."""
        kind = "table*" if len(self.header) > 10 else "table"
        alignment = "".join("r" if right else "l" for right in self.figures())
        lines = [
            "% needs \\usepackage{booktabs,graphicx}",
            rf"\begin{{{kind}}}[t]",
            r"\centering",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
        ]
        groups = []
        for title, columns in groupby(self.groups):
            span = len(list(columns))
            groups.append(rf"\multicolumn{{{span}}}{{c}}{{{_latex(title)}}}")
        if groups:
            lines.append(_latex_row(groups))
        lines += [_latex_row(map(_latex, self.header)), r"\midrule"]
        for texts in self._texts(_latex):
            lines.append(_latex_row(texts) if texts else r"\midrule")
        title = latex_escaped(self.title).removesuffix(".")
        caption = " ".join([f"{title}.", *map(latex_escaped, self.notes)])
        lines += [
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\caption{{{caption}}}",
            rf"\end{{{kind}}}",
            "",
        ]
        return "\n".join(lines)

    def to_html(self, language: str = "") -> Markup:
        """Return the table, whose values are in a language, and its notes; the page shows the title as its heading.

        A figure's interval, count or p stands in a column of its own below the same heading, as `ends`.
        """
        rows = [row for row in self._texts(printable) if row]
        columns = []
        for index, right in enumerate(self.figures()):
            texts = [row[index] for row in rows]
            columns.append(_html_column(index, self.header[index], right, texts))
        head, *lines = [
            Markup("<tr>{}</tr>").format(Markup().join(cells))
            for cells in zip(*columns, strict=True)
        ]
        body = Markup('<tbody lang="{}">').format(language) if language else Markup("<tbody>")
        start = Markup('<div class="wide" tabindex="0"><table>\n<thead>{}</thead>\n').format(head)
        pieces = [start + body, *lines, Markup("</tbody></table></div>")]
        if self.notes:
            notes = [Markup("<li>{}</li>").format(printable(note)) for note in self.notes]
            pieces.append(Markup('<ul class="notes">{}</ul>').format(Markup().join(notes)))
        return Markup("\n").join(pieces)


def _html_column(index: int, heading: str, right: bool, texts: Sequence[str]) -> Iterator[Markup]:
    """Yield the cells of a column, its heading first."""
    kind = Markup(' class="num"') if right else ""
    cell = "<td{}>{}</td>" if index else '<th scope="row"{}><bdi>{}</bdi></th>'
    matches = [_FIGURE.fullmatch(text) if right else None for text in texts]
    span = Markup(' colspan="2"') if any(matches) else ""
    if not isinstance(heading, Markup):
        heading = printable(heading)
    yield Markup('<th scope="col"{}{}>{}</th>').format(span, kind, heading)
    for text, match in zip(texts, matches, strict=True):
        value, low, high, unit, details = match.groups("") if match else (text, "", "", "", "")
        asides = []
        if low:
            separator = " to " if low[0] in "+-" else " – "
            asides.append(f"{low}{separator}{high}")
        if details:
            asides.append(details)
        html = Markup(cell).format(kind, value + unit)
        if span:
            spans = [Markup('<span class="ends">{}</span>').format(aside) for aside in asides]
            html += Markup('<td class="num beside">{}</td>').format(Markup(" ").join(spans))
        yield html


def value_text(value: Value) -> str:
    """Format a value as every form but CSV shows it."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:z,.3f}" if abs(value) < 1 else f"{value:,.2f}"  # z: no -0.000
    return f"{value:,}" if isinstance(value, int) else value


def _holds_figures(values: Sequence[Value], is_first: bool) -> bool:
    plain = [value.striptags() if isinstance(value, Markup) else value for value in values]
    filled = [value for value in plain if value not in (None, "", NONE)]
    if is_first:
        return bool(filled) and not any(isinstance(value, str) for value in filled)
    if values and not filled:  # dashes alone stand for figures
        return True
    figures = [value for value in filled if _BEGINS_A_FIGURE.match(value_text(value))]
    return 2 * len(figures) > len(filled)


def _markdown(text: str) -> str:
    return text if is_figure(text) else escape_markdown(text)


def _latex(text: str) -> str:
    escaped = "--" if text == NONE else latex_escaped(text)
    return re.sub(r"-(?=\.?\d)", "$-$", escaped) if is_figure(text) else escaped


def _latex_row(texts: Iterable[str]) -> str:
    return " & ".join(texts) + r" \\"
