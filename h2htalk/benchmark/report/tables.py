"""Write a run's tables: Table 2 as CSV, JSON and LaTeX, every figure, the slices and the items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

from h2htalk.benchmark.metrics.composite import ItemScore
from h2htalk.benchmark.metrics.metric_table import columns
from h2htalk.benchmark.report.costs import cost_table
from h2htalk.benchmark.report.table2 import (
    ALL_COLUMNS,
    TableRow,
    cell_at,
    ordered_slices,
    rows_table,
    table_row,
    table_rows,
)
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import write_text
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.escaping import csv_text


def table_text(rows: Sequence[TableRow], kind: str) -> str:
    """Format rows as `csv`, `json` or `latex`."""
    if kind == "json":
        return json.dumps(json_table(rows), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return csv_table(rows) if kind == "csv" else rows_table(rows, "H2HTalk results", half="below").to_latex()


TABLES = ("table2.csv", "table2.json", "table2.tex", "metrics.csv", "slices.csv", "run.csv")  # of every run


def write_tables(summary: Summary, folder: Path) -> list[Path]:
    """Write a run's tables.

    `table2.csv`, `table2.json` and `table2.tex` have the model and its baselines; `metrics.csv` every figure of every
    metric; `slices.csv` the slices; `run.csv` how the run was answered; `costs.csv` what each stage paid, if any.

    Returns:
        Their paths.
    """
    rows = table_rows(summary)
    three = (table_text(rows, kind) for kind in ("csv", "json", "latex"))
    facts = csv_text(["fact", "value"], [("model", summary.model), *summary.answering.facts()])
    texts = dict(zip(TABLES, (*three, metrics_csv(summary), slices_csv(summary), facts), strict=True))
    if summary.costs:
        texts["costs.csv"] = cost_table(summary.costs).to_csv()
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


# --- JSON and CSV: full precision -------------------------------------------------------------------------------

_FIGURES = ("value", "low", "high", "n", "total")
_FACTS = (
    *("model", "source", "group", "split", "languages", "measure"),
    *("complete", "comparable", "judged", "protocol"),
)


def json_table(rows: Iterable[TableRow]) -> list[dict[str, Any]]:
    """Return the rows as plain data in full precision; None where there is no figure."""
    return [
        dict(zip(_FACTS, _facts(row), strict=True))
        | {"cells": {key: dict(zip(_FIGURES, _figures(row, key), strict=True)) for key in row.cells}}
        | {"marks": dict(row.marks)}
        for row in rows
    ]


def csv_table(rows: Iterable[TableRow]) -> str:
    """Format rows as CSV: each column's value, then `_low`, `_high`, `_n` and `_total`; no text is a formula."""
    keys = [column.key for column in ALL_COLUMNS]
    names = [key if part == "value" else f"{key}_{part}" for key in keys for part in _FIGURES]
    lines = ([*map(str, _facts(row)), *chain(*(_figures(row, key) for key in keys))] for row in rows)
    return csv_text([*_FACTS, *names], lines)


def _facts(row: TableRow) -> list[Any]:
    return [row.name, *(getattr(row, name) for name in _FACTS[1:])]


def _figures(row: TableRow, key: str) -> list[float | int | None]:
    """The numbers of a cell; those of the paper have no counts."""
    if (cell := row.cells.get(key)) is None:
        return [None] * len(_FIGURES)
    value, low, high, *counts = cell.to_dict().values()
    return [value, low, high, *(counts if row.source != "paper" else (None, None))]


ITEMS = "items.csv"


def items_csv(split: Split, scores: Mapping[str, ItemScore]) -> str:
    """Format every item as CSV: id, subtask, language, why it is unscored, then its means, times 100 as in the tables.

    `contract` is the share of its answers that break no rule; `rating` (R) and `j` (of
    levels I to III) are 0 to 5. What could not be computed is empty.
    """
    rows: list[list[object]] = []
    for scenario in split.scenarios:
        score = scores[scenario.id]
        values = [score.s, score.lexical, *map(score.metric, columns()), score.compliance]
        figures = [None if value is None else 100 * value for value in values]
        judged = [score.rating, score.j if SUBTASKS[scenario.subtask].level else None]
        rows.append([scenario.id, scenario.subtask, scenario.language, score.unscored or "", *figures, *judged])
    heading = ["id", "subtask", "language", "unscored", "s", "lexical", *columns(), "contract", "rating", "j"]
    return csv_text(heading, rows)


_OF_S = ("s", "ss", "judged", "corrected")  # metrics of the items that have S
_MARKS = ("complete", "comparable", "judged")


def metrics_csv(summary: Summary) -> str:
    """Format every figure of the model and its baselines as CSV: model, source, languages, metric, of, marks, cell.

    `metric` is `s`, `judged` (levels I to III as 20 J), `rating` (20 R of all judged items), `corrected`
    (20 J of `levels` or a level, by people's labels), `share` (in percent, of
    yes to the point that `of` names), `lexical`, `contract`, one of the seven parts of S, or `null_precision`,
    `null_recall` and `null_f1`; `of` a subtask, `<dimension>_avg`, `overall`, `items_mean` or `plain_mean`.
    """
    rows = []
    for baseline in (None, *summary.baselines):
        head = table_row(summary, baseline)
        for metric, of, cell in _cells(summary, baseline):
            languages = summary.measured if metric in _OF_S else "+".join(summary.languages)
            rows.append([head.model, head.source, languages, metric, of, *_marks(head), *cell.to_dict().values()])
    return csv_text(["model", "source", "languages", "metric", "of", *_MARKS, *_FIGURES], rows)


def slices_csv(summary: Summary) -> str:
    """Format the slices of the run's measure as CSV: tag, its value, languages, measure, marks, then the cell."""
    head = table_row(summary)
    rows = [
        [tag, of, head.languages, head.measure, *_marks(head), *cell.to_dict().values()]
        for tag, cells in ordered_slices(summary).items()
        for of, cell in cells.items()
    ]
    return csv_text(["tag", "of", "languages", "measure", *_MARKS, *_FIGURES], rows)


def _cells(summary: Summary, baseline: str | None) -> Iterator[tuple[str, str, Cell]]:
    """Every cell of the model or a baseline, with its metric and what it is of."""
    own = summary.rows if baseline is None else summary.baselines[baseline]
    named = {"s": own.s, "judged": own.judged, "lexical": own.lexical, "contract": own.compliance}
    for metric, key in product(named, (column.key for column in ALL_COLUMNS)):
        if (cell := cell_at(named[metric], key)) is not None:
            yield metric, key, cell
    if (null := own.null_class) is not None:
        of = "+".join(subtask.name for subtask in SUBTASKS.values() if subtask.has_null_line)
        yield from (("null_precision", of, null.precision), ("null_recall", of, null.recall), ("null_f1", of, null.f1))
    if baseline is None and (judging := summary.judging) is not None:
        by_metric = {"rating": judging.ratings.cells, "corrected": judging.corrected, "share": judging.points}
        yield from ((metric, of, cell) for metric, cells in by_metric.items() for of, cell in cells.items())
    if baseline is None:
        yield from ((metric, of, cell) for of, cells in summary.metrics.items() for metric, cell in cells.items())


def _marks(row: TableRow) -> list[str]:
    return [str(getattr(row, mark)) for mark in _MARKS]
