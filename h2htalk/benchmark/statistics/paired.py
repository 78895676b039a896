"""Paired differences of two runs: sign-flip test by cluster, CR1 interval, Holm, effect size, detectable difference.

Methods and their measured false alarms: docs/measurements.md, "Intervals and comparisons".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark.statistics.table2_averages import figure_weights
from h2htalk.distributions import t_quantile

Name = TypeVar("Name")
FLIPS = 10_000
_EXACT = 12  # clusters up to which all sign flips are tried
_BLOCK = 1 << 21  # signs drawn at once
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Difference:
    """One item: the value of one run minus that of another; its stratum (subtask) and its cluster.

    Items of one cluster (a case, a history, a reference) are not independent of each other.
    """

    stratum: str
    cluster: str
    value: float


@dataclass(frozen=True, slots=True)
class PairedResult:
    """The mean of paired differences, in their unit.

    Attributes:
        mean: weighted over strata.
        low, high: 95 % interval by cluster-robust variance (CR1) and t; None where a stratum has one cluster, or where
            all differences are 0.
        effect: mean by standard deviation of the differences; None where they do not vary.
        error, df: standard error of the mean and its degrees of freedom; None where there is no interval.
        items, clusters: how many.
        totals: what each cluster adds to the mean.
    """

    mean: float
    low: float | None
    high: float | None
    effect: float | None
    error: float | None
    df: float | None
    items: int
    clusters: int
    totals: tuple[float, ...] = field(repr=False)

    def p(self) -> float:
        """Two-sided p of the sign-flip test on cluster totals."""
        return sign_flip_p(np.array(self.totals))

    @property
    def detectable(self) -> float | None:
        """The difference that as many items find with 80 % power at 5 %; None where none of them varies."""
        return (t_quantile(self.df) + t_quantile(self.df, POWER)) * self.error if self.error and self.df else None

    @property
    def above(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low is not None and self.low > 0


def paired_result(differences: Sequence[Difference], weights: Mapping[str, float] | None = None) -> PairedResult:
    """Test the mean of paired differences, each stratum weighted (by default with its number of items).

    Args:
        differences: at least one; their order does not matter.
        weights: stratum -> weight; need not sum to 1.
    """
    strata: dict[str, list[float]] = {}
    for one in differences:
        strata.setdefault(one.stratum, []).append(one.value)
    share = weights or {name: float(len(values)) for name, values in strata.items()}
    mass = math.fsum(share[name] for name in strata)
    means = {name: math.fsum(values) / len(values) for name, values in strata.items()}
    mean = math.fsum(share[name] * means[name] for name in strata) / mass
    totals: dict[str, list[float]] = {}
    residuals: dict[str, dict[str, float]] = {name: {} for name in strata}
    for one in differences:
        w = share[one.stratum] / mass / len(strata[one.stratum])
        totals.setdefault(one.cluster, []).append(w * one.value)
        own = residuals[one.stratum]
        own[one.cluster] = own.get(one.cluster, 0.0) + w * (one.value - means[one.stratum])
    summed = tuple(sorted(map(math.fsum, totals.values())))
    spread = math.fsum(
        share[name] / mass * math.fsum((x - means[name]) ** 2 for x in values) / max(1, len(values) - 1)
        for name, values in strata.items()
    )
    effect = mean / math.sqrt(spread) if spread > 0 else None
    robust = _robust_variance(residuals)
    count, clusters = len(differences), len(totals)
    if robust is None or not any(summed):
        return PairedResult(mean, None, None, effect, None, None, count, clusters, summed)
    variance, df = robust
    error = math.sqrt(variance)
    half = t_quantile(df) * error
    return PairedResult(mean, mean - half, mean + half, effect, error, df, count, clusters, summed)


def paired_figures(differences: Sequence[Difference]) -> dict[str, PairedResult]:
    """The figures of Table 2 of paired differences, strata being subtasks: each cell and average that has its parts."""
    by_subtask: dict[str, list[Difference]] = {}
    for one in differences:
        by_subtask.setdefault(one.stratum, []).append(one)
    figures = figure_weights({name: len(own) for name, own in by_subtask.items()})
    found = {
        key: paired_result([one for name in weights for one in by_subtask[name]], weights)
        for key, weights in figures.items()
        if weights and by_subtask.keys() >= weights.keys()
    }
    if (items := found.get("items_mean")) is not None and items.error is None:  # a subtask of one item says nothing
        found["items_mean"] = paired_result([replace(one, stratum="") for one in differences])
    return found


def _robust_variance(residuals: Mapping[str, Mapping[str, float]]) -> tuple[float, float] | None:
    """The squared standard error of the weighted mean, clusters across strata included, and Satterthwaite's df."""
    if any(len(own) < 2 for own in residuals.values()):
        return None
    sums: dict[str, float] = {}
    parts = []
    for own in residuals.values():
        scale = len(own) / (len(own) - 1)
        parts.append((scale * math.fsum(r * r for r in own.values()), len(own) - 1))
        for cluster, r in own.items():
            sums[cluster] = sums.get(cluster, 0.0) + math.sqrt(scale) * r
    alone = math.fsum(v for v, _ in parts)
    df = alone**2 / math.fsum(v * v / df for v, df in parts) if alone > 0 else float(sum(df for _, df in parts))
    return math.fsum(u * u for u in sums.values()), df


def sign_flip_p(totals: npt.NDArray[np.float64]) -> float:
    """Two-sided p of the test that flips the signs of cluster totals: all flips up to 12 clusters, else 10,000 seeded.

    Drawn flips count the observed one, so that p is never 0.
    """
    totals = totals[totals != 0]
    if not len(totals):
        return 1.0
    least = abs(math.fsum(totals)) * (1 - 1e-12)
    if len(totals) <= _EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(totals) - 1)))
        sums = np.abs(signs @ totals[1:] + totals[0])  # the other half has the same values
        return float((sums >= least).mean())
    rng, reached, rows = np.random.default_rng(0), 0, max(1, _BLOCK // len(totals))
    for start in range(0, FLIPS, rows):
        bits = rng.integers(0, 2, size=(min(rows, FLIPS - start), len(totals)), dtype=np.int8)
        reached += int((np.abs((2 * bits - 1) @ totals) >= least).sum())
    return (reached + 1) / (FLIPS + 1)


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Adjust p values for their number (Holm): each times those that are left, never below the one before."""
    adjusted: dict[Name, float] = {}
    last = 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
        last = adjusted[name] = max(last, min(1.0, (len(p_values) - place) * p))
    return {name: adjusted[name] for name in p_values}


def detectable_difference(sd: float, items: float, df_an_item: float | None = None) -> float:
    """The mean difference that so many items find with 80 % power at 5 %, their differences varying by `sd`.

    `df_an_item`: degrees of freedom by item of a weighted figure; None for items of equal weight.
    """
    df = max(1.0, items - 1 if df_an_item is None else items * df_an_item)
    return (t_quantile(df) + t_quantile(df, POWER)) * sd / math.sqrt(items)


def items_needed(difference: float, sd: float, df_an_item: float | None = None) -> int:
    """How many items find a mean difference; see `detectable_difference`."""
    needed = 2.0
    for _ in range(50):  # t depends on the number that is sought
        needed = max(2.0, needed * (detectable_difference(sd, needed, df_an_item) / difference) ** 2)
    return math.ceil(needed - 1e-9)
