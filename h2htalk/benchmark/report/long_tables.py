"""Tables with one figure a line, each with its interval, its items and its marks: every metric, every slice."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.benchmark.metrics.null_class import NullClass
from h2htalk.benchmark.report.table2_layout import ALL_COLUMNS, cell_at, ordered_slices, parts_of
from h2htalk.benchmark.report.table2_rows import TableRow, table_row
from h2htalk.benchmark.statistics.table2_averages import Cell, Row
from h2htalk.benchmark.summary import Standing, Summary
from h2htalk.text.escaping import csv_text

_MARKS = ("complete", "comparable", "judged")
_FIGURES = ("value", "low", "high", "n", "total")
# What a metric's name, a key of Table 2 (or none) and a cell make: one line.
_Line = tuple[str, str, Cell]


def metrics_csv(summary: Summary) -> str:
    """Every figure of the model and its floors as CSV: model, source, languages, metric, what it is of, marks, cell.

    `metric` is `s`, `lexical`, `contract`, one of the seven parts of S, or `null_precision`, `null_recall` and
    `null_f1`; `of` a subtask, `<dimension>_avg`, `overall`, `items_mean` or `plain_mean`.
    """
    rows = []
    for name, part in parts_of(summary).items():
        for floor in (None, *part.floors):
            head = table_row(part, floor, name)
            lines = [*_standing_lines(part.standing if floor is None else part.floors[floor])]
            if floor is None:
                lines += [
                    (metric, of, cell) for of, by in part.metrics.items() for metric, cell in by.items()
                ]
            rows += [
                [head.model, head.source, head.languages, metric, of, *_marks(head), *_figures(cell)]
                for metric, of, cell in lines
            ]
    return csv_text(["model", "source", "languages", "metric", "of", *_MARKS, *_FIGURES], rows)


def slices_csv(summary: Summary) -> str:
    """The slices of each part's measure as CSV: tag, its value, languages, measure, marks, then the cell."""
    rows = []
    for name, part in parts_of(summary).items():
        head = table_row(part, None, name)
        rows += [
            [tag, of, head.languages, head.measure, *_marks(head), *_figures(cell)]
            for tag, cells in ordered_slices(part).items()
            for of, cell in cells.items()
        ]
    return csv_text(["tag", "of", "languages", "measure", *_MARKS, *_FIGURES], rows)


def _standing_lines(standing: Standing) -> Iterator[_Line]:
    named: tuple[tuple[str, Row | None], ...] = (
        ("s", standing.s),
        ("lexical", standing.lexical),
        ("contract", standing.compliance),
    )
    for metric, row in named:
        for column in ALL_COLUMNS:
            cell = cell_at(row, column.key)
            if cell is not None:
                yield metric, column.key, cell
    if standing.null_class is not None:
        yield from _null_lines(standing.null_class)


def _null_lines(null: NullClass) -> Iterator[_Line]:
    for metric, cell in (("precision", null.precision), ("recall", null.recall), ("f1", null.f1)):
        yield f"null_{metric}", "recollection_synthesis", cell


def _marks(row: TableRow) -> list[str]:
    return [str(getattr(row, mark)) for mark in _MARKS]


def _figures(cell: Cell) -> list[float | int | None]:
    return list(cell.to_dict().values())
