"""Rows in the shape of Table 2: from a run, one of its floors, or the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from h2htalk.benchmark.aggregate import Cell
from h2htalk.benchmark.report.layout import COLUMNS, cell_at, main_row
from h2htalk.benchmark.summary import Standing, Summary

Source = Literal["run", "floor", "paper"]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row, from a run, one of its floors, or the paper.

    `cells` by column key (`layout.COLUMNS`) and by `items_mean` and `plain_mean`, each on the 0-100 scale; a
    figure that is not known is absent. A paper's cell says no count (n = total = 0). `protocol` is the
    fingerprint that says what a run may be compared with; `group` is the heading it stands under; `marks` holds
    places 1 to 3 by column key.
    """

    model: str
    source: Source
    cells: Mapping[str, Cell]
    measure: str = "s"
    split: str = ""
    protocol: str = ""
    complete: bool = True
    comparable: bool = True
    judged: bool = True
    group: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)

    def value(self, key: str) -> float | None:
        """The figure of a column, if there is one."""
        cell = self.cells.get(key)
        return None if cell is None else cell.value


def table_row(summary: Summary, floor: str | None = None) -> TableRow:
    """The row of a run's model, or of one of its floors by name."""
    standing = summary.standing if floor is None else summary.floors[floor]
    asked = main_row(summary, standing).cells.values()
    return TableRow(
        model=summary.model if floor is None else floor,
        source="run" if floor is None else "floor",
        cells=_cells(summary, standing),
        measure=summary.measure,
        split=summary.split,
        protocol=summary.signature.fingerprint,
        complete=all(cell.n == cell.total for cell in asked)
        and (floor is not None or not summary.incomplete),
        comparable=summary.s_comparable,
        judged=summary.judged,
    )


def _cells(summary: Summary, standing: Standing) -> dict[str, Cell]:
    row = main_row(summary, standing)
    keys = [*(column.key for column in COLUMNS), "items_mean", "plain_mean"]
    return {key: cell for key in keys if (cell := cell_at(row, key)) is not None}
