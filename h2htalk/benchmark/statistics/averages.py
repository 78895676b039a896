"""Statistics of scores: intervals, the bootstrap by cluster, the averages of Table 2, paired tests."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import fmean
from typing import TypeVar

import numpy as np

from h2htalk.benchmark.statistics.estimates import Estimate, without_value
from h2htalk.benchmark.statistics.sign_flips import EQUAL, SignFlips, Values, sign_flips
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.distributions import UPPER, Interval, t_quantile, wilson_interval, z_quantile
from h2htalk.text.contracts.memory_blocks import is_null_memory

RULE = "wilson-t-1"
_LEAST_EXPONENT = -1021  # of a float with all its digits
_PRIOR = 2.0  # degrees of freedom of the pooled variance


@dataclass(frozen=True, slots=True)
class SampleMean:
    """A mean of `n` values in [0, 1], with its squared standard error and degrees of freedom.

    What an interval is computed from, and the weighted mean of several means.
    """

    value: float
    variance: float
    df: float
    n: int

    def interval(self) -> Interval:
        """Wilson's interval with effective n and t, in [0, 1]."""
        # A cosine may be below zero, and so may the mean of a few.
        m = min(1.0, max(0.0, self.value))
        effective = max(self.n, m * (1 - m) / self.variance) if self.variance > 0 else self.n
        return wilson_interval(m, effective, t_quantile(self.df))


def mean_of(values: Sequence[float]) -> SampleMean | None:
    """The mean of values; None for fewer than two, whose variance is not known."""
    n = len(values)
    if n < 2:
        return None
    value = math.fsum(values) / n
    return SampleMean(value, math.fsum((x - value) ** 2 for x in values) / (n - 1) / n, n - 1, n)


def weighted_mean(means: Sequence[SampleMean], weights: Sequence[float]) -> SampleMean:
    """The weighted mean of independent means, with Satterthwaite's degrees of freedom; weights need not sum to 1.

    The variance of each mean's values is moved towards the pooled one, which counts for two values more (Smyth 2004):
    a cell whose seven items agree by chance would make an average that it dominates look certain.
    """
    total = math.fsum(weights)
    pooled = math.fsum(m.variance * m.n * m.df for m in means) / math.fsum(m.df for m in means)
    parts = [
        (
            (w / total) ** 2 * (m.variance * m.n * m.df + _PRIOR * pooled) / (m.df + _PRIOR) / m.n,
            m.df,
        )
        for m, w in zip(means, weights, strict=True)
    ]
    variance = math.fsum(part for part, _ in parts)
    # Where nothing varies, the number of values alone says how sure the mean is.
    df = (
        1 / math.fsum((part / variance) ** 2 / df for part, df in parts)
        if variance > 0
        else sum(m.df for m in means)
    )
    value = math.fsum(w * mean.value for mean, w in zip(means, weights, strict=True)) / total
    return SampleMean(value, variance, df, 1 if variance > 0 else sum(mean.n for mean in means))


def rate_interval(hits: float, n: float) -> Interval:
    """Wilson's interval of a rate, in [0, 1]; `n` above 0, hits from 0 to n."""
    return wilson_interval(hits / n, n)


def clusters_of(scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Item -> the first id of its cluster. A reference that is the null line is shared by chance and ties nothing."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    ids = []
    for scenario in scenarios:
        ids.append(scenario.id)
        # Ids sort before what is shared, and so become the roots.
        shared = [("history", "\n".join(f"{turn.role}: {turn.content}" for turn in scenario.turns))]
        shared += [(key, str(scenario.provenance.get(key) or "")) for key in ("dialogue", "family")]
        shared += [
            ("text", text)
            for text in scenario.references
            if not is_null_memory(text, scenario.language)
        ]
        for node in shared:
            if node[1]:
                one, other = sorted((root(("", scenario.id)), root(node)))
                parent[other] = one
    return {item: root(("", item))[1] for item in ids}


def design_effect(values: Sequence[float], clusters: Sequence[str]) -> float:
    """Return how much larger the variance of a mean is because items of a cluster resemble each other; 1 or more.

    Where all values are the same, a cluster counts for one.
    """
    mean = fmean(values)
    totals = dict.fromkeys(clusters, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        totals[cluster] += value - mean
    square = math.fsum((value - mean) ** 2 for value in values)
    number = len(values)
    groups = len(totals)
    if not square:
        return number / groups
    among = math.fsum(total**2 for total in totals.values()) * groups / max(1, groups - 1)
    within = square * number / (number - 1)
    return max(1.0, among / within)


FEW = 10  # draws of fewer clusters repeat too few of them
DRAWS = 1000
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
        rows = max(1, _WEIGHTS_AT_ONCE // clusters)
        even = np.full(clusters, 1 / clusters)
        counts = (
            rng.multinomial(clusters, even, min(rows, DRAWS - n)) for n in range(0, DRAWS, rows)
        )
        found = np.concatenate([statistic(one.astype(float)) for one in counts])
        low, high = np.nanquantile(found, (1 - UPPER, UPPER))
    return Estimate(value, float(low), float(high), items, items)


def clustered_slope(
    clusters: Sequence[str], x: Sequence[float], y: Sequence[float]
) -> PairedResult | None:
    """The slope of y on x within clusters (each has its own level); None where x varies in no cluster."""
    _, at = np.unique(np.array(clusters), return_inverse=True)
    sides = (np.array(own, float) for own in (x, y))
    dx, dy = (own - (np.bincount(at, own) / np.bincount(at))[at] for own in sides)
    products, squares = (np.bincount(at, dx * own).astype(np.float64) for own in (dy, dx))
    varying = squares > 0
    if not varying.any():
        return None
    sums = products[varying]
    weights = squares[varying]
    slope = float(sums.sum() / weights.sum())
    mass = weights.sum()
    totals = tuple((sums / mass).tolist())
    shares = tuple((weights / mass).tolist())
    return PairedResult(slope, None, None, None, len(x), len(sums), totals, shares)


MIN_PAIRS = 4  # pairs or clusters of an interval: Fisher's z has the variance of n - 3 pairs


def rank_correlation(runs: Sequence[tuple[Sequence[str], Values]]) -> Estimate:
    """Correlate within runs, and average over them; of each run the cluster of each unit, and two rows of values.

    The interval is the percentile one of 1,000 seeded draws of clusters, the same clusters in each run; `closed_form`'s
    for fewer than ten clusters, and where no draw differs (1 or -1).
    """
    names = {
        name: at
        for at, name in enumerate(sorted({name for clusters, _ in runs for name in clusters}))
    }
    parts = [(np.array([names[name] for name in clusters]), a, b) for clusters, (a, b) in runs]

    def mean(weights: Values) -> Values:
        return np.asarray(
            np.nanmean([_spearman(a, b, weights[:, at]) for at, a, b in parts], axis=0)
        )

    pairs = sum(len(at) for at, _, _ in parts)
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
    a, b = (_mid_ranks(side, weights) for side in (x, y))
    a, b = (
        side - (side * weights).sum(1, keepdims=True) / weights.sum(1, keepdims=True)
        for side in (a, b)
    )
    return np.asarray(
        (weights * a * b).sum(1) / np.sqrt((weights * a * a).sum(1) * (weights * b * b).sum(1))
    )


def _mid_ranks(values: Values, weights: Values) -> Values:
    """Ranks of the drawn units by row of weights; ties share their mean rank."""
    _, group = np.unique(values, return_inverse=True)
    counts = np.zeros((group.max() + 2, len(weights)))
    np.add.at(counts, group + 1, weights.T)
    upto = counts.cumsum(0)
    return np.asarray(((upto[:-1] + upto[1:] + 1) / 2)[group].T)


Row = Mapping[str, Estimate]  # of Table 2, by the figures of `figure_weights`


# Of an item: its group (a subtask or a tag), and a value in [0, 1] or None.
Value = tuple[str, float | None]


def figure_weights(items: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The figures of Table 2 as weights of subtasks; `items`: subtask -> number of scored items, of those asked.

    Returns subtask -> weight by subtask, `<dimension>_avg` (the plain mean of cells), `overall` (of all subtasks, with
    Table 1's counts), `items_mean` (over the scored items) and `plain_mean` (of the existing cells); each subtask must
    have a value, but for one of weight 0.
    """
    asked = [name for name in SUBTASKS if name in items]
    figures: dict[str, dict[str, float]] = {name: {name: 1.0} for name in asked}
    for dimension in DIMENSIONS:
        parts = [name for name in SUBTASKS if SUBTASKS[name].dimension == dimension]
        if any(name in items for name in parts):
            figures[f"{dimension}_avg"] = dict.fromkeys(parts, 1.0)
    figures["overall"] = {name: float(SUBTASKS[name].count) for name in SUBTASKS}
    figures["items_mean"] = {name: float(items[name]) for name in asked}
    figures["plain_mean"] = dict.fromkeys(asked, 1.0)
    return figures


def present_figures(items: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Return those of `figure_weights` of which every subtask has items."""
    figures = figure_weights(items)
    return {
        key: weights
        for key, weights in figures.items()
        if weights and items.keys() >= weights.keys()
    }


def aggregate(values: Iterable[Value]) -> Row:
    """Average the values of one measure by subtask to a row of Table 2. Row order never matters."""
    by_group, means = _cells(values)
    cells = {name: by_group[name] for name in SUBTASKS if name in by_group}
    row = dict(cells)
    for key, weights in figure_weights({name: cell.n for name, cell in cells.items()}).items():
        if key not in cells:
            row[key] = _average(weights, cells, means)
    return row


def aggregate_slices(values: Iterable[Value]) -> dict[str, Estimate]:
    """Average the values of each group (an emotion, a complexity, an interaction), in alphabetical order."""
    cells, _ = _cells(values)
    return dict(sorted(cells.items()))


def _cells(values: Iterable[Value]) -> tuple[dict[str, Estimate], dict[str, SampleMean]]:
    """The cell of each group, and the mean behind it where at least two items are scored."""
    groups = defaultdict[str, list[float | None]](list)
    cells = {}
    means = {}
    for group, value in values:
        groups[group].append(value)
    for name, own in groups.items():
        scored = [value for value in own if value is not None]
        if (mean := mean_of(scored)) is not None:
            means[name] = mean
            cells[name] = _cell(mean, len(scored), len(own))
        else:
            cells[name] = Estimate(
                100 * scored[0] if scored else None, None, None, len(scored), len(own)
            )
    return cells, means


def _cell(mean: SampleMean, n: int, total: int) -> Estimate:
    low, high = mean.interval()
    return Estimate(100 * mean.value, 100 * low, 100 * high, n, total)


def _average(
    weights: Mapping[str, float], cells: Mapping[str, Estimate], means: Mapping[str, SampleMean]
) -> Estimate:
    """Return the weighted mean of cells; it has no value, or no interval, when one of the cells has none (a cell of
    one item would otherwise count as certain)."""
    here = [cells[name] for name in weights if name in cells]
    parts = {name: w for name, w in weights.items() if w > 0}
    n = sum(cell.n for cell in here)
    total = sum(cell.total for cell in here)
    if len(here) < len(weights) or not parts or None in [cells[name].value for name in parts]:
        return without_value(n, total)
    if means.keys() >= parts.keys():
        return _cell(weighted_mean([means[name] for name in parts], list(parts.values())), n, total)
    value = math.fsum(w * (cells[name].value or 0.0) for name, w in parts.items()) / math.fsum(
        parts.values()
    )
    return Estimate(value, None, None, n, total)


@dataclass(frozen=True, slots=True)
class NullClass:
    """Precision, recall and F1 of the null line, 0 to 100; None where nothing was (or should have been) null.

    `references`, `answers` and `hits` count items with a null reference, a null answer, and both; an item with several
    samples counts by their share.
    """

    precision: Estimate
    recall: Estimate
    f1: Estimate
    references: int
    answers: float
    hits: float


def null_class(pairs: Iterable[tuple[float, bool]], total: int) -> NullClass:
    """From `(share of null answers, the reference is null)` of each scored item of `total` asked, in any order.

    Precision and recall have Wilson's interval of a rate; F1 that of J, the share of items that are null in both
    among those that are in either, since F1 = 2J / (1 + J).
    """
    listed = list(pairs)
    answers = math.fsum(share for share, _ in listed)
    references = sum(null for _, null in listed)
    hits = math.fsum(share for share, null in listed if null)

    def cell(hits: float, of: float, change: Callable[[float], float] = float) -> Estimate:
        if not of:
            return without_value(len(listed), total)
        value = 100 * change(hits / of)
        if len(listed) < 2:
            return Estimate(value, None, None, 1, total)
        low, high = (100 * change(rate) for rate in rate_interval(hits, of))
        return Estimate(value, low, high, len(listed), total)

    f1 = cell(hits, answers + references - hits, lambda j: 2 * j / (1 + j))
    return NullClass(cell(hits, answers), cell(hits, references), f1, references, answers, hits)


Name = TypeVar("Name")
POWER = 0.8
MIN_CLUSTERS = 6  # of an interval: with fewer, no sign-flip test reaches p .05


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
        return (
            (t_quantile(self.df) + t_quantile(self.df, POWER)) * self.error
            if self.error and self.df
            else None
        )


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
    for one in differences:
        strata[one.stratum].append(one.value)
    share = weights or {name: float(len(values)) for name, values in strata.items()}
    mass = math.fsum(share[name] for name in strata)
    means = {name: math.fsum(values) / len(values) for name, values in strata.items()}
    mean = math.fsum(share[name] * means[name] for name in strata) / mass
    totals = defaultdict[str, list[float]](list)
    shares = defaultdict[str, list[float]](list)
    residuals = {name: defaultdict[str, float](float) for name in strata}
    for one in differences:
        w = share[one.stratum] / mass / len(strata[one.stratum])
        totals[one.cluster].append(w * one.value)
        shares[one.cluster].append(w)
        residuals[one.stratum][one.cluster] += w * (one.value - means[one.stratum])
    # Sorted, so that the order of the items does not matter.
    parts_of_mean = sorted(
        (math.fsum(own), math.fsum(shares[cluster])) for cluster, own in totals.items()
    )
    summed = tuple(total for total, _ in parts_of_mean)
    deviations = {name: [x - means[name] for x in values] for name, values in strata.items()}
    unit = _unit(x for values in deviations.values() for x in values)
    spread = math.fsum(
        share[name] / mass * math.fsum((x / unit) ** 2 for x in values) / max(1, len(values) - 1)
        for name, values in deviations.items()
    )
    deviation = math.sqrt(spread) * unit
    noise = EQUAL * max(abs(difference.value) for difference in differences)
    result = PairedResult(
        mean=mean,
        effect=mean / deviation if deviation > noise else None,
        error=None,
        df=None,
        items=len(differences),
        clusters=len(totals),
        totals=summed,
        shares=tuple(weight for _, weight in parts_of_mean),
    )
    if any(len(own) < 2 for own in residuals.values()) or not any(summed):
        return result
    sums = defaultdict[str, float](float)
    parts = []
    unit = _unit(r for own in residuals.values() for r in own.values())
    for own in residuals.values():
        scale = len(own) / (len(own) - 1)
        in_units = {cluster: r / unit for cluster, r in own.items()}
        parts.append((scale * math.fsum(r * r for r in in_units.values()), len(own) - 1))
        for cluster, r in in_units.items():  # a cluster may lie in several strata
            sums[cluster] += math.sqrt(scale) * r
    error = unit * math.sqrt(math.fsum(u * u for u in sums.values()))
    alone = math.fsum(v for v, _ in parts)
    # Satterthwaite's degrees of freedom.
    df = (
        alone**2 / math.fsum(v * v / df for v, df in parts)
        if alone > 0
        else float(sum(df for _, df in parts))
    )
    return replace(result, error=error if error > noise else 0.0, df=df)


def paired_figures(differences: Sequence[Difference]) -> dict[str, PairedResult]:
    """The figures of Table 2 of paired differences, strata being subtasks: each cell and average that has its parts."""
    by_subtask = defaultdict[str, list[Difference]](list)
    for one in differences:
        by_subtask[one.stratum].append(one)
    results = {}
    for key, weights in _figures_of(by_subtask).items():
        members = list(chain.from_iterable(by_subtask[name] for name in weights))
        results[key] = paired_result(members, weights)
    over_items = results.get("items_mean")
    if over_items is not None and over_items.error is None:  # a subtask of one item says nothing
        pooled = [replace(difference, stratum="") for difference in differences]
        results["items_mean"] = paired_result(pooled)
    return results


def _figures_of(by_subtask: Mapping[str, Sized]) -> dict[str, dict[str, float]]:
    return present_figures({name: len(members) for name, members in by_subtask.items()})


def figure_means(values: Sequence[Difference]) -> dict[str, float]:
    """Return the means of the figures of `paired_figures`, without a test, which takes most of their time."""
    by_subtask = defaultdict[str, list[float]](list)
    for one in values:
        by_subtask[one.stratum].append(one.value)
    means = {name: math.fsum(own) / len(own) for name, own in by_subtask.items()}
    figures = {}
    for key, weights in _figures_of(by_subtask).items():
        weighted = math.fsum(weight * means[name] for name, weight in weights.items())
        figures[key] = weighted / math.fsum(weights.values())
    return figures


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Adjust p values for their number (Holm): each times those that are left, never below the one before."""
    adjusted = dict(p_values)
    last = 0.0
    for place, name in enumerate(sorted(adjusted, key=p_values.__getitem__)):
        last = adjusted[name] = max(last, min(1.0, (len(p_values) - place) * p_values[name]))
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
        needed = max(
            2.0, needed * (detectable_difference(sd, needed, df_an_item) / difference) ** 2
        )
    return math.ceil(needed - 1e-9)
