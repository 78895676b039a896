"""The files of a run's figures: Table 2 as CSV, JSON and LaTeX, every metric, every slice, every item."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from h2htalk.benchmark.metrics.composite import Scores, all_columns
from h2htalk.benchmark.report.cost_tables import cost_table
from h2htalk.benchmark.report.run_tables import ordered_slices
from h2htalk.benchmark.report.table2 import (
    ALL_COLUMNS,
    LEXICAL_TITLES,
    TableRow,
    in_column_order,
    rows_table,
    table_row,
    table_rows,
)
from h2htalk.benchmark.statistics.estimates import FIELDS, Estimate
from h2htalk.benchmark.summary import ScoreRows, Summary
from h2htalk.data.files import write_text
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.tables import Table

_FACTS = (
    "source",
    "group",
    "split",
    "languages",
    "measure",
    "complete",
    "comparable",
    "judged",
    "protocol",
)
ITEMS = "items.csv"
# The files of every run.
TABLES = ("table2.csv", "table2.json", "table2.tex", "metrics.csv", "slices.csv", ITEMS)


def write_tables(summary: Summary, split: Split, scores: Scores, folder: Path) -> None:
    """Write a run's figures.

    `table2.csv`, `table2.json` and `table2.tex` have the model and its baselines; `metrics.csv` every figure of every
    metric; `slices.csv` the slices; `items.csv` every item.
    """
    rows = table_rows(summary)
    texts = [table_text(rows, kind) for kind in ("csv", "json", "latex")]
    for table in (metrics_table(summary), slices_table(summary), items_table(split, scores)):
        texts.append(table.to_csv())
    for name, text in zip(TABLES, texts, strict=True):
        write_text(folder / name, text)


def write_facts(summary: Summary, folder: Path) -> None:
    """Write `run.csv`, how the run was answered, and `costs.csv`, what each stage paid, if any."""
    facts = Table("", ("fact", "value"), [("model", summary.model), *summary.run_facts.texts()])
    write_text(folder / "run.csv", facts.to_csv())
    if summary.costs:
        write_text(folder / "costs.csv", cost_table(summary.costs).to_csv())


def table_text(rows: Sequence[TableRow], kind: str) -> str:
    """Format rows as `csv` (each column's value, then its `_low`, `_high`, `_n` and `_total`), `json` or `latex`.

    The lexical means stand last in CSV, and in JSON under `lexical`.
    """
    if kind == "latex":
        return rows_table(rows, "H2HTalk results", interval_place="below").to_latex()
    if kind == "json":
        records = [_record(row) for row in rows]
        return json.dumps(records, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    keys = [*(column.key for column in ALL_COLUMNS), *LEXICAL_TITLES]
    header = ["model", *_FACTS]
    for key in keys:
        header += [key, *(f"{key}_{figure}" for figure in FIELDS[1:])]
    lines: list[list[object]] = []
    for row in rows:
        cells = {**row.cells, **row.lexical}
        line: list[object] = [str(value) for value in _facts(row).values()]
        for key in keys:
            line += _figures(row, cells.get(key)).values()
        lines.append(line)
    return Table("", header, lines).to_csv()


def _facts(row: TableRow) -> dict[str, object]:
    return {"model": row.name} | {name: getattr(row, name) for name in _FACTS}


def _record(row: TableRow) -> dict[str, object]:
    """A row as an object of JSON."""
    return _facts(row) | {
        "cells": {key: _figures(row, cell) for key, cell in row.cells.items()},
        "marks": dict(row.marks),
        "lexical": {key: _figures(row, cell) for key, cell in row.lexical.items()},
    }


def _figures(row: TableRow, cell: Estimate | None) -> dict[str, float | int | None]:
    """The numbers of a cell of a row; those of the paper have no counts."""
    figures: dict[str, float | int | None] = dict.fromkeys(FIELDS)
    if cell is not None:
        figures |= zip(FIELDS, cell.fields, strict=True)
    if row.source == "paper":
        figures |= {"n": None, "total": None}
    return figures


def items_table(split: Split, scores: Scores) -> Table:
    """Return every item: id, subtask, language, why it is unscored, then its means, times 100 as in the tables.

    `contract` is the share of its answers that break no rule; `rating` (R) and `j` (of levels I to III) are 0 to 5.
    What could not be computed is empty.
    """
    columns = all_columns(score.metrics for score in scores.values())
    lines: list[list[object]] = []
    for scenario in split.scenarios:
        score = scores[scenario.id]
        values = [score.metrics.get(name) for name in columns]
        line: list[object] = [
            scenario.id,
            scenario.subtask,
            scenario.language,
            score.unscored or "",
        ]
        for value in (score.s, score.lexical, *values, score.compliance):
            line.append(None if value is None else 100 * value)
        j = score.j if SUBTASKS[scenario.subtask].level else None
        lines.append([*line, score.rating, j])
    facts = ("id", "subtask", "language", "unscored")
    return Table("", [*facts, "s", "lexical", *columns, "contract", "rating", "j"], lines)


_METRICS_OF_S = ("s", "ss", "judged", "corrected")  # metrics of the items that have S
_MARKS = ("complete", "comparable", "judged")


def metrics_table(summary: Summary) -> Table:
    """Return every figure of the model and its baselines: model, source, languages, metric, of, marks, cell.

    `metric` is `s`, `judged` (levels I to III as 20 J), `rating` (20 R of all judged items), `corrected` (20 J by
    people's labels), `share` (in percent, of yes to the point that `of` names), `lexical`, `lexical_folded` (without
    typography), `contract`, a part of S, or `null_precision`, `null_recall` and `null_f1`; `of` a key of `ALL_COLUMNS`.
    """
    lines = []
    for baseline in (None, *summary.baselines):
        head = table_row(summary, baseline)
        marks = [str(getattr(head, mark)) for mark in _MARKS]
        for metric, key, cell in _cells_of_metrics(summary, baseline):
            languages = "+".join(summary.languages)
            if metric in _METRICS_OF_S:
                languages = summary.measured
            facts = (head.model, head.source, languages, metric, key)
            lines.append([*facts, *marks, *cell.fields])
    return Table("", ["model", "source", "languages", "metric", "of", *_MARKS, *FIELDS], lines)


def _cells_of_metrics(summary: Summary, baseline: str | None) -> list[tuple[str, str, Estimate]]:
    """The figures of the model or of a baseline: metric, key and cell."""
    rows = summary.baselines[baseline] if baseline else summary.rows
    groups = _rows_by_metric(rows)
    judging = summary.judging
    if baseline is None and judging is not None:
        ratings = {key: cell for key, cell in judging.ratings.items() if key in SUBTASKS}
        groups |= {"rating": ratings, "corrected": judging.corrected, "share": judging.points}
    cells = []
    for metric, group in groups.items():
        cells += [(metric, key, cell) for key, cell in group.items()]
    if baseline is None:
        for subtask, metrics in summary.metrics.items():
            cells += [(metric, subtask, cell) for metric, cell in metrics.items()]
    return cells


def _rows_by_metric(rows: ScoreRows) -> dict[str, Mapping[str, Estimate]]:
    """The cells of the rows of the model or of a baseline, by metric and key."""
    groups = {
        "s": in_column_order(rows.s or {}),
        "judged": in_column_order(rows.judged or {}),
        "lexical": in_column_order(rows.lexical),
        "lexical_folded": in_column_order(rows.lexical_folded or {}),
        "contract": in_column_order(rows.compliance),
    }
    if rows.null_class is not None:
        subtasks = [subtask.name for subtask in SUBTASKS.values() if subtask.has_null_line]
        for name in ("precision", "recall", "f1"):
            groups[f"null_{name}"] = {"+".join(subtasks): getattr(rows.null_class, name)}
    return groups


def slices_table(summary: Summary) -> Table:
    """Return the slices of the run's main figure: tag, its value, languages, figure, marks, then the cell."""
    head = table_row(summary)
    marks = [str(getattr(head, mark)) for mark in _MARKS]
    lines = []
    for tag, cells in ordered_slices(summary).items():
        for value, cell in cells.items():
            lines.append([tag, value, head.languages, head.measure, *marks, *cell.fields])
    return Table("", ["tag", "of", "languages", "measure", *_MARKS, *FIELDS], lines)
