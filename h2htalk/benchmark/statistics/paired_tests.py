"""Tests of paired differences and of slopes within clusters, their intervals, and how many items they need."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from h2htalk.benchmark.statistics.averages import present_figures
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.sign_flips import EQUAL, SignFlips, sign_flips
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.distributions import t_quantile

Name = TypeVar("Name")
POWER = 0.8
MIN_CLUSTERS = 6  # of an interval: with fewer, no sign-flip test reaches p .05
_LEAST_EXPONENT = -1021  # of a float with all its digits
# Figures that are tested together, so that p is adjusted for their number and for that of the pairs.
CELLS = "subtasks"
AVERAGES = "dimensions"
HEADLINE = "headline"


@dataclass(frozen=True, slots=True)
class Difference:
    """One item: the value of one run minus that of another. Items of one cluster (a case, a history, a reference) are
    not independent of each other; a stratum is a subtask."""

    stratum: str
    cluster: str
    value: float


@dataclass(frozen=True, slots=True)
class PairedResult:
    """The mean of paired differences, in their unit, weighted over strata; or a slope, the mean of those of clusters.

    `error`, `df`: its standard error by the sandwich variance of n clusters, times n / (n - 1) (CR1), and degrees of
    freedom; None where a stratum has one cluster, or where all differences are 0. `effect`: the mean by the standard
    deviation of the differences; None where they do not vary. `totals`: what each cluster adds to the mean; `shares`:
    the weight of each in it.
    """

    mean: float
    effect: float | None
    error: float | None
    df: float | None
    items: int
    clusters: int
    totals: tuple[float, ...] = field(repr=False)
    shares: tuple[float, ...] = field(repr=False)

    @property
    def _flips(self) -> SignFlips:
        return sign_flips(self.totals, self.shares)

    @property
    def estimate(self) -> Estimate:
        """The mean with its 95 % interval: what the sign-flip test does not reject, so that it fits `p`.

        There is no interval with fewer than six clusters, of which the test rejects nothing, and where all differences
        are equal.
        """
        flips = self._flips
        return Estimate(self.mean, flips.low, flips.high, self.items, self.items)

    @property
    def is_above_zero(self) -> bool:
        """Whether the mean is above 0 by t at 2.5 %; unlike the sign-flip test it can say so of two clusters."""
        if self.error is None or self.df is None:
            return False
        return self.mean - t_quantile(self.df) * self.error > 0

    def p(self, above: bool = False) -> float:
        """Two-sided p of the sign-flip test on cluster totals; `above`: one-sided, that the mean is above 0."""
        p = self._flips.p
        if not above:
            return p
        return p / 2 if self.mean > 0 else 1 - p / 2

    @property
    def detectable(self) -> float | None:
        """The difference that as many items find with 80 % power at 5 %; None where none of them varies."""
        if not self.error or not self.df:
            return None
        return (t_quantile(self.df) + t_quantile(self.df, POWER)) * self.error


def _unit(values: Iterable[float]) -> float:
    """A power of 2 near the largest value, 1 where all are 0: squares and fourth powers of values divided by it neither
    underflow nor overflow, and no digit of them changes."""
    largest = max(map(abs, values), default=0.0)
    if largest == 0:
        return 1.0
    _, exponent = math.frexp(largest)
    return math.ldexp(1.0, max(exponent, _LEAST_EXPONENT))


def paired_result(
    differences: Sequence[Difference], weights: Mapping[str, float] | None = None
) -> PairedResult:
    """Test the mean of paired differences, at least one, in any order; `weights`: stratum -> weight, by default its
    number of items; they need not sum to 1."""
    strata = defaultdict[str, list[float]](list)
    for difference in differences:
        strata[difference.stratum].append(difference.value)
    share = weights or {name: float(len(values)) for name, values in strata.items()}
    mass = math.fsum(share[name] for name in strata)
    means = {name: math.fsum(values) / len(values) for name, values in strata.items()}
    mean = math.fsum(share[name] * means[name] for name in strata) / mass
    totals = defaultdict[str, list[float]](list)
    shares = defaultdict[str, list[float]](list)
    residuals = {name: defaultdict[str, float](float) for name in strata}
    for difference in differences:
        stratum = difference.stratum
        cluster = difference.cluster
        weight = share[stratum] / mass / len(strata[stratum])
        totals[cluster].append(weight * difference.value)
        shares[cluster].append(weight)
        residuals[stratum][cluster] += weight * (difference.value - means[stratum])
    # Sorted, so that the order of the items does not matter.
    sums = sorted((math.fsum(totals[name]), math.fsum(shares[name])) for name in totals)
    cluster_totals, cluster_shares = zip(*sums, strict=True)
    weighted = []
    for name, values in strata.items():
        weighted.append((share[name] / mass, [value - means[name] for value in values]))
    deviation = _deviation(weighted)
    noise = EQUAL * max(abs(difference.value) for difference in differences)
    result = PairedResult(
        mean=mean,
        effect=mean / deviation if deviation > noise else None,
        error=None,
        df=None,
        items=len(differences),
        clusters=len(totals),
        totals=cluster_totals,
        shares=cluster_shares,
    )
    if any(len(clusters) < 2 for clusters in residuals.values()) or not any(result.totals):
        return result
    error, df = _sandwich_error(residuals)
    return replace(result, error=error if error > noise else 0.0, df=df)


def _deviation(strata: Sequence[tuple[float, Sequence[float]]]) -> float:
    """The standard deviation within strata, of the weight of each and its values less their mean."""
    unit = _unit(chain.from_iterable(values for _, values in strata))
    variances = []
    for weight, values in strata:
        square = math.fsum((value / unit) ** 2 for value in values)
        variances.append(weight * square / max(1, len(values) - 1))
    return math.sqrt(math.fsum(variances)) * unit


def _sandwich_error(residuals: Mapping[str, Mapping[str, float]]) -> tuple[float, float]:
    """The standard error of a weighted mean by CR1, and Satterthwaite's degrees of freedom.

    `residuals`: stratum -> cluster -> the sum of its weighted residuals.
    """
    sums = defaultdict[str, float](float)
    variances = []
    unit = _unit(chain.from_iterable(clusters.values() for clusters in residuals.values()))
    for clusters in residuals.values():
        scale = len(clusters) / (len(clusters) - 1)
        in_units = {cluster: residual / unit for cluster, residual in clusters.items()}
        square = math.fsum(residual * residual for residual in in_units.values())
        variances.append((scale * square, len(clusters) - 1))
        for cluster, residual in in_units.items():  # a cluster may lie in several strata
            sums[cluster] += math.sqrt(scale) * residual
    error = unit * math.sqrt(math.fsum(total * total for total in sums.values()))
    total_variance = math.fsum(variance for variance, _ in variances)
    if total_variance > 0:
        terms = math.fsum(variance * variance / df for variance, df in variances)
        return error, total_variance**2 / terms
    return error, float(sum(df for _, df in variances))


def clustered_slope(
    clusters: Sequence[str], x: Sequence[float], y: Sequence[float]
) -> PairedResult | None:
    """The slope of y on x within clusters (each has its own level); None where x varies in no cluster."""
    _, numbers = np.unique(np.array(clusters), return_inverse=True)
    sizes = np.bincount(numbers)
    deviations = []
    for side in (x, y):
        values = np.array(side, float)
        deviations.append(values - (np.bincount(numbers, values) / sizes)[numbers])
    dx, dy = deviations
    products = np.bincount(numbers, dx * dy).astype(np.float64)
    squares = np.bincount(numbers, dx * dx).astype(np.float64)
    varying = squares > 0
    if not varying.any():
        return None
    sums = products[varying]
    weights = squares[varying]
    mass = weights.sum()
    slope = float(sums.sum() / mass)
    totals = tuple((sums / mass).tolist())
    shares = tuple((weights / mass).tolist())
    return PairedResult(slope, None, None, None, len(x), len(sums), totals, shares)


def paired_figures(differences: Sequence[Difference]) -> dict[str, PairedResult]:
    """The figures of Table 2 of paired differences, strata being subtasks: each cell and average that has its parts."""
    by_subtask = defaultdict[str, list[Difference]](list)
    for difference in differences:
        by_subtask[difference.stratum].append(difference)
    results = {}
    for key, weights in _figures_of(by_subtask).items():
        members = list(chain.from_iterable(by_subtask[name] for name in weights))
        results[key] = paired_result(members, weights)
    over_items = results.get("items_mean")
    if over_items is not None and over_items.error is None:  # a subtask of one item says nothing
        pooled = [replace(difference, stratum="") for difference in differences]
        results["items_mean"] = paired_result(pooled)
    return results


def figure_means(values: Sequence[Difference]) -> dict[str, float]:
    """Return the means of the figures of `paired_figures`, without a test, which takes most of their time."""
    by_subtask = defaultdict[str, list[float]](list)
    for difference in values:
        by_subtask[difference.stratum].append(difference.value)
    means = {name: math.fsum(members) / len(members) for name, members in by_subtask.items()}
    figures = {}
    for key, weights in _figures_of(by_subtask).items():
        weighted = math.fsum(weight * means[name] for name, weight in weights.items())
        figures[key] = weighted / math.fsum(weights.values())
    return figures


def _figures_of(by_subtask: Mapping[str, Sized]) -> dict[str, dict[str, float]]:
    return present_figures({name: len(members) for name, members in by_subtask.items()})


def family_of(figure: str, headline: str) -> str:
    """The figures that one is tested together with; `headline`: overall, or the mean over items."""
    if figure == headline:
        return HEADLINE
    return CELLS if figure in SUBTASKS else AVERAGES


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Adjust p values for their number (Holm): each times those that are left, never below the one before."""
    adjusted = dict(p_values)
    last = 0.0
    for rank, name in enumerate(sorted(adjusted, key=p_values.__getitem__)):
        last = max(last, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = last
    return adjusted


def detectable_difference(sd: float, items: float, df_an_item: float | None = None) -> float:
    """The mean difference that so many items find with 80 % power at 5 %, their differences varying by `sd`;
    `df_an_item`: degrees of freedom by item of a weighted figure, None for items of equal weight."""
    df = max(1.0, items - 1 if df_an_item is None else items * df_an_item)
    return (t_quantile(df) + t_quantile(df, POWER)) * sd / math.sqrt(items)


def items_needed(difference: float, sd: float, df_an_item: float | None = None) -> int:
    """How many items find a mean difference; see `detectable_difference`."""
    needed = 2.0
    for _ in range(50):  # t depends on the number that is sought
        detectable = detectable_difference(sd, needed, df_an_item)
        needed = max(2.0, needed * (detectable / difference) ** 2)
    return math.ceil(needed - 1e-9)
