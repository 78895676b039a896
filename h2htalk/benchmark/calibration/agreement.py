"""Agreement of a judge with people, and of annotators with each other, with 95 % intervals.

Intervals come from 1,000 seeded draws of items (of clusters, where items share a dialogue), and for rank correlations
of fewer than ten from Fisher's z; kappa and ICC have none there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from h2htalk.benchmark.calibration.judged_items import JudgedItem
from h2htalk.benchmark.statistics.rank_correlation import Correlation, Values, cluster_bootstrap, rank_correlation


@dataclass(frozen=True, slots=True)
class Agreement:
    """A measure of agreement over n items; None where one side does not vary."""

    measure: str
    value: float | None
    low: float | None
    high: float | None
    n: int


def agreements(items: Sequence[JudgedItem]) -> list[Agreement]:
    """Compare the judges' mean with people's mean of labelled items, and annotators who rated the same items."""
    judge, clusters = [fmean(one.panel) for one in items], [one.cluster for one in items]
    sides = np.array([judge, [one.people for one in items]], float)
    whole = np.floor(sides + 0.5)
    found = {
        "weighted kappa": _bootstrap(clusters, lambda weights: weighted_kappa(whole, weights)),
        "Spearman": rank_correlation([(clusters, sides)]),
        "ICC(2,1)": _bootstrap(clusters, lambda weights: icc(sides, weights)),
    }
    names = sorted({name for one in items for name in one.raters or ()})
    shared = [at for at, one in enumerate(items) if len(one.raters or ()) == len(names)]
    if len(names) > 1 and len(shared) > 1:
        # A rating is the judges' mean and the annotator's difference from it.
        own = np.array([[judge[at] + (items[at].raters or {})[name] for at in shared] for name in names])
        found["ICC(2,1) of annotators"] = _bootstrap([clusters[at] for at in shared], lambda weights: icc(own, weights))
    n = {"ICC(2,1) of annotators": len(shared)}
    return [Agreement(name, *one, n.get(name, len(items))) for name, one in found.items()]


def weighted_kappa(sides: Values, weights: Values) -> Values:
    """Cohen's kappa with quadratic weights (Lin's concordance of the categories), by row of weights.

    Args:
        sides: two rows of categories, a column an item.
        weights: how often each item was drawn, a row a draw.
    """
    a, b, aa, bb, ab = (weights @ part / weights.sum(1) for part in (*sides, *sides**2, sides[0] * sides[1]))
    return np.asarray(2 * (ab - a * b) / (aa + bb - 2 * a * b))


def icc(sides: Values, weights: Values) -> Values:
    """ICC(2,1): absolute agreement of single raters, two-way random (Shrout and Fleiss 1979), by row of weights.

    Args:
        sides: a row a rater, a column an item.
        weights: how often each item was drawn, a row a draw.
    """
    k, n = len(sides), weights.sum(1)
    raters = weights @ sides.T / n[:, None]
    grand = raters.mean(1, keepdims=True)
    rows = k * (weights * (sides.mean(0) - grand) ** 2).sum(1)
    columns = n * ((raters - grand) ** 2).sum(1)
    total = sum((weights * (side - grand) ** 2).sum(1) for side in sides)
    between, error = rows / (n - 1), (total - rows - columns) / ((n - 1) * (k - 1))
    return np.asarray((between - error) / (between + (k - 1) * error + k * (columns / (k - 1) - error) / n))


def _bootstrap(clusters: Sequence[str], statistic: Callable[[Values], Values]) -> Correlation:
    """Draw clusters; the statistic takes weights by item."""
    names, at = np.unique(np.array(clusters), return_inverse=True)
    return cluster_bootstrap(len(names), lambda weights: statistic(weights[:, at]))
