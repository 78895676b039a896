"""Read the paper's Table 2, and recompute its averages from its cells."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from h2htalk.benchmark.report.table2_layout import COLUMNS
from h2htalk.benchmark.report.table2_rows import TableRow
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import DataError

# Rows whose recomputed overall differs by more are listed: 2 of the 37 readable rows.
CHECK_TOLERANCE = 0.15


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A readable row of the paper, recomputed from its eleven cells; differences are recomputed minus printed."""

    model: str
    printed: float
    recomputed: float
    averages_off: Mapping[str, float]

    @property
    def off(self) -> float:
        return self.recomputed - self.printed

    @property
    def averages_off_most(self) -> float:
        """The largest difference of the three averages, with its sign."""
        return max(self.averages_off.values(), key=abs)

    @property
    def agrees(self) -> bool:
        """Whether the overall and the averages are within CHECK_TOLERANCE."""
        return all(abs(off) <= CHECK_TOLERANCE for off in (self.off, self.averages_off_most))


def _paper_records() -> list[dict[str, str]]:
    source = files("h2htalk.data") / "bundled" / "paper_table2.csv"
    return list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def paper_rows() -> list[TableRow]:
    """Read the 37 readable rows of the paper's Table 2, in its order; `group` is the size class."""
    return [
        TableRow(
            model=record["model"],
            source="paper",
            cells={c.key: Cell(float(record[c.key]), None, None, 0, 0) for c in COLUMNS if c.key in record},
            split="paper",
            group=record["size_class"],
        )
        for record in _paper_records()
        if record["state"] == "clean"
    ]


def unreadable_rows() -> list[str]:
    """Return the names of the models whose figures in Table 2 cannot be read."""
    return [record["model"] for record in _paper_records() if record["state"] != "clean"]


def check_paper() -> list[CheckedRow]:
    """Recompute the averages (plain means) and the overall (Table-1-weighted mean) of each readable row."""
    return [_checked(row) for row in paper_rows()]


def check_table(rows: Iterable[CheckedRow]) -> list[dict[str, Any]]:
    """Return the check as plain data, figures in full precision."""
    return [
        {
            "model": row.model,
            "printed": row.printed,
            "recomputed": row.recomputed,
            "off": row.off,
            "averages_off": dict(row.averages_off),
            "agrees": row.agrees,
        }
        for row in rows
    ]


def _checked(row: TableRow) -> CheckedRow:
    cells = {name: _printed(row, name) for name in SUBTASKS if name in row.cells}  # others are not the paper's
    overall = math.fsum(SUBTASKS[name].count * value for name, value in cells.items())
    overall /= math.fsum(SUBTASKS[name].count for name in cells)
    averages: dict[str, float] = {}
    for dimension in DIMENSIONS:
        parts = [cells[name] for name in cells if SUBTASKS[name].dimension == dimension]
        averages[dimension] = math.fsum(parts) / len(parts) - _printed(row, f"{dimension}_avg")
    return CheckedRow(row.model, _printed(row, "overall"), overall, averages)


def _printed(row: TableRow, key: str) -> float:
    value = row.value(key)
    if value is None:
        raise DataError(f"paper_table2.csv: {row.model} has no {key}; install h2htalk again")
    return value
