"""The rows of the paper's Table 2, and which of its averages follow from its cells."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from rich.console import Console

from h2htalk.benchmark.report.table2 import COLUMNS, TableRow
from h2htalk.benchmark.report.terminal import PlainConsole
from h2htalk.benchmark.statistics.averages import figure_weights
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.tables import Table

# Rows of which a recomputed figure differs by more are listed. These are 2 of the 37 readable rows.
CHECK_TOLERANCE = 0.15


def _records(readable: bool) -> list[dict[str, str]]:
    text = (files("h2htalk.data") / "bundled" / "paper_table2.csv").read_text(encoding="utf-8")
    records = []
    for record in csv.DictReader(text.splitlines()):
        is_readable = record["state"] == "clean"
        if is_readable == readable:
            records.append(record)
    return records


def _printed_figures(record: Mapping[str, str]) -> dict[str, float]:
    """The figures of a row; a subtask that is not the paper's has none."""
    return {column.key: float(record[column.key]) for column in COLUMNS if column.key in record}


def paper_rows() -> list[TableRow]:
    """Read the 37 readable rows of the paper's Table 2, in its order; `group` is the size class."""
    rows = []
    for record in _records(readable=True):
        figures = _printed_figures(record)
        cells = {key: Estimate(value, None, None, 0, 0) for key, value in figures.items()}
        row = TableRow(
            model=record["model"],
            source="paper",
            cells=cells,
            split="paper",
            group=record["size_class"],
        )
        rows.append(row)
    return rows


def unreadable_rows() -> list[str]:
    """Return the names of the models whose figures in Table 2 cannot be read."""
    return [record["model"] for record in _records(readable=False)]


def check_paper() -> list[dict[str, Any]]:
    """Recompute the averages (plain means) and the overall (Table-1-weighted mean) of each readable row.

    Differences are recomputed minus printed; a row `agrees` where all are within CHECK_TOLERANCE.
    """
    rows = []
    one_item_each = dict.fromkeys(SUBTASKS, 1)
    weights = figure_weights(one_item_each)
    for record in _records(readable=True):
        printed = _printed_figures(record)
        averages_off = {}
        for dimension in DIMENSIONS:
            key = f"{dimension}_avg"
            averages_off[dimension] = _weighted_mean(printed, weights[key]) - printed[key]
        overall = _weighted_mean(printed, weights["overall"])
        off = overall - printed["overall"]
        differences = [off, *averages_off.values()]
        largest = max(abs(difference) for difference in differences)
        row = {
            "model": record["model"],
            "printed": printed["overall"],
            "recomputed": overall,
            "off": off,
            "averages_off": averages_off,
            "agrees": largest <= CHECK_TOLERANCE,
        }
        rows.append(row)
    return rows


def _weighted_mean(figures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The mean of the cells that the paper prints."""
    used = {name: weight for name, weight in weights.items() if name in figures}
    total = math.fsum(weight * figures[name] for name, weight in used.items())
    return total / math.fsum(used.values())


def print_check(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the paper's overall beside its recomputation, and name the rows that do not agree."""
    say = PlainConsole(console)
    lines = []
    agreeing_rows = [row for row in rows if row["agrees"]]
    disagreeing_rows = [row for row in rows if not row["agrees"]]
    for row in [*agreeing_rows, *disagreeing_rows]:
        largest = max(row["averages_off"].values(), key=abs)
        figures = (f"{row['printed']:.2f}", f"{row['recomputed']:.2f}", f"{row['off']:+.3f}")
        lines.append((row["model"], *figures, f"{largest:+.3f}"))
    say.table(Table("", ("model", "printed", "recomputed", "off", "averages off"), lines))
    disagreeing = [row["model"] for row in disagreeing_rows]
    agree = f"{len(agreeing_rows)} of {len(rows)} readable rows agree within {CHECK_TOLERANCE}"
    say.line(f"{agree} with the mean of their eleven cells weighted with Table 1's counts.", "bold")
    say.line(f"The others, last in the table: {', '.join(disagreeing)}.")
