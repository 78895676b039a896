"""What the page's template shows, as plain values: the template places them and computes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.benchmark.aggregate import Cell, NullClass
from h2htalk.benchmark.composite import METRIC_NAMES
from h2htalk.benchmark.report.layout import (
    COLUMNS,
    cell_at,
    main_row,
    measure_name,
    most_first,
    not_above,
    notes,
    ordered_slices,
    subtasks_at_hand,
)
from h2htalk.benchmark.summary import Summary
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.printable import printable
from h2htalk.text.violations import RULES

BAR_WIDTH = 200.0  # of an interval bar, in the units of its picture
SLICE_ROWS = 12  # values of a tag that stand in the open
_AVERAGES = (
    ("overall", "Overall", "Table 1's weights"),
    ("items_mean", "Mean of items", "those at hand"),
    ("plain_mean", "Mean of cells", "unweighted"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A value, its interval and the floors as distances from the left, 0 to BAR_WIDTH."""

    value: float
    low: float
    width: float
    ticks: tuple[tuple[int, float], ...]
    label: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell as text: value and interval (empty where there is none) and n of total."""

    value: str
    interval: str
    items: str
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the main table; `floors` are texts with whether the model stays at or below them."""

    label: str
    hint: str
    figure: Figure
    lexical: str
    contract: str
    floors: tuple[tuple[str, bool], ...]


def page_view(summary: Summary) -> dict[str, Any]:
    """Everything page.html needs besides the items, every text made printable."""
    scale = _scale(summary)
    said = notes(summary)
    return {
        "model": printable(summary.model),
        "split": printable(summary.split),
        "measure": measure_name(summary),
        "has_s": summary.measure == "s",
        "states": _states(summary),
        "loud": [note.text for note in said if note.loud],
        "quiet": [note.text for note in said if not note.loud],
        "warnings": [printable(warning) for warning in summary.warnings],
        "tiles": _tiles(summary),
        "floors": [printable(name) for name in summary.floors],
        "scale": f"{scale:g}",
        "bar_width": BAR_WIDTH,
        "groups": [
            _group(summary, dimension, scale) for dimension in DIMENSIONS if _names(summary, dimension)
        ],
        "averages": [_line(summary, key, label, hint, scale) for key, label, hint in _averages(summary)],
        "table2": _table2(summary),
        "metrics": _metrics(summary),
        "slices": [_slice(tag, cells) for tag, cells in ordered_slices(summary).items() if cells],
        "violations": _violations(summary),
        "failures": [(printable(r), f"{n:,}") for r, n in most_first(summary.counts.failures)],
        "replies": [
            (name, f"{getattr(summary.counts, name):,}") for name in ("empty", "truncated", "refused")
        ],
        "samples": f"{summary.counts.samples:,}",
        "null_class": _null_lines(summary),
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


def _tiles(summary: Summary) -> list[dict[str, str]]:
    row = main_row(summary)
    main = [("overall", "Overall")] if row.overall.value is not None else [("items_mean", "Mean of items")]
    main += [(f"{dimension}_avg", dimension.title()) for dimension in DIMENSIONS]
    tiles = []
    for key, label in main:
        figure = _figure(cell_at(row, key))
        tiles.append({"label": label, "value": figure.value, "note": figure.interval or "no value"})
    compliance = summary.standing.compliance.items_mean
    tiles.append({"label": "Contract kept", "value": _percent(compliance), "note": "share of answers"})
    counts = summary.counts
    tiles.append({"label": "Items scored", "value": f"{counts.scored:,}", "note": f"of {counts.items:,}"})
    return tiles


# --- The main table ---------------------------------------------------------------------------------------------


def _names(summary: Summary, dimension: str) -> list[str]:
    return [name for name in subtasks_at_hand(summary) if SUBTASKS[name].dimension == dimension]


def _averages(summary: Summary) -> list[tuple[str, str, str]]:
    dimensions = [(f"{d}_avg", d.title(), "mean of cells") for d in DIMENSIONS if _names(summary, d)]
    return [*dimensions, *_AVERAGES]


def _group(summary: Summary, dimension: str, scale: float) -> tuple[str, list[Line]]:
    lines = [
        _line(
            summary, name, SUBTASKS[name].title.removeprefix(dimension.title()), SUBTASKS[name].column, scale
        )
        for name in _names(summary, dimension)
    ]
    return dimension.title(), lines


def _line(summary: Summary, key: str, label: str, hint: str, scale: float) -> Line:
    cell = cell_at(main_row(summary), key)
    floors = [cell_at(main_row(summary, floor), key) for floor in summary.floors.values()]
    return Line(
        label,
        hint,
        _figure(cell, floors, scale),
        _figure(cell_at(summary.standing.lexical, key)).value,
        _percent(cell_at(summary.standing.compliance, key)),
        tuple((_figure(floor).value, not_above(cell, floor)) for floor in floors),
    )


def _scale(summary: Summary) -> float:
    """The right end of the main table's bars: the next ten above all that is drawn."""
    rows = [main_row(summary), *(main_row(summary, floor) for floor in summary.floors.values())]
    cells = [cell for row in rows for cell in row.cells.values()]
    return _nice_end(cells)


def _nice_end(cells: Iterable[Cell]) -> float:
    highest = max((v for cell in cells for v in (cell.value, cell.high) if v is not None), default=0.0)
    return max(10.0, 10.0 * math.ceil(highest / 10))


def _figure(cell: Cell | None, floors: Sequence[Cell | None] = (), scale: float = 100.0) -> Figure:
    if cell is None or cell.value is None:
        return Figure("–", "", _items(cell), None)
    interval = "" if cell.low is None or cell.high is None else f"{cell.low:.2f} – {cell.high:.2f}"
    return Figure(f"{cell.value:.2f}", interval, _items(cell), _bar(cell, floors, scale))


def _bar(cell: Cell, floors: Sequence[Cell | None], scale: float) -> Bar:
    def at(value: float) -> float:
        return round(BAR_WIDTH * min(1.0, max(0.0, value / scale)), 1)

    value = cell.value or 0.0
    low, high = (value if end is None else end for end in (cell.low, cell.high))
    ticks = tuple((i, at(f.value)) for i, f in enumerate(floors) if f is not None and f.value is not None)
    label = f"{value:.2f}, 95 % interval {low:.2f} to {high:.2f}"
    return Bar(at(value), at(low), round(at(high) - at(low), 1), ticks, label)


def _items(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    return f"{cell.n:,}/{cell.total:,}"


def _percent(cell: Cell | None) -> str:
    return "–" if cell is None or cell.value is None else f"{cell.value:.0f} %"


# --- Table 2, metrics, slices, counts ---------------------------------------------------------------------------


def _table2(summary: Summary) -> dict[str, Any]:
    groups = [(d.title(), sum(c.group == d.title() for c in COLUMNS)) for d in DIMENSIONS]
    rows = [(printable(summary.model), [_figure(cell_at(main_row(summary), c.key)).value for c in COLUMNS])]
    for name, floor in summary.floors.items():
        rows.append(
            (printable(name), [_figure(cell_at(main_row(summary, floor), c.key)).value for c in COLUMNS])
        )
    return {"groups": groups, "columns": COLUMNS, "rows": rows}


def _metrics(summary: Summary) -> dict[str, Any]:
    names = [*METRIC_NAMES, *(["ss"] if any("ss" in means for means in summary.metrics.values()) else [])]
    titles = [name.upper().replace("_", "-") for name in names]
    rows = [
        (SUBTASKS[subtask].title, [f"{100 * means[name]:.2f}" if name in means else "–" for name in names])
        for subtask, means in summary.metrics.items()
    ]
    return {"titles": titles, "rows": rows}


def _slice(tag: str, cells: Mapping[str, Cell]) -> dict[str, Any]:
    """The first values of a tag, and the rest of a long list apart."""
    scale = _nice_end(cells.values())
    rows = [(printable(name).replace("_", " "), _figure(cell, (), scale)) for name, cell in cells.items()]
    shown = len(rows) if len(rows) <= SLICE_ROWS + 2 else SLICE_ROWS
    return {"tag": tag, "rows": rows[:shown], "more": rows[shown:]}


def _violations(summary: Summary) -> list[tuple[str, str, str, str]]:
    """Rule, what breaks it, how many samples, their share of all."""
    samples = max(1, summary.counts.samples)
    return [
        (printable(rule), RULES.get(rule, ""), f"{n:,}", f"{100 * n / samples:.1f} %")
        for rule, n in most_first(summary.violations)
    ]


def _null_lines(summary: Summary) -> list[tuple[str, ...]]:
    """The model and its floors: name, precision, recall, F1, references, answers, both, n."""
    named: Iterable[tuple[str, NullClass | None]] = [
        (printable(summary.model), summary.standing.null_class),
        *((printable(name), floor.null_class) for name, floor in summary.floors.items()),
    ]
    lines = []
    for name, null in named:
        if null is not None:
            ratios = ("–" if r is None else f"{r:.2f}" for r in (null.precision, null.recall, null.f1))
            counts = (f"{count:,}" for count in (null.references, null.answers, null.hits, null.n))
            lines.append((name, *ratios, *counts))
    return lines


def _signature(summary: Summary) -> list[tuple[str, list[tuple[str, str]]]]:
    parts = (("Protocol", summary.signature.protocol), ("Subject", summary.signature.subject))
    named = [(title, [(printable(k), printable(v)) for k, v in part.items()]) for title, part in parts]
    named[0][1].append(("fingerprint", summary.signature.fingerprint))
    return named
