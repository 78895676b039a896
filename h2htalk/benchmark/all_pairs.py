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
        return _ranks_of(_shown_better(self.means, self.p))

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
        totals = {figure: _sum_figure(items, weights[figure]).totals for figure in members}
        adjusted = _rejectable_p_values(totals)
        for figure in members:
            better = _shown_better(totals[figure].sum(axis=0), adjusted[figure])
            ranks[figure] = _ranks_of(better)
    return ranks


def _shown_better(means: Values, p: Values) -> npt.NDArray[np.bool_]:
    """Run x run: whether the row's run is shown to be better; `p`: adjusted, by run and run."""
    return (p < ALPHA) & (means[:, None] > means[None, :])


def _ranks_of(better: npt.NDArray[np.bool_]) -> list[int]:
    """One more than the number of runs that are shown to be better."""
    return [1 + int(number) for number in better.sum(axis=0)]


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
    p_values = [adjusted[pair] for pair in range(len(adjusted))]
    return AllPairs(
        figure=figure,
        items=int(summed.sizes.sum()),
        clusters=len(totals),
        means=totals.sum(axis=0),
        p=_by_run_and_run(p_values, totals.shape[1]),
    )


def _by_run_and_run(p_values: Sequence[float], runs: int) -> Values:
    """Return p of each pair, in the order of `np.triu_indices`, as a symmetric matrix with 1 on its diagonal."""
    a, b = np.triu_indices(runs, 1)
    p = np.ones((runs, runs))
    p[a, b] = p_values
    p[b, a] = p_values
    return p


def _pair_p_values(totals: Values, figures: int) -> dict[int, float]:
    """Return p of `sign_flip_p` of each pair of columns, by its number; the same flips serve all pairs.

    `figures`: how many figures p is adjusted for together, beside all pairs.
    """
    tests = _PairTests(totals, figures)
    while tests.is_open:
        tests.flip()
    return dict(enumerate(tests.p_values.tolist()))


def _rejectable_p_values(totals: Mapping[str, Values]) -> dict[str, Values]:
    """Return the adjusted p of each figure's pairs, by run and run, exact below `ALPHA`; of all others 1 or exact.

    The pairs of all figures are adjusted together (Holm), and flips are counted for those alone that can still be told
    apart. Where Holm keeps E pairs, it rejects none whose p is ALPHA / (E + 1) or more, as it multiplies p of a
    rejected pair by more than E. p only grows while flips are counted; so each pair that is kept lowers the limit of
    the others.
    """
    tests = {figure: _PairTests(values, len(totals)) for figure, values in totals.items()}
    while any(of_figure.is_open for of_figure in tests.values()):
        for of_figure in tests.values():
            of_figure.flip()
        limit = _kept_limit([of_figure.p_values for of_figure in tests.values()])
        for of_figure in tests.values():
            of_figure.keep(limit)
    p_values = {}
    for figure, of_figure in tests.items():
        for pair, p in enumerate(of_figure.p_values.tolist()):
            p_values[figure, pair] = p
    adjusted = holm(p_values)
    matrices = {}
    for figure, values in totals.items():
        pairs = range(len(tests[figure].p_values))
        of_pairs = [adjusted[figure, pair] for pair in pairs]
        matrices[figure] = _by_run_and_run(of_pairs, values.shape[1])
    return matrices


def _kept_limit(p_values: Sequence[Values]) -> float:
    """Return the p from which on Holm rejects none, where these are no more than the p of the tests."""
    falling = np.sort(np.concatenate(p_values))[::-1]
    is_kept = falling * np.arange(1, len(falling) + 1) >= ALPHA
    number = len(falling) if is_kept.all() else int(np.argmin(is_kept))
    return ALPHA / (number + 1)


class _PairTests:
    """The sign-flip tests of all pairs of runs in one figure, of which some flips are counted.

    Attributes:
        p_values: p of each pair, not adjusted; what it is at least while its flips are counted.
    """

    def __init__(self, totals: Values, figures: int) -> None:
        """`totals`: what each cluster adds to each run; `figures`: how many figures p is adjusted for together."""
        self._totals = totals
        self._first, self._second = np.triu_indices(totals.shape[1], 1)
        pairs = len(self._first)
        differences = totals[:, self._first] - totals[:, self._second]
        differences[np.abs(differences) < _SAME / len(totals)] = 0.0
        self._least = np.abs(differences.sum(axis=0)) - _SAME
        self._flips = max(FLIPS, FLIPS_A_TEST * pairs * figures)
        self._flipped = 0
        self._rows = max(1, SIGNS_AT_ONCE // max(len(totals), pairs))
        self._rng = np.random.default_rng(0)
        self._reached = np.ones(pairs)
        self._counted = np.ones(pairs, bool)
        self.p_values = self._reached / (self._flips + 1)
        for pair, of_pair in enumerate(differences.T):
            # One pair has p by the very flips of `compare`.
            if pairs == 1 or np.count_nonzero(of_pair) <= EXACT:
                self._counted[pair] = False
                self.p_values[pair] = sign_flip_p(of_pair)
        self._group()

    def _group(self) -> None:
        """Group the pairs whose flips are counted by their first run."""
        counted = np.flatnonzero(self._counted)
        first_of_run = np.searchsorted(self._first[counted], np.arange(self._totals.shape[1]))
        self._counted_of_runs = np.split(counted, first_of_run[1:])

    @property
    def is_open(self) -> bool:
        """Whether flips are left that somebody needs."""
        return self._flipped < self._flips and bool(self._counted.any())

    def flip(self) -> None:
        """Count some more flips for the pairs that need them."""
        if not self.is_open:
            return
        rows = min(self._rows, self._flips - self._flipped)
        bits = self._rng.integers(0, 2, size=(rows, len(self._totals)), dtype=np.int8)
        products = flipped_products(2.0 * bits - 1, self._totals)  # type: ignore[arg-type]
        sums = np.ascontiguousarray(products.T)
        for run, of_run in enumerate(self._counted_of_runs):
            # Run by run is faster than all pairs at once, and rows of flips faster than columns.
            differences = sums[self._second[of_run]]
            differences -= sums[run]
            np.abs(differences, out=differences)
            is_reached = differences >= self._least[of_run, None]
            self._reached[of_run] += np.count_nonzero(is_reached, axis=1)
        self._flipped += rows
        counted = self._counted
        self.p_values[counted] = self._reached[counted] / (self._flips + 1)

    def keep(self, limit: float) -> None:
        """Count no more flips for pairs whose p is `limit` or more."""
        is_kept = self._counted & (self.p_values >= limit)
        if is_kept.any():
            self._counted &= ~is_kept
            self._group()


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
