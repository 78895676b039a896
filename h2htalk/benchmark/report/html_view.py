"""Compute the values that the page's template shows; the template itself computes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.benchmark.metrics.metric_table import columns
from h2htalk.benchmark.report.costs import cost_table
from h2htalk.benchmark.report.judge_facts import judge_facts
from h2htalk.benchmark.report.number_format import (
    half_width_text,
    interval_text,
    items_text,
    percent_text,
    value_text,
)
from h2htalk.benchmark.report.table2_layout import (
    ALL_COLUMNS,
    NOT_SCORED,
    cell_at,
    main_row,
    measure_name,
    most_first,
    notes,
    null_class_table,
    ordered_slices,
    spread_lines,
    subtasks_at_hand,
)
from h2htalk.benchmark.report.table2_rows import TableRow, table_rows
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.benchmark.summary import Summary
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.escaping import printable


def page_view(summary: Summary) -> dict[str, Any]:
    """Return everything that page.html needs except the items; control characters are escaped."""
    all_notes = notes(summary)
    return {
        "model": printable(summary.model),
        "split": printable(summary.split),
        "states": _states(summary),
        "loud": [printable(note.text) for note in all_notes if note.loud],
        "quiet": [*(printable(note.text) for note in all_notes if not note.loud), *spread_lines(summary)],
        "warnings": [printable(warning) for warning in summary.warnings],
        "tiles": _tiles(summary),
        "bar_width": BAR_WIDTH,
        **_subtasks(summary),
        "table2": _table2(summary),
        "violations": _violations(summary),
        "failures": [
            (printable(r), f"{n:,}", printable(summary.counts.failure_messages.get(r, "")))
            for r, n in most_first(summary.counts.failures)
        ],
        "replies": [(name, f"{getattr(summary.counts, name):,}") for name in ("empty", "truncated", "refused")],
        "samples": f"{summary.counts.samples:,}",
        "judge": [(name, printable(text)) for name, text in judge_facts(summary)],
        "costs": cost_table(summary.costs) if summary.costs else None,
        "null_class": null_class_table(summary),
        "signature": _signature(summary),
        "version": printable(summary.package_version),
    }


def _states(summary: Summary) -> list[tuple[str, str]]:
    """Return the labels under the title: a kind (good, bad, plain) and a text."""
    states = [("bad", "incomplete")] if summary.incomplete else []
    if summary.counts.private:
        states.append(("bad", NOT_SCORED))
    states = states or [("good", "complete")]
    if summary.measure == "lexical":
        states.append(("plain", "lexical only"))
    else:
        states.append(("good", "comparable S") if summary.s_comparable else ("bad", "S not comparable"))
    states.append(("good", "judged") if summary.judged else ("plain", "unjudged"))
    return states


def _tiles(summary: Summary) -> list[dict[str, str]]:
    """Return the overall figures, the share of kept contracts and the number of items."""
    row = main_row(summary)
    tiles = []
    head = [("overall", "Overall")] if row.overall.value is not None else [("items_mean", "Mean of items")]
    for key, label in [*head, *((f"{dimension}_avg", dimension.title()) for dimension in DIMENSIONS)]:
        cell = cell_at(row, key)
        tiles.append({"label": label, "value": value_text(cell, NONE), "note": interval_text(cell) or "no value"})
    compliance, counts = summary.rows.compliance.items_mean, summary.counts
    note = f"of {items_text(compliance)} items"
    tiles.append({"label": "Contract kept", "value": percent_text(compliance, NONE), "note": note})
    tiles.append({"label": "Items scored", "value": f"{counts.scored:,}", "note": f"of {counts.items:,}"})
    return tiles


# --- Table 2 ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowView:
    """A row of Table 2; `items` is its line of n/total, None where it equals the line of the row above."""

    name: str
    is_baseline: bool
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
        views.append(RowView(printable(row.name), row.source == "baseline", figures, new))
        said = items
    return views


# --- Answers and signature --------------------------------------------------------------------------------------


def _violations(summary: Summary) -> list[tuple[str, str, str, str]]:
    """Return each broken rule: its code, what breaks it, the number of samples and their share."""
    samples = max(1, summary.counts.samples)
    return [
        (printable(rule), RULES.get(rule, ""), f"{n:,}", f"{100 * n / samples:.1f} %")
        for rule, n in most_first(summary.violations)
    ]


def _signature(summary: Summary) -> list[tuple[str, list[tuple[str, str]]]]:
    parts = (("Protocol", summary.signature.protocol), ("Subject", summary.signature.subject))
    named = [(title, [(printable(k), printable(v)) for k, v in part.items()]) for title, part in parts]
    named[0][1].append(("fingerprint", summary.signature.fingerprint))
    return [*named, ("Answers", [(name, printable(text)) for name, text in summary.answering.facts()])]


BAR_WIDTH = 200.0  # of an interval bar, in the units of its picture
SLICE_ROWS = 12  # values of a tag that stand in the open
NONE = "–"
_AVERAGES = (
    ("overall", "Overall", "Table 1's weights"),
    ("items_mean", "Mean of items", "all scored items"),
    ("plain_mean", "Mean of cells", "unweighted"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A value, its interval and the baselines as positions from 0 (left) to BAR_WIDTH."""

    value: float
    low: float
    width: float
    ticks: tuple[tuple[int, float], ...]
    label: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell as text: value, half width and interval (empty where there is none), n of total; `hint` has them all."""

    value: str
    half: str
    interval: str
    items: str
    hint: str
    bar: Bar | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the main table; `baselines`: each one's figure, and whether the model is not above."""

    label: str
    hint: str
    figure: Figure
    lexical: Figure
    contract: Figure
    baselines: tuple[tuple[Figure, bool], ...]


def _subtasks(part: Summary) -> dict[str, Any]:
    """Return the values of the main table, the metrics and the slices."""
    scale = _scale(part)
    dimensions = [dimension for dimension in DIMENSIONS if _names(part, dimension)]
    return {
        "measure": measure_name(part),
        "has_s": part.measure == "s",
        "baselines": [printable(baseline) for baseline in part.baselines],
        "scale": f"{scale:g}",
        "groups": [_group(part, dimension, scale) for dimension in dimensions],
        "averages": [
            *(_line(part, f"{d}_avg", d.title(), "mean of cells", scale) for d in dimensions),
            *(_line(part, key, label, hint, scale) for key, label, hint in _AVERAGES),
        ],
        "metrics": _metrics(part),
        "slices": [_slice(tag, cells) for tag, cells in ordered_slices(part).items() if len(cells) > 1],
    }


def figure_of(cell: Cell | None, bar: Bar | None = None) -> Figure:
    """Format a cell for the page."""
    interval, items = interval_text(cell), items_text(cell, NONE)
    hint = "" if cell is None else f"95 % interval {interval or 'not known'}, {items} items"
    return Figure(value_text(cell, NONE), half_width_text(cell), interval, items, hint, bar)


# --- The main table ---------------------------------------------------------------------------------------------


def _names(part: Summary, dimension: str) -> list[str]:
    return [name for name in subtasks_at_hand(part) if SUBTASKS[name].dimension == dimension]


def _group(part: Summary, dimension: str, scale: float) -> tuple[str, list[Line]]:
    names = _names(part, dimension)
    lines = [_line(part, name, SUBTASKS[name].column, SUBTASKS[name].title, scale) for name in names]
    return dimension.title(), lines


def _line(part: Summary, key: str, label: str, hint: str, scale: float) -> Line:
    cell = cell_at(main_row(part), key)
    baselines = {name: cell_at(main_row(part, baseline), key) for name, baseline in part.baselines.items()}
    contract = cell_at(part.rows.compliance, key)
    return Line(
        label,
        hint,
        figure_of(cell, _bar(cell, list(baselines.values()), scale)),
        figure_of(cell_at(part.rows.lexical, key)),
        _percent_figure(contract),
        tuple((figure_of(baseline), key in part.reached[name]) for name, baseline in baselines.items()),
    )


def _percent_figure(cell: Cell | None) -> Figure:
    figure = figure_of(cell)
    return Figure(percent_text(cell, NONE), figure.half, figure.interval, figure.items, figure.hint)


def _scale(part: Summary) -> float:
    """Return the right end of the main table's bars: the next multiple of ten above everything drawn."""
    rows = [main_row(part), *(main_row(part, baseline) for baseline in part.baselines.values())]
    return _nice_end(cell for row in rows for cell in row.cells.values())


def _nice_end(cells: Iterable[Cell]) -> float:
    highest = max((v for cell in cells for v in (cell.value, cell.high) if v is not None), default=0.0)
    return max(10.0, 10.0 * math.ceil(highest / 10))


def _bar(cell: Cell | None, baselines: Sequence[Cell | None], scale: float) -> Bar | None:
    if cell is None or cell.value is None:
        return None

    def at(value: float) -> float:
        return round(BAR_WIDTH * min(1.0, max(0.0, value / scale)), 1)

    low, high = (cell.value if end is None else end for end in (cell.low, cell.high))
    ticks = tuple((i, at(f.value)) for i, f in enumerate(baselines) if f is not None and f.value is not None)
    label = f"{cell.value:.2f}, 95 % interval {low:.2f} to {high:.2f}"
    return Bar(at(cell.value), at(low), round(at(high) - at(low), 1), ticks, label)


# --- Metrics and slices -----------------------------------------------------------------------------------------


def _metrics(part: Summary) -> dict[str, Any]:
    """Return a figure for each metric of each subtask, and the number of items scored."""
    names = [name for name in columns() if any(name in cells for cells in part.metrics.values())]
    rows = [
        (SUBTASKS[subtask].title, items_text(cells.get(names[0])), [figure_of(cells.get(n)) for n in names])
        for subtask, cells in part.metrics.items()
    ]
    return {"titles": [name.upper().replace("_", "-") for name in names], "rows": rows}


def _slice(tag: str, cells: Mapping[str, Cell]) -> dict[str, Any]:
    """Return the first values of a tag, and the rest of a long list separately."""
    scale = _nice_end(cells.values())
    rows = [(printable(name).replace("_", " "), figure_of(cell, _bar(cell, (), scale))) for name, cell in cells.items()]
    shown = len(rows) if len(rows) <= SLICE_ROWS + 2 else SLICE_ROWS
    return {"tag": tag, "rows": rows[:shown], "more": rows[shown:]}
