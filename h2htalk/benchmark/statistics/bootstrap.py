"""Percentile bootstrap over clusters: of a mean, a slope (with the sign-flip test of totals) and rank correlations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark.statistics.paired import sign_flip_p
from h2htalk.distributions import UPPER, z_quantile

Values = npt.NDArray[np.float64]
FEW = 10  # draws of fewer clusters repeat too few of them
DRAWS = 1000
_BLOCK = 1 << 18  # weights drawn at once


class Estimate(NamedTuple):
    """A value, None where it cannot be computed, with the ends of its 95 % interval, None without one."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ClusteredResult:
    """A mean difference or a slope, its 95 % interval (None with fewer than two clusters) and two-sided p."""

    value: float
    low: float | None
    high: float | None
    p: float
    items: int
    clusters: int


def cluster_bootstrap(
    clusters: int, statistic: Callable[[Values], Values], least: int = FEW, draws: int = DRAWS
) -> Estimate:
    """Return a statistic, and the percentile interval of seeded draws of clusters; None for fewer than `least`.

    Args:
        clusters: the number of clusters.
        statistic: its values by row of weights, which say how often each cluster was drawn.
        least: the number of clusters from which there is an interval.
        draws: the number of draws.
    """
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # no correlation where a draw is constant
        value = float(statistic(np.ones((1, clusters)))[0])
        if math.isnan(value):
            return Estimate(None, None, None)
        if clusters < least:
            return Estimate(value, None, None)
        rng, rows, even = np.random.default_rng(0), max(1, _BLOCK // clusters), np.full(clusters, 1 / clusters)
        counts = (rng.multinomial(clusters, even, min(rows, draws - n)) for n in range(0, draws, rows))
        found = np.concatenate([statistic(one.astype(float)) for one in counts])
        low, high = np.nanquantile(found, (1 - UPPER, UPPER))
    return Estimate(value, float(low), float(high))


def clustered_mean(clusters: Sequence[str], values: Sequence[float]) -> ClusteredResult:
    """The mean of values, at least one; those of a cluster are drawn together, and lose their sign together."""
    _, at = np.unique(np.array(clusters), return_inverse=True)
    sums = _sums(at, np.array(values, float))
    return _result(sums, _sums(at, np.ones(len(values))), sums, len(values))


def clustered_slope(clusters: Sequence[str], x: Sequence[float], y: Sequence[float]) -> ClusteredResult | None:
    """The slope of y on x within clusters (each has its own level); None where x varies in no cluster."""
    _, at = np.unique(np.array(clusters), return_inverse=True)
    sides = (np.array(own, float) for own in (x, y))
    dx, dy = (own - (_sums(at, own) / np.bincount(at))[at] for own in sides)
    products, squares = _sums(at, dx * dy), _sums(at, dx * dx)
    if not squares.sum() > 0:
        return None
    varying = squares > 0
    return _result(products[varying], squares[varying], products, len(x))


def _sums(at: npt.NDArray[np.intp], values: Values) -> Values:
    """The sum of each cluster's values."""
    return np.bincount(at, weights=values).astype(np.float64)


def _result(sums: Values, weights: Values, totals: Values, items: int) -> ClusteredResult:
    """The ratio of two sums over clusters, and its bootstrap."""
    _, low, high = cluster_bootstrap(len(sums), lambda drawn: (drawn @ sums) / (drawn @ weights), 2, 10_000)
    return ClusteredResult(float(sums.sum() / weights.sum()), low, high, sign_flip_p(totals), items, len(sums))


LEAST = 4  # pairs or clusters of an interval: Fisher's z has the variance of n - 3 pairs


def rank_correlation(runs: Sequence[tuple[Sequence[str], Values]]) -> Estimate:
    """Correlate within each run, and average over the runs.

    The interval is the percentile one of 1,000 seeded draws of clusters, the same clusters in each run; `closed_form`'s
    for fewer than ten clusters, and where no draw differs (1 or -1).

    Args:
        runs: of each run the cluster of each unit, and its values, two rows.
    """
    names = {name: at for at, name in enumerate(sorted({name for clusters, _ in runs for name in clusters}))}
    parts = [(np.array([names[name] for name in clusters]), a, b) for clusters, (a, b) in runs]

    def mean(weights: Values) -> Values:
        return np.asarray(np.nanmean([_spearman(a, b, weights[:, at]) for at, a, b in parts], axis=0))

    found = cluster_bootstrap(len(names), mean)
    if found.value is None:
        return found
    return closed_form(found.value, len(names)) if found.low == found.high else found


def closed_form(value: float, n: int) -> Estimate:
    """The interval of a correlation of n independent pairs (Bonett and Wright, 2000), none for fewer than four.

    Fisher's z with the variance (1 + r^2 / 2) / (n - 3); a correlation of 1 or -1 counts as half a step of rho less.
    """
    if n < LEAST or math.isnan(value):
        return Estimate(None if math.isnan(value) else value, None, None)
    most = 1 - 6 / (n * (n * n - 1))
    r = max(-most, min(most, value))
    half = z_quantile() * math.sqrt((1 + r * r / 2) / (n - 3))
    return Estimate(value, min(value, math.tanh(math.atanh(r) - half)), max(value, math.tanh(math.atanh(r) + half)))


def _spearman(x: Values, y: Values, weights: Values) -> Values:
    """Spearman's rho of two sides of units, by row of weights that say how often each unit was drawn."""
    a, b = (_mid_ranks(side, weights) for side in (x, y))
    a, b = (side - (side * weights).sum(1, keepdims=True) / weights.sum(1, keepdims=True) for side in (a, b))
    found: Values = (weights * a * b).sum(1) / np.sqrt((weights * a * a).sum(1) * (weights * b * b).sum(1))
    return found


def _mid_ranks(values: Values, weights: Values) -> Values:
    """Ranks of the drawn units by row of weights; ties share their mean rank."""
    _, group = np.unique(values, return_inverse=True)
    counts = np.zeros((group.max() + 2, len(weights)))
    np.add.at(counts, group + 1, weights.T)
    upto = counts.cumsum(0)
    ranks: Values = ((upto[:-1] + upto[1:] + 1) / 2)[group].T
    return ranks
