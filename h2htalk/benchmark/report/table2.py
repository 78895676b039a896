"""Table 2: its columns, its rows from a run, a baseline or the paper, and the table that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

from h2htalk.benchmark.estimate_text import format_with_interval, half_width_text, items_text
from h2htalk.benchmark.statistics.averages import Row
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.summary import ScoreRows, Summary
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.tables import Table

FOLDED = "Folded: the lexical mean where quotes, dashes, dots and full-width or half-width marks have one form."
UNJUDGED = (
    "Unjudged: Itinerary Basic, Middle and Advanced (levels I-III) include no judge's rating."
)
NOT_SCORED = "not scored: references are private"


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


def _paper_columns() -> tuple[Column, ...]:
    """Eleven cells, three averages and the overall, in the paper's order."""
    columns = []
    for dimension in DIMENSIONS:
        group = dimension.title()
        for subtask in SUBTASKS.values():
            if subtask.dimension == dimension:
                columns.append(Column(subtask.name, subtask.column, group))
        columns.append(Column(f"{dimension}_avg", "Avg.", group, is_average=True))
    return (*columns, Column("overall", "Overall", "", is_average=True))


COLUMNS = _paper_columns()
# Two more overall means, which the paper does not print: over the items and over the cells that the split has.
ALL_COLUMNS = (
    *COLUMNS,
    Column("items_mean", "Items", "", is_average=True),
    Column("plain_mean", "Cells", "", is_average=True),
)


def in_column_order(row: Row) -> Row:
    """Return the cells of a row in the order of the columns."""
    return {column.key: row[column.key] for column in ALL_COLUMNS if column.key in row}


def main_row(summary: Summary, rows: ScoreRows | None = None) -> Row:
    """Return the row of the summary's main figure, of the model or of a baseline."""
    rows = rows or summary.rows
    if summary.measure != "s":
        return rows.lexical
    return rows.judged or rows.s or rows.lexical


def has_levels(row: Row) -> bool:
    """Whether a row has any of the itinerary subtasks that a judge scores (levels I-III)."""
    return any(subtask.level and name in row for name, subtask in SUBTASKS.items())


Source = Literal["run", "human", "baseline", "paper"]
PLACE_SIGNS = ("", "¹", "²", "³")  # the signs of the places in a group
_PLACES = " ".join(PLACE_SIGNS[1:])
RANK_RULE = (
    "rank 1 to 3 in a column: one more than the number of runs that the paired test shows to be better, p adjusted "
    "(Holm) for all pairs and all columns of its kind (subtasks; dimensions; overall), as compare does. Runs that it "
    "does not tell apart can share a rank."
)
# Where the interval of a figure stands: after it, in a line of its own below, after it as its two ends, nowhere.
IntervalPlace = Literal["beside", "below", "ends", ""]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row, from a run (of a model, or of people's replies), one of its baselines, or the paper.

    `cells` by column key (`ALL_COLUMNS`), 0 to 100; those of the paper have no counts (n = total = 0). Runs with equal
    `protocol` may be compared. `group` is the row's heading; `marks` holds places 1 to 3 by column key. `judged` is
    False while a level I-III cell has no judge's rating. `private`: references are private, so items are not scored.
    `variant` names other figures of the same run, which are never ranked: `unjudged` (levels as 100 S) or `corrected`.
    `lexical` holds the figures beside the main ones, `lexical` and `lexical_folded`, of the overall or else the items.
    """

    model: str
    source: Source
    cells: Mapping[str, Estimate]
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
    lexical: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The row's name: the model, and which of its figures, such as `m (unjudged)`."""
        return f"{self.model} ({self.variant})" if self.variant else self.model

    @property
    def cautions(self) -> str:
        """What a reader must know of the figures, such as `[INCOMPLETE, unjudged]`; empty where there is nothing."""
        cautions = []
        if not self.complete:
            cautions.append(NOT_SCORED if self.private else "INCOMPLETE")
        if self.measure != "s":
            cautions.append("lexical mean, not S")
        elif not self.comparable:
            cautions.append("S not comparable")
        if not self.judged:
            cautions.append("unjudged")
        return f"[{', '.join(cautions)}]" if cautions else ""

    @property
    def label(self) -> str:
        """The name with the cautions."""
        return f"{self.name} {self.cautions}".rstrip()

    def value(self, key: str) -> float | None:
        """Return the figure of a column; None where the row has none."""
        cell = self.cells.get(key)
        return None if cell is None else cell.value

    def text(self, key: str, decimals: int = 2, interval_place: IntervalPlace = "") -> str | None:
        """Return the figure of a column as text with the sign of its place, and the interval where it stands beside."""
        value = self.value(key)
        if value is None:
            return None
        interval = ""
        if interval_place in ("beside", "ends"):
            interval = half_width_text(self.cells[key], as_ends=interval_place == "ends")
        return f"{value:.{decimals}f}{PLACE_SIGNS[self.marks.get(key, 0)]} {interval}".rstrip()


def model_rows(summary: Summary) -> list[TableRow]:
    """Return the run's row, and the other figures of a judged run."""
    rows = [table_row(summary)]
    if summary.rows.judged is None:
        return rows
    unjudged_rows = replace(summary.rows, judged=None)
    unjudged = table_row(replace(summary, judged=False, judging=None, rows=unjudged_rows))
    if summary.judging is not None:
        cells = summary.judging.corrected
        corrected = {key: cell for key, cell in cells.items() if key in SUBTASKS}
        if corrected:
            rows.append(replace(unjudged, cells=corrected, judged=True, variant="corrected"))
    return [*rows, replace(unjudged, variant="unjudged")]


def table_rows(summary: Summary) -> list[TableRow]:
    """Return all rows of a run: the model, its variants and its baselines."""
    return [*model_rows(summary), *(table_row(summary, baseline) for baseline in summary.baselines)]


def table_row(summary: Summary, baseline: str | None = None) -> TableRow:
    """Return the row of a run's model, or of a baseline by name, over the items that have the main figure."""
    rows = summary.rows
    source: Source = "human" if summary.signature.human else "run"
    if baseline:
        rows = summary.baselines[baseline]
        source = "baseline"
    row = main_row(summary, rows)
    items = row["items_mean"]
    return TableRow(
        model=baseline or summary.model,
        source=source,
        cells=in_column_order(row),
        measure=summary.measure,
        split=summary.split,
        languages=summary.measured,
        protocol=summary.signature.fingerprint,
        complete=items.n == items.total and (source == "baseline" or not summary.incomplete),
        comparable=summary.s_comparable,
        judged=summary.judged or not has_levels(row),
        private=summary.counts.private > 0,
        lexical=_lexical_means(rows),
    )


LEXICAL_TITLES: Mapping[str, str] = {
    "lexical": "Lexical mean",
    "lexical_folded": "Lexical mean, folded",
}


def _lexical_means(rows: ScoreRows) -> dict[str, Estimate]:
    """The lexical means of a row, as the authors count and without typography: the overall, or else of the items."""
    cells = {}
    for name in LEXICAL_TITLES:
        row: Row | None = getattr(rows, name)
        if row is not None:
            cells[name] = row["items_mean"] if row["overall"].value is None else row["overall"]
    return cells


def rows_table(
    rows: Sequence[TableRow],
    title: str = "",
    columns: Sequence[Column] = (),
    decimals: int = 2,
    interval_place: IntervalPlace = "beside",
) -> Table:
    """The rows of Table 2 under the titles of their groups, with half of each interval or its ends.

    Without `columns` the table has the paper's, and for rows of runs two more means; rows of runs also have the number
    of their items.
    """
    has_runs = any(row.source != "paper" for row in rows)
    columns = columns or (ALL_COLUMNS if has_runs else COLUMNS)
    is_below = interval_place == "below"
    as_ends = interval_place == "ends"
    lexical: list[str] = []
    if as_ends and any(row.lexical for row in rows):
        lexical = list(LEXICAL_TITLES)

    header = [""]
    headings_above = [""]
    if has_runs:
        header.append("Items scored")
        headings_above.append("")
    header += [column.heading if is_below else column.title for column in columns]
    header += [LEXICAL_TITLES[name] for name in lexical]
    headings_above += [column.group for column in columns]

    lines: list[Sequence[str | None]] = []
    for group, members in groupby(rows, key=lambda row: row.group):
        if lines:
            lines.append(())
        if group:
            lines.append([group, *("" for _ in header[1:])])
        for row in members:
            line: list[str | None] = [
                row.label if interval_place in ("beside", "ends") else row.name
            ]
            has_counts = row.source != "paper"
            if has_runs:
                line.append(items_text(row.cells.get("items_mean")) if has_counts else None)
            line += [row.text(column.key, decimals, interval_place) for column in columns]
            line += [format_with_interval(row.lexical.get(name), as_ends) for name in lexical]
            lines.append(line)
            if is_below and has_counts:
                intervals = [half_width_text(row.cells.get(column.key)) for column in columns]
                lines.append([row.cautions, "", *intervals])
    notes = _table_notes(rows, has_runs, as_ends)
    if lexical:
        notes.append(FOLDED)
    return Table(title, header, lines, notes, groups=headings_above if is_below else ())


def _table_notes(rows: Sequence[TableRow], has_runs: bool, as_ends: bool) -> list[str]:
    """What a reader of the rows must know."""
    notes = ["Scores in percent. Overall: weighted with Table 1's counts, needs all subtasks."]
    if has_runs:
        notes.append("Items: mean of the scored items. Cells: plain mean of the cells.")
        if as_ends:
            notes.append("Intervals 95 % (Wilson's, with effective n and t).")
        else:
            notes.append(
                "±: half the 95 % interval (Wilson's, with effective n and t); its ends where it is skewed."
            )
        if not all(row.judged for row in rows):
            notes.append(UNJUDGED)
    if any(row.marks and row.source == "paper" for row in rows):
        notes.append(f"{_PLACES} first, second and third of a group of the paper's, as printed.")
    if any(row.marks and row.source == "run" for row in rows):
        notes.append(f"{_PLACES} {RANK_RULE}")
    return notes
