"""Format Table 2 as LaTeX: two decimals, symbols on rows with a caution, first to third places marked.

Half the width of its interval is under each figure in small print. A line in small print above the rows gives the
number of items, and is repeated only where it changes. The three overall means are side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from h2htalk.benchmark.report.number_format import half_width_text
from h2htalk.benchmark.report.table2_layout import ALL_COLUMNS, COLUMNS, NOT_SCORED, OTHER_MEANS, Column
from h2htalk.benchmark.report.table2_rows import TableRow
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.text.escaping import latex_escaped as latex_escaped

_END = r" \\"
_PLACES = {1: r"\textbf{%s}", 2: r"\underline{%s}", 3: r"\textit{%s}"}
# Symbol, its text in the caption, and which rows get it.
_SIGNS = (
    (r"\dagger", "incomplete: some items are unscored", lambda row: not row.complete and not row.private),
    (r"\|", NOT_SCORED, lambda row: row.private),
    (
        r"\ddagger",
        "not comparable with the paper: SS is not from BGE-M3",
        lambda row: _is_s(row) and not row.comparable,
    ),
    (r"\ast", "mean of the six lexical metrics, not S", lambda row: row.measure != "s"),
    (r"\S", "unjudged: no judge's rating in Basic, Middle and Advanced", lambda row: not row.judged),
)


def _is_s(row: TableRow) -> bool:
    return row.measure == "s"


def latex_table(rows: Sequence[TableRow], caption: str = "H2HTalk results") -> str:
    """Format rows as a `table*` for the packages booktabs and graphicx; non-Latin names need a Unicode engine."""
    columns = ALL_COLUMNS if any(row.source != "paper" for row in rows) else COLUMNS
    lines = [
        "% needs \\usepackage{booktabs,graphicx}",
        r"\begin{table*}[t]",
        r"\centering\setlength{\tabcolsep}{3pt}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{l{_alignment(columns)}}}",
        r"\toprule",
        *_heading(columns),
        r"\midrule",
    ]
    for number, (group, members) in enumerate(groupby(rows, key=lambda row: row.group)):
        if number:
            lines.append(r"\midrule")
        if group:
            lines.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\textit{{{latex_escaped(group)}}}}}{_END}")
        lines += _body(list(members), columns)
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{latex_escaped(caption)}. {_notes(rows, columns)}}}",
        r"\label{tab:h2htalk}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


# --- Heading ----------------------------------------------------------------------------------------------------


def _spans(columns: Sequence[Column]) -> list[tuple[str, int]]:
    return [(group, len(list(members))) for group, members in groupby(columns, key=lambda c: c.group)]


def _alignment(columns: Sequence[Column]) -> str:
    return "".join(" " + "r" * length for _, length in _spans(columns))


def _heading(columns: Sequence[Column]) -> list[str]:
    first, rules, at = [""], [], 2
    for group, length in _spans(columns):
        first += [rf"\multicolumn{{{length}}}{{c}}{{{group}}}"] if group else [""] * length
        if group:
            rules.append(rf"\cmidrule(lr){{{at}-{at + length - 1}}}")
        at += length
    headings = ["Model", *(column.heading for column in columns)]
    return [" & ".join(first) + _END, "".join(rules), " & ".join(headings) + _END]


# --- Rows -------------------------------------------------------------------------------------------------------


def _body(rows: Sequence[TableRow], columns: Sequence[Column]) -> list[str]:
    """Format the rows of a group, each with its intervals, under lines with the number of items."""
    lines: list[str] = []
    said: list[str] = []
    for row in rows:
        items = [_items(row.cells.get(column.key)) for column in columns]
        if any(items) and items != said:
            lines.append(_small("items", items))
            said = items
        lines.append(" & ".join([_name(row), *(_value(row, column.key) for column in columns)]) + _END)
        halves = [_half(row.cells.get(column.key)) for column in columns]
        if any(halves):
            lines[-1] += "[-3pt]"  # an interval belongs to the figure above it
            lines.append(_small("", halves))
    return lines


def _small(label: str, texts: Sequence[str]) -> str:
    return " & ".join(rf"{{\scriptsize {text}}}" if text else "" for text in (label, *texts)) + _END


def _items(cell: Cell | None) -> str:
    """Format `1,882`, or `1,880/1,882` where some are unscored; empty where the paper gives no count."""
    if cell is None or not cell.total:
        return ""
    return f"{cell.n:,}" if cell.n == cell.total else f"{cell.n:,}/{cell.total:,}"


def _half(cell: Cell | None) -> str:
    return half_width_text(cell).replace("±", r"$\pm$")


def _name(row: TableRow) -> str:
    signs = [sign for sign, _, applies in _SIGNS if applies(row)]
    return latex_escaped(row.name) + (f"$^{{{' '.join(signs)}}}$" if signs else "")


def _value(row: TableRow, key: str) -> str:
    value = row.value(key)
    if value is None:
        return "--"
    return (_PLACES.get(row.marks.get(key, 0)) or "%s") % f"{value:.2f}"


# --- Caption ----------------------------------------------------------------------------------------------------


def _notes(rows: Sequence[TableRow], columns: Sequence[Column]) -> str:
    sentences = ["Scores in percent; Overall is weighted with Table 1's counts."]
    if OTHER_MEANS[0] in columns:
        sentences[0] = (
            "Scores in percent; Overall is weighted with Table 1's counts, Items is the mean over the scored items, "
            "Cells the plain mean of the cells."
        )
    if any(half_width_text(cell) for row in rows for cell in row.cells.values()):
        sentences.append(
            r"In small print, the items scored (of those asked, where not all are) and half the width of the 95\,\% "
            "interval (Wilson's, with effective n and t)."
        )
    if any(row.marks for row in rows):
        sentences.append(r"\textbf{First}, \underline{second} and \textit{third} of each group.")
    sentences += [f"$^{{{sign}}}$ {text}." for sign, text, applies in _SIGNS if any(applies(row) for row in rows)]
    return " ".join(sentences)
