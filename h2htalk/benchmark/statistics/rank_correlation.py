"""Spearman's rank correlation with a 95 % interval: by a cluster bootstrap, of few clusters in closed form."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
LEAST = 4  # pairs or clusters of an interval: Fisher's z has the variance of n - 3 pairs
FEW = 10  # clusters of a bootstrap; draws of fewer repeat too few of them
DRAWS = 1000
_BLOCK = 1 << 18  # weights drawn at once


class Correlation(NamedTuple):
    """A correlation, None where one side is constant, with the ends of its interval, None without one."""

    value: float | None
    low: float | None
    high: float | None


def rank_correlation(runs: Sequence[tuple[Sequence[str], Values]]) -> Correlation:
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


def cluster_bootstrap(clusters: int, statistic: Callable[[Values], Values]) -> Correlation:
    """The value of a statistic, and the percentile interval of 1,000 seeded draws; none for fewer than ten clusters.

    Args:
        clusters: how many.
        statistic: its values by row of weights, which say how often each cluster was drawn.
    """
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # no correlation where a draw is constant
        value = float(statistic(np.ones((1, clusters)))[0])
        if math.isnan(value):
            return Correlation(None, None, None)
        if clusters < FEW:
            return Correlation(value, None, None)
        rng, rows, even = np.random.default_rng(0), max(1, _BLOCK // clusters), np.full(clusters, 1 / clusters)
        counts = (rng.multinomial(clusters, even, min(rows, DRAWS - n)) for n in range(0, DRAWS, rows))
        low, high = np.nanquantile(np.concatenate([statistic(one.astype(float)) for one in counts]), (0.025, 0.975))
    return Correlation(value, float(low), float(high))


def closed_form(value: float, n: int) -> Correlation:
    """The interval of a correlation of n independent pairs (Bonett and Wright, 2000), none for fewer than four.

    Fisher's z with the variance (1 + r^2 / 2) / (n - 3); a correlation of 1 or -1 counts as half a step of rho less.
    """
    if n < LEAST or math.isnan(value):
        return Correlation(None if math.isnan(value) else value, None, None)
    most = 1 - 6 / (n * (n * n - 1))
    r = max(-most, min(most, value))
    half = NormalDist().inv_cdf(0.975) * math.sqrt((1 + r * r / 2) / (n - 3))
    return Correlation(value, min(value, math.tanh(math.atanh(r) - half)), max(value, math.tanh(math.atanh(r) + half)))


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
