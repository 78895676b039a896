"""Table 2 as LaTeX: two decimals, daggers on rows that need a word of caution, places marked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from h2htalk.benchmark.report.layout import COLUMNS
from h2htalk.benchmark.report.rows import TableRow
from h2htalk.text.printable import printable

_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_PLACES = {1: r"\textbf{%s}", 2: r"\underline{%s}", 3: r"\textit{%s}"}
# Sign, what it says in the caption, and which rows get it.
_SIGNS = (
    (r"\dagger", "incomplete: some items are unscored", lambda row: not row.complete),
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


def latex_escaped(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(_LATEX.get(character, character) for character in printable(text))


def latex_table(rows: Sequence[TableRow], caption: str = "H2HTalk results") -> str:
    """The rows as a `table*` for the packages booktabs and graphicx; names beyond Latin need a Unicode engine."""
    end = r" \\"
    lines = [
        "% needs \\usepackage{booktabs,graphicx}",
        r"\begin{table*}[t]",
        r"\centering\setlength{\tabcolsep}{3pt}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{l{_alignment()}}}",
        r"\toprule",
        *_latex_heading(),
        r"\midrule",
    ]
    for number, (group, members) in enumerate(groupby(rows, key=lambda row: row.group)):
        if number:
            lines.append(r"\midrule")
        if group:
            lines.append(
                rf"\multicolumn{{{len(COLUMNS) + 1}}}{{l}}{{\textit{{{latex_escaped(group)}}}}}{end}"
            )
        lines += [
            " & ".join([_latex_name(row), *(_latex_cell(row, c.key) for c in COLUMNS)]) + end
            for row in members
        ]
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{latex_escaped(caption)}. {_latex_notes(rows)}}}",
        r"\label{tab:h2htalk}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _spans() -> list[tuple[str, int]]:
    return [
        (group, len(list(members))) for group, members in groupby(COLUMNS, key=lambda column: column.group)
    ]


def _alignment() -> str:
    return "".join(" " + "r" * length for _, length in _spans())


def _latex_heading() -> list[str]:
    first, rules, at = [""], [], 2
    for group, length in _spans():
        first.append(rf"\multicolumn{{{length}}}{{c}}{{{group}}}" if group else "")
        if group:
            rules.append(rf"\cmidrule(lr){{{at}-{at + length - 1}}}")
        at += length
    return [
        " & ".join(first) + r" \\",
        "".join(rules),
        " & ".join(["Model", *(column.heading for column in COLUMNS)]) + r" \\",
    ]


def _latex_name(row: TableRow) -> str:
    signs = [sign for sign, _, applies in _SIGNS if applies(row)]
    return latex_escaped(row.model) + (f"$^{{{' '.join(signs)}}}$" if signs else "")


def _latex_cell(row: TableRow, key: str) -> str:
    value = row.value(key)
    if value is None:
        return "--"
    return (_PLACES.get(row.marks.get(key, 0)) or "%s") % f"{value:.2f}"


def _latex_notes(rows: Sequence[TableRow]) -> str:
    sentences = ["Scores in percent; overall weighted with Table 1's counts."]
    if any(row.marks for row in rows):
        sentences.append(r"\textbf{First}, \underline{second} and \textit{third} of each group.")
    sentences += [
        f"$^{{{sign}}}$ {text}." for sign, text, applies in _SIGNS if any(applies(row) for row in rows)
    ]
    return " ".join(sentences)
