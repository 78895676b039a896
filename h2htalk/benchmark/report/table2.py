"""Table 2 and the other tables of a run: columns, how a cell is written, rows from a run or its baselines, files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Literal

from h2htalk.benchmark.metrics.composite import Scores, all_columns
from h2htalk.benchmark.statistics import Cell, Row
from h2htalk.benchmark.summary import ScoreRows, Summary
from h2htalk.data.files import write_text
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, RISKS
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.escaping import printable
from h2htalk.text.tables import Table

UNJUDGED = "Unjudged: Itinerary Basic, Middle and Advanced (levels I-III) include no judge's rating."
NOT_SCORED = "not scored: references are private"
SKEWED = 1.2  # the longer side of an interval to the other, beyond which (and a unit of the last digit) ends are shown


PERCENT = "{:.0f} %"


def value_text(cell: Cell | None, none: str = "-", form: str = "{:.2f}") -> str:
    """Format the value with two decimals, as in the paper's tables, or in another form."""
    return none if cell is None or cell.value is None else form.format(cell.value)


def half_width_text(cell: Cell | None, ends: bool = False) -> str:
    """Format `±1.0`, of a skewed interval or for `ends` `(3.1 to 9.0)`, without decimals from ±10 on; or nothing."""
    if cell is None or cell.value is None or cell.low is None or cell.high is None:
        return ""
    below, above, half = cell.value - cell.low, cell.high - cell.value, (cell.high - cell.low) / 2
    digits = 2 if ends else 1 if half < 9.95 else 0
    if ends or max(below, above) > SKEWED * min(below, above) + 10**-digits:
        return f"({cell.low:.{digits}f} to {cell.high:.{digits}f})"
    return f"±{half:.{digits}f}"


def with_half_width(cell: Cell | None, ends: bool = False) -> str:
    """Format `40.00 ±1.0`, `4.28 (3.1 to 9.0)`, or the value alone; `ends` as of `half_width_text`."""
    return f"{value_text(cell)} {half_width_text(cell, ends)}".rstrip()


def items_text(cell: Cell | None) -> str:
    """Format the items scored and the items in all: `1,880/1,882`."""
    return "-" if cell is None else f"{cell.n:,}/{cell.total:,}"


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of Table 2. `key` is a subtask, `<dimension>_avg` or `overall`; `group` is the heading above."""

    key: str
    heading: str
    group: str
    is_average: bool = False

    @property
    def title(self) -> str:
        """The heading of a table without groups of columns."""
        return f"{self.group} avg." if self.is_average and self.group else self.heading


def _columns(dimension: str) -> Iterable[Column]:
    group = dimension.title()
    yield from (Column(s.name, s.column, group) for s in SUBTASKS.values() if s.dimension == dimension)
    yield Column(f"{dimension}_avg", "Avg.", group, True)


# Eleven cells, three averages and the overall, in the paper's order.
COLUMNS = (*chain(*map(_columns, DIMENSIONS)), Column("overall", "Overall", "", True))
# Two more overall means, which the paper does not print: over the items and over the cells that the split has.
ALL_COLUMNS = (*COLUMNS, Column("items_mean", "Items", "", True), Column("plain_mean", "Cells", "", True))


def _in_order(row: Row) -> Row:
    return {column.key: row[column.key] for column in ALL_COLUMNS if column.key in row}


def main_row(summary: Summary, rows: ScoreRows | None = None) -> Row:
    """Return the row of the summary's main measure, of the model or of a baseline."""
    own = rows or summary.rows
    return (own.judged or own.s or own.lexical) if summary.measure == "s" else own.lexical


def has_levels(row: Row) -> bool:
    """Whether a row has any of the itinerary subtasks that a judge scores (levels I-III)."""
    return any(one.level and name in row for name, one in SUBTASKS.items())


Source = Literal["run", "human", "baseline", "paper"]
SIGNS = ("", "¹", "²", "³")  # of the places in a group


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row, from a run (of a model, or of people's replies), one of its baselines, or the paper.

    `cells` by column key (`ALL_COLUMNS`), 0 to 100; those of the paper have no counts (n = total = 0). Runs with equal
    `protocol` may be compared. `group` is the row's heading; `marks` holds places 1 to 3 by column key. `judged` is
    False while a level I-III cell has no judge's rating. `private`: references are private, so items are not scored.
    `variant` names other figures of the same run, which are never ranked: `unjudged` (levels as 100 S) or `corrected`.
    """

    model: str
    source: Source
    cells: Mapping[str, Cell]
    measure: str = "s"
    split: str = ""
    languages: str = ""
    protocol: str = ""
    complete: bool = True
    comparable: bool = True
    judged: bool = True
    group: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    private: bool = False
    variant: str = ""

    @property
    def name(self) -> str:
        """The row's name: the model, and which of its figures, such as `m (unjudged)`."""
        return f"{self.model} ({self.variant})" if self.variant else self.model

    @property
    def cautions(self) -> str:
        """What a reader must know of the figures, such as `[INCOMPLETE, unjudged]`; empty where there is nothing."""
        cautions = [] if self.complete else [NOT_SCORED if self.private else "INCOMPLETE"]
        if self.measure != "s":
            cautions.append("lexical mean, not S")
        elif not self.comparable:
            cautions.append("S not comparable")
        cautions += [] if self.judged else ["unjudged"]
        return f"[{', '.join(cautions)}]" if cautions else ""

    @property
    def label(self) -> str:
        """The name with the cautions."""
        return f"{self.name} {self.cautions}".rstrip()

    def value(self, key: str) -> float | None:
        """Return the figure of a column, None where there is none."""
        cell = self.cells.get(key)
        return None if cell is None else cell.value

    def text(self, key: str, decimals: int = 2, half: str = "") -> str | None:
        """Return the figure of a column as text with the sign of its place, and half its interval or its ends."""
        if (value := self.value(key)) is None:
            return None
        interval = half_width_text(self.cells[key], half == "ends") if half in ("beside", "ends") else ""
        return f"{value:.{decimals}f}{SIGNS[self.marks.get(key, 0)]} {interval}".rstrip()


def model_rows(summary: Summary) -> list[TableRow]:
    """Return the run's row, and the other figures of a judged run."""
    rows, judging = summary.rows, summary.judging
    if rows.judged is None:
        return [table_row(summary)]
    corrected = {key: cell for key, cell in (judging.corrected if judging else {}).items() if key in SUBTASKS}
    own = table_row(replace(summary, judged=False, judging=None, rows=replace(rows, judged=None)))
    variants = [replace(own, cells=corrected, judged=True, variant="corrected")] if corrected else []
    return [table_row(summary), *variants, replace(own, variant="unjudged")]


def table_rows(summary: Summary) -> list[TableRow]:
    """Return all rows of a run: the model, its variants and its baselines."""
    return [*model_rows(summary), *(table_row(summary, baseline) for baseline in summary.baselines)]


def table_row(summary: Summary, baseline: str | None = None) -> TableRow:
    """Return the row of a run's model, or of a baseline by name, over the items that have the main measure."""
    row = main_row(summary, summary.baselines[baseline] if baseline else None)
    return TableRow(
        model=baseline or summary.model,
        source="baseline" if baseline else "human" if summary.signature.human else "run",
        cells=_in_order(row),
        measure=summary.measure,
        split=summary.split,
        languages=summary.measured,
        protocol=summary.signature.fingerprint,
        complete=row["items_mean"].n == row["items_mean"].total and bool(baseline or not summary.incomplete),
        comparable=summary.s_comparable,
        judged=summary.judged or not has_levels(row),
        private=summary.counts.private > 0,
    )


def rows_table(
    rows: Sequence[TableRow], title: str = "", columns: Sequence[Column] = (), decimals: int = 2, half: str = "beside"
) -> Table:
    """The rows of Table 2 under the titles of their groups, with half of each interval beside or below its figure.

    `half`: `beside`, `below`, `ends` (those of the interval, beside) or empty. Without `columns` the paper's, and for
    others two more means and the items.
    """
    own, below = any(row.source != "paper" for row in rows), half == "below"
    columns, items = columns or (ALL_COLUMNS if own else COLUMNS), ["Items scored"] * own
    lines: list[Sequence[str | None]] = []
    for number, (group, members) in enumerate(groupby(rows, key=lambda row: row.group)):
        lines += [()] if number else []
        lines += [[group, *[""] * (len(columns) + own)]] if group else []
        for row in members:
            scored = [items_text(row.cells.get("items_mean")) if row.source != "paper" else None] * own
            figures = [row.text(column.key, decimals, half) for column in columns]
            lines.append([row.label if half in ("beside", "ends") else row.name, *scored, *figures])
            if below and row.source != "paper":
                lines.append([row.cautions, "", *(half_width_text(row.cells.get(one.key)) for one in columns)])
    notes = ["Scores in percent. Overall: weighted with Table 1's counts, needs all subtasks."]
    if own:
        notes.append("Items: mean of the scored items. Cells: plain mean of the cells.")
        half_of = "±: half the 95 % interval (Wilson's, with effective n and t); its ends where it is skewed."
        notes.append("Intervals 95 % (Wilson's, with effective n and t)." if half == "ends" else half_of)
        notes += [UNJUDGED] * any(not row.judged for row in rows)
    if any(row.marks for row in rows):
        notes.append(f"{' '.join(SIGNS[1:])} first, second and third of a group.")
    groups = ["", *[""] * own, *(column.group for column in columns)] if below else ()
    return Table(title, ["", *items, *(c.heading if below else c.title for c in columns)], lines, notes, groups=groups)


FIGURES = ("value", "low", "high", "n", "total")  # of a cell, in full precision
_FACTS = ("source", "group", "split", "languages", "measure", "complete", "comparable", "judged", "protocol")


def table_text(rows: Sequence[TableRow], kind: str) -> str:
    """Format rows as `csv` (each column's value, then its `_low`, `_high`, `_n` and `_total`), `json` or `latex`."""
    if kind == "latex":
        return rows_table(rows, "H2HTalk results", half="below").to_latex()
    facts = [{"model": row.name} | {name: getattr(row, name) for name in _FACTS} for row in rows]
    if kind == "json":
        listed = [
            {**own, "cells": {key: _figures(row, key) for key in row.cells}, "marks": dict(row.marks)}
            for own, row in zip(facts, rows, strict=True)
        ]
        return json.dumps(listed, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    keys = [column.key for column in ALL_COLUMNS]
    names = [key if part == "value" else f"{key}_{part}" for key in keys for part in FIGURES]
    lines = [
        [*map(str, own.values()), *(figure for key in keys for figure in _figures(row, key).values())]
        for own, row in zip(facts, rows, strict=True)
    ]
    return Table("", ["model", *_FACTS, *names], lines).to_csv()


def _figures(row: TableRow, key: str) -> dict[str, float | int | None]:
    """The numbers of a cell; those of the paper have no counts."""
    cell = row.cells.get(key)
    figures = dict.fromkeys(FIGURES) if cell is None else asdict(cell)
    return figures | ({"n": None, "total": None} if row.source == "paper" else {})


_MEANS = {"overall": "Overall", "items_mean": "Mean of items", "plain_mean": "Mean of cells"}


def measure_name(summary: Summary) -> str:
    """Return the title of the main column."""
    if summary.rows.judged is not None:
        return "S and J"
    return "S" if summary.measure == "s" else "Lexical mean"


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort names by descending count; equal counts by name."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def subtask_table(summary: Summary, wide: bool = True) -> Table:
    """Return the figures by subtask with those of the baselines; a row of a dimension's title has no figures.

    Narrow tables have half of each interval or, where it is skewed, its ends. A baseline ends with `!` where the model
    is not above it.
    """
    measures = [measure_name(summary), *["S"] * (summary.rows.judged is not None)]
    lexical = ["Lexical" if wide else "Lex."] * (summary.measure == "s")
    baselines = [name if wide else name.replace("-", "-\n") for name in map(printable, summary.baselines)]
    header = ["Subtask", "Items", *measures, *lexical, "Contract" if wide else "Con-\ntract", *baselines]
    # Subtasks without S are included by their lexical mean.
    at_hand = [SUBTASKS[name] for name in SUBTASKS if name in summary.rows.lexical]
    groups: dict[str, dict[str, str]] = {d: {s.name: s.column for s in at_hand if s.dimension == d} for d in DIMENSIONS}
    groups["averages"] = {f"{d}_avg": d.title() for d in DIMENSIONS if groups[d]} | _MEANS
    rows = list[Sequence[str]]()
    for title, labels in groups.items():
        rows += [[title.title(), *[""] * (len(header) - 1)]] * bool(labels)
        rows += (_line(summary, *one, wide) for one in labels.items())
    return Table("", header, rows)


def notebook_table(summary: Summary) -> Table:
    """Return `subtask_table` with what a reader must know as notes."""
    row = table_row(summary)
    notes = [f"{row.label}: {summary.counts.scored:,} of {summary.counts.items:,} items of {row.split} scored"]
    notes.append("Intervals 95 %. A baseline ends with ! where the model is not shown to be above it.")
    return replace(subtask_table(summary), notes=[*notes, *[UNJUDGED] * (not row.judged), *summary.warnings])


def beside(summary: Summary, key: str) -> list[str]:
    """Return what stands beside a figure: S of a judged run, the lexical mean of S, kept contracts, baselines."""
    rows = summary.rows
    unjudged = [value_text((rows.s or {}).get(key))] * (rows.judged is not None)
    lexical = [value_text(rows.lexical.get(key))] * (summary.measure == "s")
    texts = {name: value_text(main_row(summary, own).get(key)) for name, own in summary.baselines.items()}
    baselines = [text + "! "[key not in summary.reached[name]] for name, text in texts.items()]
    return [*unjudged, *lexical, value_text(rows.compliance.get(key), form=PERCENT), *baselines]


def _line(summary: Summary, key: str, label: str, wide: bool) -> list[str]:
    cell = main_row(summary).get(key)
    # As wide for each, so that values align.
    ends = "" if cell is None or cell.low is None else f"[{cell.low:5.2f}, {cell.high:5.2f}]"
    short = {own: half_width_text(one).replace(" to ", "–") for own, one in main_row(summary).items()}
    most = max(map(len, short.values()))
    value = f"{value_text(cell)} {ends:<15}" if wide else f"{value_text(cell)} {short.get(key, ''):<{most}}"
    return [f" {label}", items_text(cell), value, *beside(summary, key)]


def null_class_table(summary: Summary, ends: bool = False) -> Table:
    """Return how often the model and its baselines say that there is nothing to remember, and are right."""
    rows = []
    for name, of in {summary.model: summary.rows, **summary.baselines}.items():
        if (null := of.null_class) is not None:
            ratios = (with_half_width(one, ends) for one in (null.precision, null.recall, null.f1))
            counts = (f"{n:,.1f}".removesuffix(".0") for n in (null.references, null.answers, null.hits))
            rows.append((name, items_text(null.f1), *ratios, *counts))
    header = ("nothing to remember", "items", "precision", "recall", "F1", "null references", "null answers", "both")
    return Table("", header, rows)


def answer_tables(summary: Summary) -> list[Table]:
    """Return what kinds of replies came, and the contract rules that they break."""
    counts, samples = summary.counts, max(1, summary.counts.samples)
    kinds = [(name, getattr(counts, name)) for name in ("empty", "truncated", "refused")]
    kinds += [(f"unscored ({r}): {counts.failure_messages.get(r, '')}", n) for r, n in most_first(counts.failures)]
    broken = [(rule, n, f"{100 * n / samples:.1f} %", RULES.get(rule)) for rule, n in most_first(summary.violations)]
    header = ("broken contract rules", "n", "share", "")
    return [Table("", (f"of {counts.samples:,} replies", "n"), kinds), *([Table("", header, broken)] * bool(broken))]


_TAG_ORDERS = {"complexity": COMPLEXITIES, "interaction": INTERACTIONS, "risk": RISKS, "language": LANGUAGES}


def ordered_slices(summary: Summary) -> dict[str, dict[str, Cell]]:
    """Return the slices in the order of their tag's values; emotions by descending number of items."""
    ordered = {}
    for tag, cells in summary.slices.items():
        order = {value: place for place, value in enumerate(_TAG_ORDERS.get(tag, ()))}
        places = sorted(cells, key=lambda value: (order.get(value, len(order)), -cells[value].total, value))
        ordered[tag] = {value: cells[value] for value in places}
    return ordered


def slice_tables(summary: Summary, ends: bool = False) -> list[Table]:
    """Return the figures of each value of each tag that has several."""
    tables = []
    for tag, cells in ordered_slices(summary).items():
        if len(cells) > 1:
            rows = [(value, items_text(cell), with_half_width(cell, ends)) for value, cell in cells.items()]
            tables.append(Table("", (tag, "items", measure_name(summary)), rows))
    return tables


ITEMS = "items.csv"
TABLES = ("table2.csv", "table2.json", "table2.tex", "metrics.csv", "slices.csv", ITEMS)  # of every run


def write_tables(summary: Summary, split: Split, scores: Scores, folder: Path) -> None:
    """Write a run's figures.

    `table2.csv`, `table2.json` and `table2.tex` have the model and its baselines; `metrics.csv` every figure of every
    metric; `slices.csv` the slices; `items.csv` every item.
    """
    texts = [table_text(table_rows(summary), kind) for kind in ("csv", "json", "latex")]
    texts += [one.to_csv() for one in (metrics_table(summary), slices_table(summary), items_table(split, scores))]
    for name, text in zip(TABLES, texts, strict=True):
        write_text(folder / name, text)


def items_table(split: Split, scores: Scores) -> Table:
    """Return every item: id, subtask, language, why it is unscored, then its means, times 100 as in the tables.

    `contract` is the share of its answers that break no rule; `rating` (R) and `j` (of levels I to III) are 0 to 5.
    What could not be computed is empty.
    """
    columns = all_columns(one.metrics for one in scores.values())
    rows: list[list[object]] = []
    for one in split.scenarios:
        score = scores[one.id]
        values = [score.s, score.lexical, *(score.metrics.get(name) for name in columns), score.compliance]
        figures = [None if value is None else 100 * value for value in values]
        judged = [score.rating, score.j if SUBTASKS[one.subtask].level else None]
        rows.append([one.id, one.subtask, one.language, score.unscored or "", *figures, *judged])
    heading = ["id", "subtask", "language", "unscored", "s", "lexical", *columns, "contract", "rating", "j"]
    return Table("", heading, rows)


_OF_S = ("s", "ss", "judged", "corrected")  # metrics of the items that have S
_MARKS = ("complete", "comparable", "judged")


def metrics_table(summary: Summary) -> Table:
    """Return every figure of the model and its baselines: model, source, languages, metric, of, marks, cell.

    `metric` is `s`, `judged` (levels I to III as 20 J), `rating` (20 R of all judged items), `corrected` (20 J by
    people's labels), `share` (in percent, of yes to the point that `of` names), `lexical`, `contract`, a part of S, or
    `null_precision`, `null_recall` and `null_f1`; `of` a key of `ALL_COLUMNS`.
    """
    rows = []
    for baseline in (None, *summary.baselines):
        own, head = summary.baselines[baseline] if baseline else summary.rows, table_row(summary, baseline)
        marks = [str(getattr(head, mark)) for mark in _MARKS]
        named = {"s": own.s, "judged": own.judged, "lexical": own.lexical, "contract": own.compliance}
        found: dict[str, Mapping[str, Cell]] = {metric: _in_order(row or {}) for metric, row in named.items()}
        if (null := own.null_class) is not None:
            of = "+".join(subtask.name for subtask in SUBTASKS.values() if subtask.has_null_line)
            found |= {f"null_{name}": {of: getattr(null, name)} for name in ("precision", "recall", "f1")}
        if baseline is None and (judging := summary.judging) is not None:
            ratings = {key: cell for key, cell in judging.ratings.items() if key in SUBTASKS}
            found |= {"rating": ratings, "corrected": judging.corrected, "share": judging.points}
        cells = [(metric, of, cell) for metric, group in found.items() for of, cell in group.items()]
        if baseline is None:
            cells += [(metric, of, cell) for of, group in summary.metrics.items() for metric, cell in group.items()]
        for metric, of, cell in cells:
            languages = summary.measured if metric in _OF_S else "+".join(summary.languages)
            rows.append([head.model, head.source, languages, metric, of, *marks, *astuple(cell)])
    return Table("", ["model", "source", "languages", "metric", "of", *_MARKS, *FIGURES], rows)


def slices_table(summary: Summary) -> Table:
    """Return the slices of the run's measure: tag, its value, languages, measure, marks, then the cell."""
    head = table_row(summary)
    begin = [head.languages, head.measure, *(str(getattr(head, mark)) for mark in _MARKS)]
    rows = [[tag, of, *begin, *astuple(one)] for tag, own in ordered_slices(summary).items() for of, one in own.items()]
    return Table("", ["tag", "of", "languages", "measure", *_MARKS, *FIGURES], rows)
