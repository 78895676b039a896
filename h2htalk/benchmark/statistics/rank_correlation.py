"""Spearman's correlation within runs, and the bootstrap by cluster that gives a statistic its interval."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from h2htalk.benchmark.statistics.estimates import Estimate, without_value
from h2htalk.benchmark.statistics.sign_flips import Values
from h2htalk.distributions import UPPER, z_quantile

FEW = 10  # draws of fewer clusters repeat too few of them
DRAWS = 1000
MIN_PAIRS = 4  # pairs or clusters of an interval: Fisher's z has the variance of n - 3 pairs
_WEIGHTS_AT_ONCE = 1 << 18  # weights drawn at once


def cluster_bootstrap(clusters: int, statistic: Callable[[Values], Values], items: int) -> Estimate:
    """Return a statistic of items, and the percentile interval of seeded draws of clusters, none for fewer than ten.

    The statistic gives its values by row of weights, which say how often each of the clusters was drawn.
    """
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # no correlation where a draw is constant
        value = float(statistic(np.ones((1, clusters)))[0])
        if math.isnan(value):
            return without_value(items, items)
        if clusters < FEW:
            return Estimate(value, None, None, items, items)
        rng = np.random.default_rng(0)
        at_once = max(1, _WEIGHTS_AT_ONCE // clusters)
        even = np.full(clusters, 1 / clusters)
        values = []
        for start in range(0, DRAWS, at_once):
            counts = rng.multinomial(clusters, even, min(at_once, DRAWS - start))
            values.append(statistic(counts.astype(float)))
        low, high = np.nanquantile(np.concatenate(values), (1 - UPPER, UPPER))
    return Estimate(value, float(low), float(high), items, items)


def rank_correlation(runs: Sequence[tuple[Sequence[str], Values]]) -> Estimate:
    """Correlate within runs, and average over them; of each run the cluster of each unit, and two rows of values.

    The interval is the percentile one of 1,000 seeded draws of clusters, the same clusters in each run; `closed_form`'s
    for fewer than ten clusters, and where no draw differs (1 or -1).
    """
    names = set[str]()
    for clusters, _ in runs:
        names.update(clusters)
    numbers = {name: number for number, name in enumerate(sorted(names))}
    columns = [np.array(list(map(numbers.__getitem__, clusters))) for clusters, _ in runs]

    def mean(weights: Values) -> Values:
        correlations = []
        for (_, (x, y)), column in zip(runs, columns, strict=True):
            correlations.append(_spearman(x, y, weights[:, column]))
        return np.asarray(np.nanmean(correlations, axis=0))

    pairs = sum(map(len, columns))
    estimate = cluster_bootstrap(len(names), mean, pairs)
    if estimate.value is None or estimate.low != estimate.high:
        return estimate
    return replace(closed_form(estimate.value, len(names)), n=pairs, total=pairs)


def closed_form(value: float, n: int) -> Estimate:
    """The interval of a correlation of n independent pairs (Bonett and Wright, 2000), none for fewer than four:
    Fisher's z with the variance (1 + r^2 / 2) / (n - 3); a correlation of 1 or -1 counts as half a step of rho less."""
    if math.isnan(value):
        return without_value(n, n)
    if n < MIN_PAIRS:
        return Estimate(value, None, None, n, n)
    most = 1 - 6 / (n * (n * n - 1))
    r = max(-most, min(most, value))
    half = z_quantile() * math.sqrt((1 + r * r / 2) / (n - 3))
    low = min(value, math.tanh(math.atanh(r) - half))
    high = max(value, math.tanh(math.atanh(r) + half))
    return Estimate(value, low, high, n, n)


def _spearman(x: Values, y: Values, weights: Values) -> Values:
    """Spearman's rho of two sides of units, by row of weights that say how often each unit was drawn."""
    a = _centred_ranks(x, weights)
    b = _centred_ranks(y, weights)
    products = (weights * a * b).sum(1)
    squares = (weights * a * a).sum(1) * (weights * b * b).sum(1)
    return np.asarray(products / np.sqrt(squares))


def _centred_ranks(values: Values, weights: Values) -> Values:
    """Ranks less their mean, by row of weights."""
    ranks = _mid_ranks(values, weights)
    means = (ranks * weights).sum(1, keepdims=True) / weights.sum(1, keepdims=True)
    return np.asarray(ranks - means)


def _mid_ranks(values: Values, weights: Values) -> Values:
    """Ranks of the drawn units by row of weights; ties share their mean rank."""
    _, group = np.unique(values, return_inverse=True)
    counts = np.zeros((group.max() + 2, len(weights)))
    np.add.at(counts, group + 1, weights.T)
    upto = counts.cumsum(0)
    return np.asarray(((upto[:-1] + upto[1:] + 1) / 2)[group].T)
