"""A mean and a slope of values in clusters: percentile bootstrap over clusters, sign-flip test of cluster totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark.statistics.intervals import CONFIDENCE
from h2htalk.benchmark.statistics.paired import sign_flip_p

DRAWS = 10_000
_BLOCK = 1 << 22  # numbers drawn at once
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClusteredResult:
    """A mean difference or a slope, its 95 % interval (None with fewer than two clusters) and two-sided p."""

    value: float
    low: float | None
    high: float | None
    p: float
    items: int
    clusters: int


def clustered_mean(clusters: Sequence[str], values: Sequence[float]) -> ClusteredResult:
    """The mean of values, at least one; those of a cluster are drawn together, and lose their sign together."""
    sums, counts = _by_cluster(clusters, np.array(values)), _by_cluster(clusters, np.ones(len(values)))
    return _result(sums, counts, sums, len(values))


def clustered_slope(clusters: Sequence[str], x: Sequence[float], y: Sequence[float]) -> ClusteredResult | None:
    """The slope of y on x within clusters (each has its own level); None where x varies in no cluster."""
    level_x, level_y = _levels(clusters, np.array(x, float)), _levels(clusters, np.array(y, float))
    dx, dy = np.array(x) - level_x, np.array(y) - level_y
    products, squares = _by_cluster(clusters, dx * dy), _by_cluster(clusters, dx * dx)
    if not squares.sum() > 0:
        return None
    varying = squares > 0
    return _result(products[varying], squares[varying], products, len(x))


def _result(sums: Array, weights: Array, totals: Array, items: int) -> ClusteredResult:
    """The ratio of two sums over clusters, and its bootstrap."""
    value, number = float(sums.sum() / weights.sum()), len(sums)
    low = high = None
    if number > 1:
        rng, drawn, rows = np.random.default_rng(0), [], max(1, _BLOCK // number)
        for start in range(0, DRAWS, rows):
            chosen = rng.integers(0, number, size=(min(rows, DRAWS - start), number))
            drawn.append(sums[chosen].sum(axis=1) / weights[chosen].sum(axis=1))
        tail = (1 - CONFIDENCE) / 2
        low, high = (float(end) for end in np.quantile(np.concatenate(drawn), (tail, 1 - tail)))
    return ClusteredResult(value, low, high, sign_flip_p(totals), items, number)


def _by_cluster(clusters: Sequence[str], values: Array) -> Array:
    """The sum of each cluster's values, clusters in the order of their names."""
    _, where = np.unique(np.array(clusters), return_inverse=True)
    sums: Array = np.bincount(where, weights=values).astype(np.float64)
    return sums


def _levels(clusters: Sequence[str], values: Array) -> Array:
    """The mean of the cluster of each value."""
    _, where = np.unique(np.array(clusters), return_inverse=True)
    level: Array = (np.bincount(where, weights=values) / np.bincount(where))[where]
    return level
