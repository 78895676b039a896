"""Table 2: its columns, how a cell is written, and its rows from a run, its baselines or the paper, as every format."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import chain, groupby
from typing import Any, Literal

from h2htalk.benchmark.statistics import Cell, Row
from h2htalk.benchmark.summary import ScoreRows, Summary
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.tables import Table

UNJUDGED = "Unjudged: Itinerary Basic, Middle and Advanced (levels I-III) include no judge's rating."
NOT_SCORED = "not scored: references are private"


# --- Cells as text -----------------------------------------------------------------------------------------------


def value_text(cell: Cell | None, none: str = "-") -> str:
    """Format the value with two decimals, as in the paper's tables."""
    return none if cell is None or cell.value is None else f"{cell.value:.2f}"


def percent_text(cell: Cell | None, none: str = "-") -> str:
    """Format the value as a whole percentage."""
    return none if cell is None or cell.value is None else f"{cell.value:.0f} %"


def half_width(cell: Cell | None) -> float | None:
    """Return half the width of the 95 % interval; None where there is no interval."""
    return None if cell is None or cell.low is None or cell.high is None else (cell.high - cell.low) / 2


def half_width_text(cell: Cell | None) -> str:
    """Format `±1.0`, at most five characters (no decimals from ±10 on); empty where there is no interval."""
    if (half := half_width(cell)) is None:
        return ""
    return f"±{half:.1f}" if half < 9.95 else f"±{half:.0f}"


def with_half_width(cell: Cell | None) -> str:
    """Format `40.00 ±1.0`, or the value alone."""
    return f"{value_text(cell)} {half_width_text(cell)}".rstrip()


def interval_text(cell: Cell | None) -> str:
    """Format `39.00 – 41.00`; empty where there is no interval."""
    return "" if cell is None or cell.low is None else f"{cell.low:.2f} – {cell.high:.2f}"


def items_text(cell: Cell | None) -> str:
    """Format the items scored and the items in all: `1,880/1,882`."""
    return "-" if cell is None else f"{cell.n:,}/{cell.total:,}"


# --- Columns and rows --------------------------------------------------------------------------------------------


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


def cells_of(row: Row | None) -> dict[str, Cell]:
    """Return the cells of a row by key of their column."""
    if row is None:
        return {}
    means = {"overall": row.overall, "items_mean": row.items_mean, "plain_mean": row.plain_mean}
    cells = {**row.cells, **{f"{name}_avg": cell for name, cell in row.dimensions.items()}, **means}
    return {column.key: cells[column.key] for column in ALL_COLUMNS if column.key in cells}


def cell_at(row: Row | None, key: str) -> Cell | None:
    """Return the cell of a column's key; None where the row has none."""
    return cells_of(row).get(key)


def main_row(summary: Summary, rows: ScoreRows | None = None) -> Row:
    """Return the row of the summary's main measure, of the model or of a baseline."""
    return (rows or summary.rows).row(summary.measure)


def has_levels(row: Row) -> bool:
    """Whether a row has any of the itinerary subtasks that a judge scores (levels I-III)."""
    return any(SUBTASKS[name].level for name in row.cells)


Source = Literal["run", "human", "baseline", "paper"]
SIGNS = ("", "¹", "²", "³")  # of the places in a group


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row, from a run (of a model, or of people's replies), one of its baselines, or the paper.

    `cells` by column key (`ALL_COLUMNS`), each on the 0-100 scale; an unknown figure is absent. A cell
    of the paper has no counts (n = total = 0). `languages` are those of the row's items. Runs with equal `protocol`
    fingerprints may be compared. `group` is the row's heading; `marks` holds places 1 to 3 by column key. `judged` is
    False while a level I-III cell has no judge's rating. `private`: items are not scored because their references are
    private. `variant` names other figures of the same run: `unjudged` (levels as 100 S) or `corrected` (levels alone,
    by people's labels); such rows are never ranked.
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

    def text(self, key: str, decimals: int = 2, half: bool = False) -> str | None:
        """Return the figure of a column as text with the sign of its place and, if asked, half its interval."""
        if (value := self.value(key)) is None:
            return None
        return f"{value:.{decimals}f}{SIGNS[self.marks.get(key, 0)]} {half_width_text(self.cells[key]) * half}".rstrip()


def table_rows(summary: Summary) -> list[TableRow]:
    """Return all rows of a run: the model, its variants and its baselines."""
    return [*model_rows(summary), *(table_row(summary, baseline) for baseline in summary.baselines)]


def model_rows(summary: Summary) -> list[TableRow]:
    """Return the run's row, and the other figures of a judged run."""
    rows, judging = summary.rows, summary.judging
    if rows.judged is None:
        return [table_row(summary)]
    corrected = {key: cell for key, cell in (judging.corrected if judging else {}).items() if key in SUBTASKS}
    own = table_row(replace(summary, judged=False, judging=None, rows=replace(rows, judged=None)))
    variants = [replace(own, cells=corrected, judged=True, variant="corrected")] if corrected else []
    return [table_row(summary), *variants, replace(own, variant="unjudged")]


def table_row(summary: Summary, baseline: str | None = None) -> TableRow:
    """Return the row of a run's model, or of a baseline by name, over the items that have the main measure."""
    row = main_row(summary, summary.baselines[baseline] if baseline else None)
    return TableRow(
        model=baseline or summary.model,
        source="baseline" if baseline else "human" if summary.signature.human else "run",
        cells=cells_of(row),
        measure=summary.measure,
        split=summary.split,
        languages=summary.measured,
        protocol=summary.signature.fingerprint,
        complete=all(cell.n == cell.total for cell in row.cells.values()) and bool(baseline or not summary.incomplete),
        comparable=summary.s_comparable,
        judged=summary.judged or not has_levels(row),
        private=summary.counts.private > 0,
    )


# --- Formats -----------------------------------------------------------------------------------------------------


def rows_table(
    rows: Sequence[TableRow], title: str = "", columns: Sequence[Column] = (), decimals: int = 2, half: str = "beside"
) -> Table:
    """The rows of Table 2 under the titles of their groups, with half of each interval beside or below its figure.

    `half`: `beside`, `below` or empty. Without `columns` the paper's, and for others two more means and the items.
    """
    own, below = any(row.source != "paper" for row in rows), half == "below"
    columns, items = columns or (ALL_COLUMNS if own else COLUMNS), ["Items scored"] * own
    lines: list[Sequence[str | None]] = []
    for number, (group, members) in enumerate(groupby(rows, key=lambda row: row.group)):
        lines += [()] if number else []
        lines += [[group, *[""] * (len(columns) + own)]] if group else []
        for row in members:
            scored = [items_text(row.cells.get("items_mean")) if row.source != "paper" else None] * own
            figures = [row.text(column.key, decimals, half == "beside") for column in columns]
            lines.append([row.label if half == "beside" else row.name, *scored, *figures])
            if below and row.source != "paper":
                lines.append([row.cautions, "", *(half_width_text(row.cells.get(one.key)) for one in columns)])
    notes = ["Scores in percent. Overall: weighted with Table 1's counts, needs all subtasks."]
    if own:
        notes.append("Items: mean of the scored items. Cells: plain mean of the cells.")
        notes.append("±: half the 95 % interval (Wilson's, with effective n and t).")
        notes += [UNJUDGED] * any(not row.judged for row in rows)
    if any(row.marks for row in rows):
        notes.append(f"{' '.join(SIGNS[1:])} first, second and third of a group.")
    groups = ["", *[""] * own, *(column.group for column in columns)] if below else ()
    return Table(title, ["", *items, *(c.heading if below else c.title for c in columns)], lines, notes, groups=groups)


FIGURES = ("value", "low", "high", "n", "total")  # of a cell, in full precision
_FACTS = (
    *("model", "source", "group", "split", "languages", "measure"),
    *("complete", "comparable", "judged", "protocol"),
)


def table_text(rows: Sequence[TableRow], kind: str) -> str:
    """Format rows as `csv` (each column's value, then its `_low`, `_high`, `_n` and `_total`), `json` or `latex`."""
    if kind == "latex":
        return rows_table(rows, "H2HTalk results", half="below").to_latex()
    facts = [[row.name, *(getattr(row, name) for name in _FACTS[1:])] for row in rows]
    if kind == "json":
        listed = [
            dict(zip(_FACTS, own, strict=True))
            | {"cells": {key: dict(zip(FIGURES, _figures(row, key), strict=True)) for key in row.cells}}
            | {"marks": dict(row.marks)}
            for row, own in zip(rows, facts, strict=True)
        ]
        return json.dumps(listed, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    keys = [column.key for column in ALL_COLUMNS]
    names = [key if part == "value" else f"{key}_{part}" for key in keys for part in FIGURES]
    lines = [
        [*map(str, own), *chain(*(_figures(row, key) for key in keys))] for row, own in zip(rows, facts, strict=True)
    ]
    return Table("", [*_FACTS, *names], lines).to_csv()


def _figures(row: TableRow, key: str) -> list[float | int | None]:
    """The numbers of a cell; those of the paper have no counts."""
    if (cell := row.cells.get(key)) is None:
        return [None] * len(FIGURES)
    counts = (None, None) if row.source == "paper" else (cell.n, cell.total)
    return [cell.value, cell.low, cell.high, *counts]


# --- The paper's rows --------------------------------------------------------------------------------------------


# Rows whose recomputed overall differs by more are listed: 2 of the 37 readable rows.
CHECK_TOLERANCE = 0.15


def _paper_records(readable: bool) -> list[dict[str, str]]:
    text = (files("h2htalk.data") / "bundled" / "paper_table2.csv").read_text(encoding="utf-8")
    return [record for record in csv.DictReader(text.splitlines()) if (record["state"] == "clean") == readable]


def _printed(record: Mapping[str, str]) -> dict[str, float]:
    """The figures of a row; a subtask that is not the paper's has none."""
    return {column.key: float(record[column.key]) for column in COLUMNS if column.key in record}


def paper_rows() -> list[TableRow]:
    """Read the 37 readable rows of the paper's Table 2, in its order; `group` is the size class."""
    return [
        TableRow(
            model=record["model"],
            source="paper",
            cells={key: Cell(value, None, None, 0, 0) for key, value in _printed(record).items()},
            split="paper",
            group=record["size_class"],
        )
        for record in _paper_records(readable=True)
    ]


def unreadable_rows() -> list[str]:
    """Return the names of the models whose figures in Table 2 cannot be read."""
    return [record["model"] for record in _paper_records(readable=False)]


def check_paper() -> list[dict[str, Any]]:
    """Recompute the averages (plain means) and the overall (Table-1-weighted mean) of each readable row.

    Differences are recomputed minus printed; a row `agrees` where all are within CHECK_TOLERANCE.
    """
    rows = []
    for record in _paper_records(readable=True):
        printed = _printed(record)
        cells = [name for name in SUBTASKS if name in printed]
        overall = math.fsum(SUBTASKS[name].count * printed[name] for name in cells)
        overall /= math.fsum(SUBTASKS[name].count for name in cells)
        averages: dict[str, float] = {}
        for dimension in DIMENSIONS:
            parts = [printed[name] for name in cells if SUBTASKS[name].dimension == dimension]
            averages[dimension] = math.fsum(parts) / len(parts) - printed[f"{dimension}_avg"]
        off = overall - printed["overall"]
        agrees = all(abs(one) <= CHECK_TOLERANCE for one in (off, *averages.values()))
        made = {"model": record["model"], "printed": printed["overall"], "recomputed": overall, "off": off}
        rows.append({**made, "averages_off": averages, "agrees": agrees})
    return rows
