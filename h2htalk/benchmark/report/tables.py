"""Tables in the shape of Table 2 as CSV, JSON and LaTeX: one row a model, eleven cells, three averages, overall."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from h2htalk.benchmark.aggregate import Cell
from h2htalk.benchmark.report.latex import latex_table
from h2htalk.benchmark.report.layout import COLUMNS, ordered_slices
from h2htalk.benchmark.report.rows import TableRow, table_row
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import write_text
from h2htalk.errors import ConfigError
from h2htalk.text.printable import printable


def table_text(rows: Sequence[TableRow], kind: str) -> str:
    """The rows as `csv`, `json` or `latex`; ConfigError for another kind."""
    if kind == "json":
        return json.dumps(json_table(rows), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    if kind not in ("csv", "latex"):
        raise ConfigError(f"--format {kind!r}: choose from terminal, csv, json, latex")
    return csv_table(rows) if kind == "csv" else latex_table(rows)


def write_tables(summary: Summary, folder: Path) -> list[Path]:
    """Write `table2.csv`, `table2.json` and `table2.tex` of a run and its floors, and `slices.csv`.

    Returns:
        Where they lie.

    Raises:
        DataError: the folder cannot be written, or the disk is full.
    """
    rows = [table_row(summary), *(table_row(summary, name) for name in summary.floors)]
    texts = {
        "table2.csv": csv_table(rows),
        "table2.json": table_text(rows, "json"),
        "table2.tex": latex_table(rows),
        "slices.csv": slices_csv(summary),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


# --- JSON and CSV: full precision -------------------------------------------------------------------------------


def json_table(rows: Iterable[TableRow]) -> list[dict[str, Any]]:
    """The rows as plain data; figures as they are, None where there is none."""
    return [
        {
            **_facts(row),
            "cells": {key: _numbers(row, cell) for key, cell in row.cells.items()},
            "marks": dict(row.marks),
        }
        for row in rows
    ]


def csv_table(rows: Iterable[TableRow]) -> str:
    """The rows as CSV with a heading line: each column's value, then `_low`, `_high`, `_n` and `_total`.

    No text cell begins with a character that a spreadsheet takes for a formula.
    """
    keys = [*(column.key for column in COLUMNS), "items_mean", "plain_mean"]
    names = [key if part == "value" else f"{key}_{part}" for key in keys for part in _PARTS]
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow([*_FACTS, *names])
    for row in rows:
        facts = [spreadsheet_text(str(value)) for value in _facts(row).values()]
        numbers = [_numbers(row, row.cells.get(key))[part] for key in keys for part in _PARTS]
        writer.writerow([*facts, *("" if number is None else number for number in numbers)])
    return output.getvalue()


def slices_csv(summary: Summary) -> str:
    """The slices of the main measure as CSV: tag, its value, then the cell in full precision."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(["tag", "of", "measure", *_PARTS])
    for tag, cells in ordered_slices(summary).items():
        for name, cell in cells.items():
            numbers = ["" if number is None else number for number in cell.to_dict().values()]
            writer.writerow([tag, spreadsheet_text(name), summary.measure, *numbers])
    return output.getvalue()


_PARTS = ("value", "low", "high", "n", "total")
_FACTS = ("model", "source", "group", "split", "measure", "complete", "comparable", "judged", "protocol")


def _facts(row: TableRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _FACTS}


def _numbers(row: TableRow, cell: Cell | None) -> dict[str, float | int | None]:
    numbers = dict.fromkeys(_PARTS) if cell is None else cell.to_dict()
    if row.source == "paper":
        numbers |= {"n": None, "total": None}
    return numbers


def spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet shows and never computes: a leading = + - @ (also full-width) gets a quote."""
    shown = printable(text)
    return f"'{shown}" if shown.lstrip()[:1] in tuple("=+-@＝＋－＠") else shown
