"""Write a run as one HTML file that needs no network and no server: the tables, and every item with its prompt.

Text of items cannot execute (see `h2htalk.text.html_pages`): the items are in a JSON block, which the script inserts
as text only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from h2htalk.benchmark.estimate_text import (
    PERCENT,
    format_interval,
    format_with_interval,
    items_text,
    value_text,
)
from h2htalk.benchmark.metrics.composite import all_columns
from h2htalk.benchmark.report import notes
from h2htalk.benchmark.report.cost_tables import cost_table
from h2htalk.benchmark.report.page_items import ItemView, items_json
from h2htalk.benchmark.report.run_tables import (
    answer_tables,
    null_class_table,
    slice_tables,
    subtask_table,
)
from h2htalk.benchmark.report.table2 import NOT_SCORED, main_row, rows_table, table_rows
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import write_text
from h2htalk.data.model_names import text_without_paths, without_paths
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table

NO_VALUE = "–"
_PAGE = files("h2htalk.benchmark.report") / "page"
_SCRIPTS = ("records.js", "detail.js", "list.js")
_MARKER = "@@items@@"


class Tile(NamedTuple):
    """One of the main figures."""

    label: str
    value: str
    note: str


def write_page(path: Path, summary: Summary, items: Iterable[ItemView]) -> None:
    """Write the page of a run; the file appears only when it is complete.

    `items` are read once and written as they come, so that a run is never in memory as a whole.
    """
    text = render_page(_PAGE, {**page_view(summary), "data": _MARKER}, scripts=_SCRIPTS)
    before, after = text.rsplit(_MARKER, 1)  # the last: a model may be named so
    write_text(path, chain([before], items_json(items), [after]))


def page_view(summary: Summary) -> dict[str, Any]:
    """Return everything that page.html needs except the items; control characters are escaped."""
    loud: list[str] = []
    quiet: list[str] = []
    for note, is_loud in notes.notes(summary):
        (loud if is_loud else quiet).append(printable(note))
    return {
        "model": printable(summary.model),
        "split": printable(summary.split),
        "incomplete": summary.incomplete,
        "is_private": summary.counts.private > 0,
        "not_scored": NOT_SCORED,
        "is_lexical": summary.measure == "lexical",
        "comparable": summary.s_comparable,
        "judged": summary.judged,
        "loud": loud,
        "quiet": [*quiet, *notes.spread_lines(summary)],
        "warnings": [printable(text_without_paths(warning)) for warning in summary.warnings],
        "tiles": _tiles(summary),
        "has_baselines": bool(summary.baselines),
        "subtasks": _subtask_table(summary),
        "metrics": _metric_table(summary),
        "slices": slice_tables(summary, as_ends=True),
        "table2": _table2(summary),
        "answers": answer_tables(summary),
        "judge": Table("", ("judges", ""), list(notes.judge_facts(summary))),
        "costs": cost_table(summary.costs) if summary.costs else None,
        "null_class": null_class_table(summary, as_ends=True),
        "signature": _signature_tables(summary),
        "version": printable(summary.package_version),
    }


def _tiles(summary: Summary) -> list[Tile]:
    """The overall figure, or the mean over items, those of the dimensions, kept contracts, and the items scored."""
    row = main_row(summary)
    tiles = [_tile("Overall", row["overall"])]
    if row["overall"].value is None:
        tiles = [_tile("Mean of items", row["items_mean"])]
    for dimension in DIMENSIONS:
        tiles.append(_tile(dimension.title(), row.get(f"{dimension}_avg")))
    contract = summary.rows.compliance["items_mean"]
    counts = summary.counts
    return [
        *tiles,
        Tile(
            "Contract kept",
            value_text(contract, NO_VALUE, PERCENT),
            f"of {items_text(contract)} items",
        ),
        Tile("Items scored", f"{counts.scored:,}", f"of {counts.items:,}"),
    ]


def _tile(label: str, cell: Estimate | None) -> Tile:
    interval = None if cell is None else cell.interval
    text = format_interval(interval, separator=" – ") or "no value"
    return Tile(label, value_text(cell, NO_VALUE), text)


def _subtask_table(summary: Summary) -> Table:
    """The table by subtask, with the titles of groups in bold."""
    table = subtask_table(summary)
    lines = []
    for title, *cells in table.rows:
        if not any(cells):
            title = Markup('<b class="group">{}</b>').format(title)
        lines.append([title, *cells])
    return replace(table, rows=lines)


def _metric_table(summary: Summary) -> Table:
    """The figures of each metric by subtask."""
    by_subtask = summary.metrics
    measured = set(chain(*by_subtask.values()))
    names = [name for name in all_columns(by_subtask.values()) if name in measured]
    lines = []
    for subtask, cells in by_subtask.items():
        figures = [format_with_interval(cells.get(name), as_ends=True) for name in names]
        lines.append((SUBTASKS[subtask].title, items_text(cells.get(names[0])), *figures))
    headings = [name.upper().replace("_", "-") for name in names]
    return Table("", ("Subtask", "Items", *headings), lines)


def _table2(summary: Summary) -> Table:
    """Table 2 with a column a row, so that it fits a screen; cautions stand at the head of the page."""
    rows = table_rows(summary)
    table = rows_table(rows, interval_place="ends")
    _, *lines = zip(table.header, *table.rows, strict=True)
    return replace(table, header=["", *(row.name for row in rows)], rows=lines)


def _signature_tables(summary: Summary) -> list[Table]:
    """The signature's two parts, and how the run was answered."""
    signature = summary.signature
    protocol = {**without_paths(signature.protocol), "fingerprint": signature.fingerprint}
    facts = {
        "Protocol": protocol.items(),
        "Subject": without_paths(signature.subject).items(),
        "Answers": summary.run_facts.texts(),
    }
    return [Table("", (title, ""), list(pairs)) for title, pairs in facts.items()]
