"""Runs compared by pairs: p of the paired test, ranks, and how sure the first three are.

A rank is one more than the number of runs that the paired test shows to be better; runs that it does not tell apart can
share one. The leaderboard (in each column) and the site rank by this rule. p is adjusted for all pairs and for the
figures of a column's family, as `compare` adjusts it. The functions take a matrix of items and runs, and know no run.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark.statistics.averages import present_figures
from h2htalk.benchmark.statistics.paired_tests import family_of, holm
from h2htalk.benchmark.statistics.rank_correlation import DRAWS, FEW
from h2htalk.benchmark.statistics.sign_flips import (
    EXACT,
    FLIPS,
    SIGNS_AT_ONCE,
    Values,
    flipped_products,
    sign_flip_p,
)
from h2htalk.distributions import CONFIDENCE, UPPER
from h2htalk.progress import counted_items

ALPHA = 1 - CONFIDENCE
FLIPS_A_TEST = 100  # Holm multiplies p by the number of tests, so the least p must fall with it
PLACES = 3  # of which `first` gives the probability, and which tables mark
_SAME = 1e-9  # figures of 0 to 100 that differ by less are equal


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Runs compared on the items that all of them have a value for.

    Attributes:
        figure: `overall` where all subtasks are there, else `items_mean`.
        means: the mean of each run, 0 to 100.
        p: by run and run, two-sided, adjusted by Holm over all pairs and, in columns, over the figures of a family.
        low, high: by run and run, the 95 % interval of the row's mean minus the column's by the bootstrap of clusters;
            None with fewer than ten clusters, as is `first`.
        first: the probability of each run to be among the first three by the same draws; runs that share the last place
            share what is left of it. None where no more than three runs are compared.
    """

    figure: str
    items: int
    clusters: int
    means: Values
    p: Values
    low: Values | None = None
    high: Values | None = None
    first: Values | None = None

    @property
    def apart(self) -> npt.NDArray[np.bool_]:
        """Run x run: whether the test tells them apart."""
        return self.p < ALPHA

    @property
    def ranks(self) -> list[int]:
        """One more than the number of runs that are shown to be better."""
        better = self.apart & (self.means[:, None] > self.means[None, :])
        return [1 + int(number) for number in better.sum(axis=0)]

    @property
    def pairs(self) -> tuple[int, int]:
        """How many pairs are told apart, and how many there are."""
        runs = len(self.means)
        return int(self.apart.sum()) // 2, runs * (runs - 1) // 2


@dataclass(frozen=True, slots=True)
class _Items:
    """Items that all runs have a value for: `values` (items x runs, 0 to 1), and of each its subtask and cluster."""

    values: Values
    subtasks: Sequence[str]
    clusters: Sequence[str]


@dataclass(frozen=True, slots=True)
class _ClusterSums:
    """A figure's items by subtask and cluster: the sums of each run, and the number of items."""

    sums: Values
    sizes: Values
    shares: Values  # of each subtask in the figure

    @property
    def totals(self) -> Values:
        """What each cluster adds to the figure of each run."""
        item_weights = self.shares / self.sizes.sum(axis=1)
        return np.asarray((item_weights[:, None, None] * self.sums).sum(axis=0))


def compare_all_pairs(
    values: Values, subtasks: Sequence[str], clusters: Sequence[str]
) -> AllPairs | None:
    """Compare runs by pairs; None for fewer than two, or where they have no item in common.

    `values`: items x runs, 0 to 1; NaN where an item has none, which leaves it out for all runs. `subtasks` and
    `clusters` are those of the items.
    """
    items = _common_items(values, subtasks, clusters)
    if items is None:
        return None
    figures = present_figures(Counter(items.subtasks))
    figure = _headline(figures)
    summed = _sum_figure(items, figures[figure])
    totals = summed.totals
    p_values = _pair_p_values(totals, figures=1)
    compared = _compared(figure, summed, totals, holm(p_values))
    if compared.clusters < FEW:
        return compared
    low, high, first = _bootstrap(summed.sums, summed.sizes, summed.shares)
    return replace(compared, low=low, high=high, first=first)


def rank_by_figure(
    figures: Collection[str], values: Values, subtasks: Sequence[str], clusters: Sequence[str]
) -> dict[str, list[int]]:
    """Rank runs in those figures of Table 2 that their items have, by the tests and families of `compare`.

    Returns figure -> the rank of each run; empty for fewer than two runs, or where they have no item in common.
    """
    items = _common_items(values, subtasks, clusters)
    if items is None:
        return {}
    weights = present_figures(Counter(items.subtasks))
    headline = _headline(weights)
    families: dict[str, list[str]] = defaultdict(list)
    for figure in figures:
        if figure in weights:
            families[family_of(figure, headline)].append(figure)
    ranks = {}
    for members in counted_items("ranking runs", list(families.values())):
        summed = {figure: _sum_figure(items, weights[figure]) for figure in members}
        totals = {figure: summed[figure].totals for figure in members}
        p_values = {}
        for figure in members:
            pairs = _pair_p_values(totals[figure], figures=len(members))
            for pair, p in pairs.items():
                p_values[figure, pair] = p
        adjusted = holm(p_values)
        for figure in members:
            of_figure = {pair: p for (name, pair), p in adjusted.items() if name == figure}
            compared = _compared(figure, summed[figure], totals[figure], of_figure)
            ranks[figure] = compared.ranks
    return ranks


def _headline(figures: Collection[str]) -> str:
    return "overall" if "overall" in figures else "items_mean"


def _common_items(
    values: Values, subtasks: Sequence[str], clusters: Sequence[str]
) -> _Items | None:
    """The items that all runs have a value for; None without any, or for fewer than two runs."""
    complete = [int(index) for index in np.flatnonzero(~np.isnan(values).any(axis=1))]
    if values.shape[1] < 2 or not complete:
        return None
    return _Items(
        values=values[complete],
        subtasks=[subtasks[index] for index in complete],
        clusters=[clusters[index] for index in complete],
    )


def _sum_figure(items: _Items, weights: Mapping[str, float]) -> _ClusterSums:
    """Sum a figure's items by subtask and cluster; `weights`: of each subtask in it."""
    members = [index for index, name in enumerate(items.subtasks) if name in weights]
    positions = {name: position for position, name in enumerate(weights)}
    subtask_of = np.array([positions[items.subtasks[index]] for index in members])
    cluster_names = np.array([items.clusters[index] for index in members], object)
    distinct, cluster_of = np.unique(cluster_names, return_inverse=True)
    sums = np.zeros((len(weights), len(distinct), items.values.shape[1]))
    sizes = np.zeros((len(weights), len(distinct)))
    np.add.at(sums, (subtask_of, cluster_of), 100 * items.values[members])
    np.add.at(sizes, (subtask_of, cluster_of), 1)
    shares = np.array(list(weights.values())) / math.fsum(weights.values())
    return _ClusterSums(sums=sums, sizes=sizes, shares=shares)


def _compared(
    figure: str, summed: _ClusterSums, totals: Values, adjusted: Mapping[int, float]
) -> AllPairs:
    """Runs compared in a figure; `adjusted`: p by the number of the pair."""
    runs = totals.shape[1]
    a, b = np.triu_indices(runs, 1)
    p = np.ones((runs, runs))
    p[a, b] = p[b, a] = [adjusted[pair] for pair in range(len(a))]
    return AllPairs(
        figure=figure,
        items=int(summed.sizes.sum()),
        clusters=len(totals),
        means=totals.sum(axis=0),
        p=p,
    )


def _pair_p_values(totals: Values, figures: int) -> dict[int, float]:
    """Return p of `sign_flip_p` of each pair of columns, by its number; the same flips serve all pairs.

    `figures`: how many figures p is adjusted for together, beside all pairs.
    """
    runs = totals.shape[1]
    a, b = np.triu_indices(runs, 1)
    differences = totals[:, a] - totals[:, b]
    differences[np.abs(differences) < _SAME / len(totals)] = 0.0
    rng = np.random.default_rng(0)
    flips = max(FLIPS, FLIPS_A_TEST * len(a) * figures)
    least = np.abs(differences.sum(axis=0)) - _SAME
    reached = np.ones(len(a))
    rows = max(1, SIGNS_AT_ONCE // max(len(totals), len(a)))
    for start in range(0, flips, rows):
        bits = rng.integers(0, 2, size=(min(rows, flips - start), len(totals)), dtype=np.int8)
        sums = flipped_products(2.0 * bits - 1, totals)  # type: ignore[arg-type]
        reached += np.concatenate(_count_reached(sums, least))
    p_values = dict(enumerate((reached / (flips + 1)).tolist()))
    for pair, pair_differences in enumerate(differences.T):
        # One pair has p by the very flips of `compare`.
        if runs == 2 or np.count_nonzero(pair_differences) <= EXACT:
            p_values[pair] = sign_flip_p(pair_differences)
    return p_values


def _count_reached(sums: Values, least: Values) -> list[npt.NDArray[np.int64]]:
    """Count the flips that bring each pair's difference to its `least`; run by run is faster than all at once."""
    counts = []
    start = 0
    for run in range(sums.shape[1]):
        differences = np.abs(sums[:, run + 1 :] - sums[:, [run]])
        end = start + differences.shape[1]
        counts.append((differences >= least[start:end]).sum(axis=0))
        start = end
    return counts


def _bootstrap(sums: Values, sizes: Values, shares: Values) -> tuple[Values, Values, Values | None]:
    """Return `low`, `high` and `first` by draws of clusters: seeded, and the same clusters for all runs."""
    _, n, runs = sums.shape
    rng = np.random.default_rng(0)
    draws = rng.multinomial(n, np.full(n, 1 / n), DRAWS).astype(np.float64)
    items = draws @ sizes.T
    # A small subtask may be in no draw: the others then stand for it, in all runs alike.
    weights = np.where(items > 0, shares, 0.0)
    sums_of_draws = np.tensordot(draws, sums, (1, 1))
    weighted = sums_of_draws * (weights / np.maximum(items, 1))[:, :, None]
    figures = np.round(weighted.sum(axis=1) / weights.sum(axis=1, keepdims=True), 9)
    rows = figures[:, :, None]
    columns = figures[:, None, :]
    low, high = np.quantile(rows - columns, (1 - UPPER, UPPER), axis=0)
    if runs <= PLACES:
        return low, high, None
    above = (columns > rows).sum(axis=2)
    level = (columns == rows).sum(axis=2)
    return low, high, np.clip((PLACES - above) / level, 0, 1).mean(axis=0)
