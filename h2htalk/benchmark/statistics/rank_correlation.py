"""Spearman's rank correlation with a 95 % interval: by a cluster bootstrap, of few clusters in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from h2htalk.benchmark.statistics.bootstrap import Estimate, Values, cluster_bootstrap
from h2htalk.distributions import z_quantile

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
