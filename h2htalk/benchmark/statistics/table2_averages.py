"""Average item scores to a row of Table 2: cells, dimension averages, overall, slices, intervals.

Cells are 100 times the mean; dimension averages are plain means of cells; the overall is the mean of the eleven
cells weighted with Table 1's counts (it reproduces the paper's column; a plain mean misses by 1.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass

from h2htalk.benchmark.statistics.intervals import Mean, mean_of, rate_interval, weighted_mean
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS, TOTAL_COUNT


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean on the 0-100 scale with its 95 % interval; n of `total` items are scored.

    `value`, `low` and `high` are None when nothing was scored (or, for an average, when a part is missing);
    the interval is None for a single item.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    total: int

    def to_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of Table 2.

    `cells` by subtask; `dimensions` the plain means of cells; `overall` the Table-1-weighted mean of the cells
    (None unless all exist); `items_mean` the mean over the scored items; `plain_mean` the plain mean of the
    existing cells.
    """

    cells: Mapping[str, Cell]
    dimensions: Mapping[str, Cell]
    overall: Cell
    items_mean: Cell
    plain_mean: Cell


@dataclass(frozen=True, slots=True)
class ItemValue:
    """One item: its id, its group (a subtask or a tag), its value in [0, 1] or None."""

    id: str
    group: str
    value: float | None


def figure_weights(items: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The figures of Table 2 as weights of subtasks, of which each must have a value.

    Args:
        items: subtask -> number of scored items, of the subtasks that were asked.

    Returns:
        Subtask, `<dimension>_avg`, `overall` (Table 1's counts), `items_mean` and `plain_mean` -> subtask -> weight;
        a subtask of weight 0 need not have a value.
    """
    asked = [name for name in SUBTASKS if name in items]
    figures: dict[str, dict[str, float]] = {name: {name: 1.0} for name in asked}
    for dimension in DIMENSIONS:
        parts = [name for name in SUBTASKS if SUBTASKS[name].dimension == dimension]
        if any(name in items for name in parts):
            figures[f"{dimension}_avg"] = dict.fromkeys(parts, 1.0)
    figures["overall"] = {name: float(SUBTASKS[name].count) for name in SUBTASKS}
    figures["items_mean"] = {name: float(items[name]) for name in asked}
    figures["plain_mean"] = dict.fromkeys(asked, 1.0)
    return figures


def aggregate(values: Iterable[ItemValue]) -> Row:
    """Average the values of one measure to a row of Table 2; `group` is the subtask. Row order never matters."""
    cells, means = _cells(values, SUBTASKS)
    figures = figure_weights({name: cell.n for name, cell in cells.items()})
    averages = {key: _average(weights, cells, means) for key, weights in figures.items() if key not in cells}
    return Row(
        cells=cells,
        dimensions={name: averages[key] for name in DIMENSIONS if (key := f"{name}_avg") in averages},
        overall=averages["overall"],
        items_mean=averages["items_mean"],
        plain_mean=averages["plain_mean"],
    )


def aggregate_slices(values: Iterable[ItemValue]) -> dict[str, Cell]:
    """Average the values of each group (an emotion, a complexity, an interaction), in alphabetical order."""
    listed = list(values)
    return _cells(listed, sorted({v.group for v in listed}))[0]


def _cells(values: Iterable[ItemValue], order: Iterable[str]) -> tuple[dict[str, Cell], dict[str, Mean]]:
    """The cell of each group, and the mean behind it where at least two items are scored."""
    groups: dict[str, list[float | None]] = {}
    for value in values:
        groups.setdefault(value.group, []).append(value.value)
    cells, means = {}, {}
    for name in order:
        if name in groups:
            scored = [value for value in groups[name] if value is not None]
            if (mean := mean_of(scored)) is not None:
                means[name] = mean
            only = scored[0] if len(scored) == 1 else None
            cells[name] = _cell(mean, only, len(scored), len(groups[name]))
    return cells, means


def _cell(mean: Mean | None, value: float | None, n: int, total: int) -> Cell:
    """The cell of a mean; without one, of a value that has no interval."""
    if mean is None:
        return Cell(None if value is None else 100 * value, None, None, n, total)
    low, high = mean.interval()
    return Cell(100 * mean.value, 100 * low, 100 * high, n, total)


def _average(weights: Mapping[str, float], cells: Mapping[str, Cell], means: Mapping[str, Mean]) -> Cell:
    """Return the weighted mean of cells; it has no value, or no interval, when one of the cells has none (a cell of
    one item would otherwise count as certain)."""
    here = [cells[name] for name in weights if name in cells]
    n, total = sum(cell.n for cell in here), sum(cell.total for cell in here)
    parts = {name: w for name, w in weights.items() if w > 0}
    values = [cells[name].value for name in parts if name in cells]
    if len(here) < len(weights) or not parts or None in values:
        return Cell(None, None, None, n, total)
    if means.keys() >= parts.keys():
        return _cell(weighted_mean([means[name] for name in parts], list(parts.values())), None, n, total)
    value = math.fsum(w * (cells[name].value or 0.0) for name, w in parts.items()) / math.fsum(parts.values())
    return Cell(value, None, None, n, total)


assert TOTAL_COUNT == 4650, "Table 1's counts weight the overall score"


@dataclass(frozen=True, slots=True)
class NullClass:
    """Precision, recall and F1 of the null line, on the 0-100 scale, n scored items of `total` asked.

    A value is None where nothing was (or should have been) null. `references`, `answers` and `hits` count items with a
    null reference, a null answer, and both; an item with several samples counts by their share.
    """

    precision: Cell
    recall: Cell
    f1: Cell
    references: int
    answers: float
    hits: float


def null_class(pairs: Iterable[tuple[float, bool]], total: int) -> NullClass:
    """From `(share of null answers, the reference is null)` of each scored item, in any order.

    Precision and recall have Wilson's interval of a rate; F1 that of J, the share of items that are null in both
    among those that are in either, since F1 = 2J / (1 + J).

    Args:
        pairs: one a scored item; the share is 0 or 1 for a single sample.
        total: items asked.
    """
    listed = list(pairs)
    answers, references = math.fsum(share for share, _ in listed), sum(null for _, null in listed)
    hits = math.fsum(share for share, null in listed if null)

    def cell(hits: float, of: float, change: Callable[[float], float] = float) -> Cell:
        if not of:
            return Cell(None, None, None, len(listed), total)
        value, low, high = (100 * change(rate) for rate in (hits / of, *rate_interval(hits, of)))
        return Cell(value, low, high, len(listed), total) if len(listed) > 1 else Cell(value, None, None, 1, total)

    return NullClass(
        precision=cell(hits, answers),
        recall=cell(hits, references),
        f1=cell(hits, answers + references - hits, lambda j: 2 * j / (1 + j)),
        references=references,
        answers=answers,
        hits=hits,
    )
