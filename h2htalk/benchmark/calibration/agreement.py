"""A judge beside people: agreement, and what the judge's error depends on, with 95 % intervals.

The error is the judge's score minus people's mean of the same answers, never the score alone: people may prefer long
replies too. Intervals of agreement come from 1,000 seeded draws of items (of clusters, where items share a dialogue),
those of errors from a jackknife. Coverage and false alarms: docs/measurements.md, "Judge calibration".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from h2htalk.benchmark.calibration.judged_items import JudgedItem
from h2htalk.benchmark.statistics.bootstrap import Values, cluster_bootstrap
from h2htalk.benchmark.statistics.paired import Difference, paired_result
from h2htalk.benchmark.statistics.rank_correlation import rank_correlation
from h2htalk.distributions import t_quantile


@dataclass(frozen=True, slots=True)
class Agreement:
    """A measure of agreement over n items; None where one side does not vary."""

    measure: str
    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Effect:
    """What the judge's error changes by, 0 to 5, with its 95 % interval, from n errors.

    `name` is `mean error`, `length` (a unit of log length), `language NAME` or `reverse order`. `method` is that of the
    interval, or says why there is none.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str


def agreements(items: Sequence[JudgedItem]) -> list[Agreement]:
    """Compare the judges' mean with people's mean of labelled items."""
    clusters = [one.cluster for one in items]
    sides = np.array([[fmean(one.panel) for one in items], [one.people for one in items]], float)
    whole = np.floor(sides + 0.5)
    names, at = np.unique(np.array(clusters), return_inverse=True)
    found = {
        "weighted kappa": cluster_bootstrap(len(names), lambda weights: weighted_kappa(whole, weights[:, at])),
        "Spearman": rank_correlation([(clusters, sides)]),
    }
    return [Agreement(name, *one, len(items)) for name, one in found.items()]


def weighted_kappa(sides: Values, weights: Values) -> Values:
    """Cohen's kappa with quadratic weights (Lin's concordance of the categories), by row of weights.

    Args:
        sides: two rows of categories, a column an item.
        weights: how often each item was drawn, a row a draw.
    """
    a, b, aa, bb, ab = (weights @ part / weights.sum(1) for part in (*sides, *sides**2, sides[0] * sides[1]))
    return np.asarray(2 * (ab - a * b) / (aa + bb - 2 * a * b))


def error_effects(items: Sequence[JudgedItem]) -> list[Effect]:
    """Regress the error of labelled items on length and language: the mean error, and a slope for each column.

    Items count by the number of items that they stand for. The variance is the sum of squared changes of an estimate as
    each cluster is left out, so that noise may be uneven; t has the clusters less the estimates as degrees of freedom.
    """
    columns = {"length": [one.length for one in items]}
    for name in sorted({one.language for one in items})[1:]:
        columns[f"language {name}"] = [float(one.language == name) for one in items]
    names, weights = ["mean error", *columns], np.array([one.weight for one in items])
    x = np.array(list(columns.values())).T
    x = np.column_stack([np.ones(len(items)), x - np.average(x, axis=0, weights=weights)])
    root = np.sqrt(weights / weights.mean())
    y, x = root * np.array([one.error for one in items]), root[:, None] * x
    clusters, cluster = np.unique(np.array([one.cluster for one in items]), return_inverse=True)
    fits = [np.linalg.lstsq(x[own], y[own]) for own in (cluster != left for left in range(-1, len(clusters)))]
    df = len(clusters) - len(names)
    if df < 1 or min(fit[2] for fit in fits) < len(names):
        why = "the labels cannot tell these effects apart" if fits[0][2] < len(names) else "too few items decide it"
        return [Effect(name, None, None, None, len(items), why) for name in names]
    whole, *others = (fit[0] for fit in fits)
    half = t_quantile(df) * np.sqrt(((np.array(others) - whole) ** 2).sum(0))
    found = zip(names, whole.tolist(), half.tolist(), strict=True)
    return [Effect(name, b, b - h, b + h, len(items), f"jackknife, t({df})") for name, b, h in found]


def order_bias(items: Mapping[str, JudgedItem], reverse: Mapping[str, JudgedItem]) -> Effect:
    """What reversing the rubric's qualities adds to the score of an item; no labels are needed."""
    both = [
        Difference("", one.cluster, reverse[item].score - one.score) for item, one in items.items() if item in reverse
    ]
    found = paired_result(both)
    return Effect("reverse order", found.mean, found.low, found.high, found.items, "CR1 by cluster")
