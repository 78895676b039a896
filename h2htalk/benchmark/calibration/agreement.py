"""A judge beside people: agreement, and what the judge's error depends on, with 95 % intervals.

The error is the judge's score minus people's mean of the same answers, never the score alone: people may prefer long
replies too. Intervals of agreement come from 1,000 seeded draws of items (of clusters, where items share a dialogue),
those of errors from a jackknife. Coverage and false alarms: docs/measurements.md, "Judge calibration".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from h2htalk.benchmark.calibration.judged_items import JudgedItem
from h2htalk.benchmark.statistics.bootstrap import Values, cluster_bootstrap, rank_correlation
from h2htalk.benchmark.statistics.corrected_mean import CorrectedMean, regression, stratified
from h2htalk.benchmark.statistics.intervals import design_effect
from h2htalk.distributions import Interval, t_quantile
from h2htalk.errors import counted


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
    """The judge's mean error, or what it changes by with a unit of log length: 0 to 5, with its 95 % interval.

    `method` is that of the interval, or says why there is none.
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
    """Regress the error of labelled items on length: the mean error, and the slope.

    Items count by the number of items that they stand for. The variance is the sum of squared changes of an estimate as
    each cluster is left out, so that noise may be uneven; t has the clusters less two as degrees of freedom.
    """
    names, weights = ("mean error", "length"), np.array([one.weight for one in items])
    length, root = np.array([one.length for one in items]), np.sqrt(weights / weights.mean())
    x = root[:, None] * np.column_stack([np.ones(len(items)), length - np.average(length, weights=weights)])
    y = root * np.array([one.error for one in items])
    clusters, cluster = np.unique(np.array([one.cluster for one in items]), return_inverse=True)
    fits = [np.linalg.lstsq(x[own], y[own]) for own in (cluster != left for left in range(-1, len(clusters)))]
    df = len(clusters) - len(names)
    if df < 1 or min(fit[2] for fit in fits) < len(names):
        return [Effect(name, None, None, None, len(items), "too few items decide it") for name in names]
    whole, *others = (fit[0] for fit in fits)
    half = t_quantile(df) * np.sqrt(((np.array(others) - whole) ** 2).sum(0))
    found = zip(names, whole.tolist(), half.tolist(), strict=True)
    return [Effect(name, b, b - h, b + h, len(items), f"jackknife, t({df})") for name, b, h in found]


LEAST_DRAWN, LEAST = 8, 4  # labels, drawn by strata or not
FEW_RATERS = 10  # up to which the interval over annotators is given
ALL_LABELLED, POINTS = "all labelled", "points"


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected mean, or why there is none.

    Attributes:
        group: `levels`, a subtask, a dimension or `points`. figure: `R`, `J` (0 to 5) or a yes-or-no point (0 to 1).
        own: the judges' own mean. estimator: its name, or why the correction is refused.
        raters: the interval over annotators and items of this kind, where 2 to 10 are named.
    """

    group: str
    figure: str
    own: float
    labels: int
    items: int
    estimator: str
    mean: CorrectedMean | None = None
    raters: Interval | None = None


@dataclass(frozen=True, slots=True)
class LabelSample:
    """Judged items, and labels of some.

    Attributes:
        scores: of each item. errors: position -> the judges' value minus people's.
        known: of each item, what is added to the score and needs no correction (a multiple of S).
        strata: of each item, where the plan drew the labels.
        random: the user calls the labels a simple random sample.
    """

    items: Sequence[JudgedItem]
    scores: Sequence[float]
    errors: Mapping[int, float]
    known: Sequence[float]
    strata: Sequence[int] | None = None
    random: bool = False

    def estimate(self) -> tuple[str, CorrectedMean]:
        """Return the estimator and the mean. Raises ValueError with the reason where there is none."""
        n, least = len(self.errors), LEAST if self.strata is None else LEAST_DRAWN
        if n < min(least, max(2, len(self.scores))):
            raise ValueError(f"{counted(n, 'label')}, and {least} are needed")
        whole = [score + known for score, known in zip(self.scores, self.known, strict=True)]
        labels = {at: whole[at] - error for at, error in self.errors.items()}
        effect = design_effect(whole, [item.cluster for item in self.items])
        if n == len(whole):
            found = ALL_LABELLED, stratified(whole, labels, [0] * n, effect)
        elif self.strata is not None:
            found = "stratified", stratified(whole, labels, self.strata, effect)
        elif self.random:
            ratings = {at: self.scores[at] - error for at, error in self.errors.items()}
            found = "regression", regression(self.scores, ratings, self.known, effect)
        else:
            raise ValueError("nobody knows which items the labels leave out: draw them with `plan-labels`, or --random")
        if found[1].low is None:
            raise ValueError("the judges' error is the same on all labelled items, so its spread is not known")
        return found

    def rater_half_width(self) -> float | None:
        """Half of the t interval over annotators' mean errors; None unless 2 to 10 are named."""
        raters: dict[str, list[tuple[float, float]]] = {}
        strata = self.strata or [0] * len(self.items)
        for at in self.errors:
            weight = strata.count(strata[at]) / sum(strata[other] == strata[at] for other in self.errors)
            for name, error in (self.items[at].raters or {}).items():
                raters.setdefault(name, []).append((weight, error))
        if "" in raters or not 2 <= len(raters) <= FEW_RATERS:
            return None
        means = [math.fsum(w * e for w, e in own) / math.fsum(w for w, _ in own) for own in raters.values()]
        return t_quantile(len(means) - 1) * stdev(means) / math.sqrt(len(means))


def correct(group: str, figure: str, sample: LabelSample, scale: float = 1.0) -> Correction:
    """Correct the mean of a sample's scores, or say why not; all values are multiplied by `scale`."""
    own, n = scale * (fmean(sample.scores) + fmean(sample.known)), (len(sample.errors), len(sample.scores))
    try:
        estimator, mean = sample.estimate()
    except ValueError as error:
        return Correction(group, figure, own, *n, str(error))
    ends = (mean.low, mean.high, mean.low_here, mean.high_here)
    low, high, low_here, high_here = (None if end is None else scale * end for end in ends)
    if not all(sample.items[at].whole for at in sample.errors):  # answers that nobody rated vary within an item
        low_here = high_here = None
    scaled = CorrectedMean(scale * mean.value, low, high, low_here, high_here, *n)
    raters = None if group == POINTS else sample.rater_half_width()
    if raters is None or mean.high is None:
        return Correction(group, figure, own, *n, estimator, scaled)
    # The spread of annotators, and that of items.
    half = scale * math.hypot(raters, mean.high - mean.value)
    return Correction(group, figure, own, *n, estimator, scaled, (scaled.value - half, scaled.value + half))
