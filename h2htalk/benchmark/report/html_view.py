"""What the page's template shows, as plain values: the template places them and computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.benchmark.report.cost_text import cost_lines, cost_view
from h2htalk.benchmark.report.number_format import (
    count_text,
    interval_text,
    items_text,
    percent_text,
    value_text,
)
from h2htalk.benchmark.report.part_view import BAR_WIDTH, NONE, Figure, figure_of, part_view
from h2htalk.benchmark.report.table2_layout import (
    ALL_COLUMNS,
    cell_at,
    languages_of,
    main_row,
    most_first,
    notes,
    parts_of,
)
from h2htalk.benchmark.report.table2_rows import TableRow, table_rows
from h2htalk.benchmark.summary import Summary
from h2htalk.data.subtasks import DIMENSIONS
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.printable import printable


def page_view(summary: Summary) -> dict[str, Any]:
    """Everything page.html needs besides the items, every text made printable."""
    said = notes(summary)
    parts = parts_of(summary)
    return {
        "model": printable(summary.model),
        "split": printable(summary.split),
        "states": _states(summary),
        "loud": [printable(note.text) for note in said if note.loud],
        "quiet": [printable(note.text) for note in said if not note.loud],
        "warnings": [printable(warning) for warning in summary.warnings],
        "tiles": _tiles(parts, summary),
        "has_floors": bool(summary.floors),
        "bar_width": BAR_WIDTH,
        "parts": [part_view(name, part) for name, part in parts.items()],
        "table2": _table2(summary),
        "violations": _violations(summary),
        "failures": [(printable(r), f"{n:,}") for r, n in most_first(summary.counts.failures)],
        "replies": [
            (name, f"{getattr(summary.counts, name):,}") for name in ("empty", "truncated", "refused")
        ],
        "samples": f"{summary.counts.samples:,}",
        "costs": cost_view(summary.costs),
        "cost_lines": cost_lines(summary.costs),
        "null_class": [line for name, part in parts.items() for line in _null_lines(name, part)],
        "signature": _signature(summary),
        "version": printable(summary.package_version),
    }


def _states(summary: Summary) -> list[tuple[str, str]]:
    """Chips under the title: a kind (good, bad, plain) and a text."""
    states = [("bad", "incomplete") if summary.incomplete else ("good", "complete")]
    if summary.measure == "lexical":
        states.append(("plain", "lexical only"))
    else:
        states.append(("good", "comparable S") if summary.s_comparable else ("bad", "S not comparable"))
    states.append(("good", "judged") if summary.judged else ("plain", "unjudged"))
    return states


def _tiles(parts: Mapping[str, Summary], summary: Summary) -> list[dict[str, str]]:
    """The overall figures: of the first part in full, of a second one its mean."""
    tiles = []
    for number, (name, part) in enumerate(parts.items()):
        row = main_row(part)
        keys = (
            [("overall", "Overall")] if row.overall.value is not None else [("items_mean", "Mean of items")]
        )
        if not number:
            keys += [(f"{dimension}_avg", dimension.title()) for dimension in DIMENSIONS]
        for key, label in keys:
            cell = cell_at(row, key)
            told = f"{label} ({name})" if name and (number or key == "overall") else label
            tiles.append(
                {"label": told, "value": value_text(cell, NONE), "note": interval_text(cell) or "no value"}
            )
    for part in parts.values():
        compliance = part.standing.compliance.items_mean
        label = f"Contract kept ({languages_of(part)})" if len(parts) > 1 else "Contract kept"
        note = f"of {items_text(compliance)} items"
        tiles.append({"label": label, "value": percent_text(compliance, NONE), "note": note})
    counts = summary.counts
    tiles.append({"label": "Items scored", "value": f"{counts.scored:,}", "note": f"of {counts.items:,}"})
    return tiles


# --- Table 2 ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowView:
    """A row of Table 2; `items` is its line of n/total, None where it is that of the row above."""

    name: str
    is_floor: bool
    figures: tuple[Figure, ...]
    items: tuple[str, ...] | None


def _table2(summary: Summary) -> dict[str, Any]:
    groups = [(d.title(), sum(c.group == d.title() for c in ALL_COLUMNS)) for d in DIMENSIONS]
    return {"groups": groups, "columns": ALL_COLUMNS, "rows": _row_views(table_rows(summary))}


def _row_views(rows: Sequence[TableRow]) -> list[RowView]:
    views = []
    said: tuple[str, ...] = ()
    for row in rows:
        figures = tuple(figure_of(row.cells.get(column.key)) for column in ALL_COLUMNS)
        items = tuple(figure.items for figure in figures)
        new = None if items == said else items
        views.append(RowView(printable(row.name), row.source == "floor", figures, new))
        said = items
    return views


# --- Answers and signature --------------------------------------------------------------------------------------


def _violations(summary: Summary) -> list[tuple[str, str, str, str]]:
    """Rule, what breaks it, how many samples, their share of all."""
    samples = max(1, summary.counts.samples)
    return [
        (printable(rule), RULES.get(rule, ""), f"{n:,}", f"{100 * n / samples:.1f} %")
        for rule, n in most_first(summary.violations)
    ]


def _null_lines(name: str, part: Summary) -> list[dict[str, Any]]:
    """The model and its floors: the three ratios, and how many references, answers and both are null."""
    named = {
        part.model: part.standing.null_class,
        **{n: floor.null_class for n, floor in part.floors.items()},
    }
    of = f" ({languages_of(part)})" if name else ""
    return [
        {
            "name": f"{printable(contender)}{of}",
            "scored": items_text(null.f1),
            "ratios": [figure_of(cell) for cell in (null.precision, null.recall, null.f1)],
            "counts": [count_text(count) for count in (null.references, null.answers, null.hits)],
        }
        for contender, null in named.items()
        if null is not None
    ]


def _signature(summary: Summary) -> list[tuple[str, list[tuple[str, str]]]]:
    parts = (("Protocol", summary.signature.protocol), ("Subject", summary.signature.subject))
    named = [(title, [(printable(k), printable(v)) for k, v in part.items()]) for title, part in parts]
    named[0][1].append(("fingerprint", summary.signature.fingerprint))
    return named
