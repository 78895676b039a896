"""Rows of Table 2: from a run, one of its baselines, or the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from h2htalk.benchmark.report.table2_layout import (
    ALL_COLUMNS,
    cell_at,
    has_levels,
    main_row,
)
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.benchmark.summary import Summary
from h2htalk.data.subtasks import SUBTASKS

Source = Literal["run", "human", "baseline", "paper"]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row, from a run (of a model, or of people's replies), one of its baselines, or the paper.

    `cells` by column key (`table2_layout.ALL_COLUMNS`), each on the 0-100 scale; an unknown figure is absent. A cell
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

    def value(self, key: str) -> float | None:
        """Return the figure of a column, None where there is none."""
        cell = self.cells.get(key)
        return None if cell is None else cell.value


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
    rows = summary.rows if baseline is None else summary.baselines[baseline]
    row = main_row(summary, rows)
    return TableRow(
        model=summary.model if baseline is None else baseline,
        source="baseline" if baseline else "human" if summary.signature.human else "run",
        cells={c.key: cell for c in ALL_COLUMNS if (cell := cell_at(row, c.key)) is not None},
        measure=summary.measure,
        split=summary.split,
        languages=summary.measured,
        protocol=summary.signature.fingerprint,
        complete=all(cell.n == cell.total for cell in row.cells.values())
        and (baseline is not None or not summary.incomplete),
        comparable=summary.s_comparable,
        judged=summary.judged or not has_levels(row),
        private=summary.counts.private > 0,
    )
