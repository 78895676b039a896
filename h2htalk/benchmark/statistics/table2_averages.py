"""Average item scores to a row of Table 2: cells, dimension averages, overall, slices, intervals.

Cells are 100 times the mean; dimension averages are plain means of cells; the overall is the mean of the eleven
cells weighted with Table 1's counts (it reproduces the paper's column; a plain mean misses by 1.4).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS, TOTAL_COUNT

RESAMPLES = 1000
CONFIDENCE = 0.95

Replicates = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean on the 0-100 scale with its 95 % bootstrap interval; n of `total` items are scored.

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

    def to_dict(self) -> dict[str, Any]:
        return {
            "cells": {key: cell.to_dict() for key, cell in self.cells.items()},
            "dimensions": {key: cell.to_dict() for key, cell in self.dimensions.items()},
            "overall": self.overall.to_dict(),
            "items_mean": self.items_mean.to_dict(),
            "plain_mean": self.plain_mean.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class ItemValue:
    """One item: its id, its group (a subtask or a tag), its value in [0, 1] or None."""

    id: str
    group: str
    value: float | None


def aggregate(values: Iterable[ItemValue], seed: int = 0) -> Row:
    """Average the values of one measure to a row of Table 2; `group` is the subtask. Row order never matters.

    Intervals are percentile bootstraps over items, resampled within each subtask (1,000 resamples).
    """
    cells, replicates = _cells(values, SUBTASKS, seed)
    present = [name for name in SUBTASKS if name in cells]
    dimensions: dict[str, Cell] = {}
    for dimension in DIMENSIONS:
        parts = [name for name in SUBTASKS if SUBTASKS[name].dimension == dimension]
        if any(name in cells for name in parts):
            dimensions[dimension] = _average(parts, [1.0] * len(parts), cells, replicates)
    counts = [float(SUBTASKS[name].count) for name in SUBTASKS]
    return Row(
        cells=cells,
        dimensions=dimensions,
        overall=_average(list(SUBTASKS), counts, cells, replicates),
        items_mean=_average(present, [float(cells[name].n) for name in present], cells, replicates),
        plain_mean=_average(present, [1.0] * len(present), cells, replicates),
    )


def aggregate_slices(values: Iterable[ItemValue], seed: int = 0) -> dict[str, Cell]:
    """Average the values of each group (an emotion, a complexity, an interaction), in alphabetical order."""
    listed = list(values)
    return _cells(listed, sorted({v.group for v in listed}), seed)[0]


def _cells(
    values: Iterable[ItemValue], order: Iterable[str], seed: int
) -> tuple[dict[str, Cell], dict[str, Replicates]]:
    groups: dict[str, list[ItemValue]] = {}
    for value in values:
        groups.setdefault(value.group, []).append(value)
    cells, replicates = {}, {}
    for name in order:
        if name in groups:
            members = sorted(groups[name], key=lambda v: v.id)
            scored = np.array([v.value for v in members if v.value is not None], dtype=np.float64)
            replicates[name] = bootstrap_means(100 * scored, seed, name)
            mean = 100 * math.fsum(scored) / len(scored) if len(scored) else None
            cells[name] = _cell(mean, replicates[name], len(scored), len(members))
    return cells, replicates


def bootstrap_means(scored: Replicates, seed: int, group: str = "") -> Replicates:
    """Return the means of RESAMPLES resamples with replacement; empty for fewer than two values.

    Each `group` has a random stream of its own: with one stream, cells of equal size would be correlated, and the
    interval of their average would not shrink.
    """
    if len(scored) < 2:
        return np.empty(0)
    rng = np.random.default_rng([seed, zlib.crc32(group.encode())])
    means = np.empty(RESAMPLES)
    block = max(1, 200_000 // len(scored))  # bounds the memory; the draws do not depend on it
    for start in range(0, RESAMPLES, block):
        rows = min(block, RESAMPLES - start)
        picks = rng.integers(0, len(scored), size=(rows, len(scored)), dtype=np.int32)
        means[start : start + rows] = scored[picks].mean(axis=1)
    return means


def _cell(value: float | None, replicates: Replicates, n: int, total: int) -> Cell:
    if value is None or not len(replicates):
        return Cell(value, None, None, n, total)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(replicates, [tail, 100 - tail])
    return Cell(value, float(low), float(high), n, total)


def _average(
    names: Sequence[str],
    weights: Sequence[float],
    cells: Mapping[str, Cell],
    replicates: Mapping[str, Replicates],
) -> Cell:
    """Return the weighted mean of cells; it has no value, or no interval, when one of the cells has none (a cell of
    one item would otherwise count as certain)."""
    here = [cells[name] for name in names if name in cells]
    n, total = sum(cell.n for cell in here), sum(cell.total for cell in here)
    weighted = [(cell, w) for cell, w in zip(here, weights, strict=False) if w > 0]
    if len(here) < len(names) or not weighted or any(cell.value is None for cell, _ in weighted):
        return Cell(None, None, None, n, total)
    mass = math.fsum(weights)
    value = math.fsum(w * cell.value for cell, w in weighted if cell.value is not None) / mass
    weighed = [(replicates[name], w / mass) for name, w in zip(names, weights, strict=True) if w > 0]
    certain = all(len(means) for means, _ in weighed)
    resampled = np.sum([share * means for means, share in weighed], axis=0) if certain else np.empty(0)
    return _cell(value, resampled, n, total)


assert TOTAL_COUNT == 4650, "Table 1's counts weight the overall score"
