"""Boards: runs of one protocol with their ranks, ties and baselines.

A rank is one more than the number of runs that the paired test shows to be better; runs that it does not tell apart are
tied. The arithmetic (`compare_all_pairs`) takes a matrix of items and runs and knows no run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark import statistics
from h2htalk.benchmark.report.leaderboard import PLACES, by_protocol
from h2htalk.benchmark.report.table2 import TableRow, table_row
from h2htalk.benchmark.sign_flips import EXACT, FLIPS, SIGNS_AT_ONCE, sign_flip_p
from h2htalk.benchmark.statistics import Values, clusters_of, figure_weights, holm
from h2htalk.benchmark.summarize import judged_value
from h2htalk.benchmark.summary import Summary
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.distributions import CONFIDENCE, UPPER
from h2htalk.site.sources import RunSource

ALPHA = 1 - CONFIDENCE
FLIPS_A_PAIR = 100  # Holm multiplies p by the number of pairs, so the least p must fall with it
_SAME = 1e-9  # figures of 0 to 100 that differ by less are equal


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Runs compared on the items that all of them have a value for.

    Attributes:
        figure: `overall` where all subtasks are there, else `items_mean`.
        means: the mean of each run, 0 to 100.
        p: by run and run, two-sided, adjusted by Holm over all pairs.
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


def compare_all_pairs(
    values: Values, subtasks: Sequence[str], clusters: Sequence[str]
) -> AllPairs | None:
    """Compare runs by pairs; None for fewer than two, or where they have no item in common.

    `values`: items x runs, 0 to 1; NaN where an item has none, which leaves it out for all runs. `subtasks` and
    `clusters` are those of the items.
    """
    complete = [int(index) for index in np.flatnonzero(~np.isnan(values).any(axis=1))]
    runs = values.shape[1]
    if runs < 2 or not complete:
        return None
    names = [subtasks[index] for index in complete]
    counts = {name: names.count(name) for name in SUBTASKS if name in names}
    figure = "overall" if len(counts) == len(SUBTASKS) else "items_mean"
    weights = figure_weights(counts)[figure]
    positions = {name: position for position, name in enumerate(counts)}
    subtask_of = np.array([positions[name] for name in names])
    cluster_names = np.array([clusters[index] for index in complete], object)
    distinct, cluster_of = np.unique(cluster_names, return_inverse=True)
    # By subtask and cluster: the sums of each run, and the number of items.
    sums = np.zeros((len(counts), len(distinct), runs))
    sizes = np.zeros((len(counts), len(distinct)))
    np.add.at(sums, (subtask_of, cluster_of), 100 * values[complete])
    np.add.at(sizes, (subtask_of, cluster_of), 1)
    shares = np.array([weights[name] for name in counts]) / math.fsum(weights.values())
    item_weights = shares / sizes.sum(axis=1)
    totals = (item_weights[:, None, None] * sums).sum(axis=0)
    compared = AllPairs(
        figure=figure,
        items=len(complete),
        clusters=len(distinct),
        means=totals.sum(axis=0),
        p=_adjusted_p(totals),
    )
    if len(distinct) < statistics.FEW:
        return compared
    low, high, first = _bootstrap(sums, sizes, shares)
    return replace(compared, low=low, high=high, first=first)


def _adjusted_p(totals: Values) -> Values:
    """Return p of `sign_flip_p` of each pair of columns, adjusted; the same flips serve all pairs."""
    runs = totals.shape[1]
    a, b = np.triu_indices(runs, 1)
    differences = totals[:, a] - totals[:, b]
    differences[np.abs(differences) < _SAME / len(totals)] = 0.0
    rng = np.random.default_rng(0)
    flips = max(FLIPS, FLIPS_A_PAIR * len(a))
    least = np.abs(differences.sum(axis=0)) - _SAME
    reached = np.ones(len(a))
    rows = max(1, SIGNS_AT_ONCE // max(len(totals), len(a)))
    for start in range(0, flips, rows):
        bits = rng.integers(0, 2, size=(min(rows, flips - start), len(totals)), dtype=np.int8)
        sums = (2.0 * bits - 1) @ totals
        reached += (np.abs(sums[:, a] - sums[:, b]) >= least).sum(axis=0)
    p_values = dict(enumerate((reached / (flips + 1)).tolist()))
    for pair, pair_differences in enumerate(differences.T):
        if np.count_nonzero(pair_differences) <= EXACT:
            p_values[pair] = sign_flip_p(pair_differences)
    adjusted = holm(p_values)
    p = np.ones((runs, runs))
    p[a, b] = p[b, a] = [adjusted[pair] for pair in range(len(a))]
    return p


def _bootstrap(sums: Values, sizes: Values, shares: Values) -> tuple[Values, Values, Values | None]:
    """Return `low`, `high` and `first` by draws of clusters: seeded, and the same clusters for all runs."""
    _, n, runs = sums.shape
    rng = np.random.default_rng(0)
    draws = rng.multinomial(n, np.full(n, 1 / n), statistics.DRAWS).astype(np.float64)
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


# `7B`, `0.5b`, `135M`; not `8x7B`, `A3B`, `E2B`, `4bit`, `128K`. `1M` may be a length of context, so M has two digits.
_BILLIONS = re.compile(r"(?<![A-Za-z0-9.,])([0-9]{1,4}(?:\.[0-9]{1,3})?)[Bb](?![A-Za-z0-9])")
_MILLIONS = re.compile(r"(?<![A-Za-z0-9.,])([0-9]{2,4})[Mm](?![A-Za-z0-9])")
_CLASSES = (
    (1.0, "<1B"),
    (8.0, "1-8B"),
    (32.0, "8-31B"),
    (math.inf, "32B+"),
)  # the paper's, and one below


def size_of(model: str) -> float | None:
    """Read a model's number of parameters, in billions, from its name; None where the name states none, or two."""
    billions = {float(number) for number in _BILLIONS.findall(model)}
    sizes = billions or {float(number) / 1000 for number in _MILLIONS.findall(model)}
    return next(iter(sizes)) or None if len(sizes) == 1 else None


def size_class(size: float | None) -> str | None:
    """Return the size class of the paper's Table 2; `<1B` for those below its smallest."""
    return None if size is None else next(name for end, name in _CLASSES if size < end)


@dataclass(frozen=True, slots=True)
class Entry:
    """A run on its board.

    `rank`, `first` and `column` (in `AllPairs`) are None where it is not ranked; `tied` are the labels of ranked runs
    that the test does not tell it apart from.
    """

    source: RunSource
    row: TableRow
    size: float | None
    rank: int | None = None
    first: float | None = None
    tied: tuple[str, ...] = ()
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """Runs of one protocol, best first; `figure` is the key of the column that ranks them."""

    number: int
    summary: Summary  # of one of its runs: the split, the measure and the protocol are those of all
    figure: str
    entries: tuple[Entry, ...]
    baselines: tuple[TableRow, ...]
    compared: AllPairs | None


def boards_of(sources: Sequence[RunSource]) -> list[Board]:
    """Group runs by protocol and rank each group; the largest group is the first board."""
    by_summary: dict[int, RunSource] = {}
    summaries: list[Summary] = []
    for source in sources:
        summary = source.run.summary
        if summary.measure != "s":  # J needs S
            summary = summary.without_judgements()
            source = replace(source, run=replace(source.run, summary=summary))
        summaries.append(summary)
        by_summary[id(summary)] = source
    groups = sorted(
        by_protocol(summaries),
        key=lambda members: (-len(members), members[0].signature.fingerprint),
    )
    boards = []
    for number, members in enumerate(groups, 1):
        boards.append(_board(number, [by_summary[id(summary)] for summary in members]))
    return boards


def _board(number: int, members: Sequence[RunSource]) -> Board:
    """Rank runs of one protocol; they come by label, which breaks ties."""
    rows = {}
    baselines = []
    for member in members:
        summary = member.run.summary
        rows[member.key] = replace(table_row(summary), model=member.label)
        baselines += [table_row(summary, name) for name in summary.baselines]
    competing = [
        member
        for member in members
        if rows[member.key].complete and rows[member.key].source == "run"
    ]
    compared = compare_all_pairs(*_matrix(competing)) if len(competing) > 1 else None
    figure = "items_mean"
    values = [row.value("overall") for row in rows.values() if row.complete]
    if compared:
        figure = compared.figure
    elif values and None not in values:
        figure = "overall"
    entries = {}
    for member in members:
        entries[member.key] = Entry(
            source=member, row=rows[member.key], size=size_of(member.run.summary.model)
        )
    if compared is not None:
        for column, member in enumerate(competing):
            ties = np.flatnonzero(~compared.apart[column])
            labels = [competing[index].label for index in ties if index != column]
            first = None if compared.first is None else float(compared.first[column])
            entries[member.key] = replace(
                entries[member.key],
                rank=compared.ranks[column],
                first=first,
                tied=tuple(labels),
                column=column,
            )
    best = sorted(
        entries.values(),
        key=lambda e: (e.rank or math.inf, not e.row.complete, -(e.row.value(figure) or 0)),
    )
    different = {(row.model, row.cells.get(figure)): row for row in reversed(baselines)}
    references = sorted(
        different.values(), key=lambda row: (-(row.value(figure) or 0.0), row.model)
    )
    return Board(
        number=number,
        summary=members[0].run.summary,
        figure=figure,
        entries=tuple(best),
        baselines=tuple(references),
        compared=compared,
    )


def _matrix(members: Sequence[RunSource]) -> tuple[Values, list[str], list[str]]:
    """The values of all items, in the order of their ids, with the subtask and the cluster of each."""
    scenarios: dict[str, Scenario] = {}
    for member in members:
        scenarios |= {scenario.id: scenario for scenario in member.run.data.split.scenarios}
    items = [scenarios[name] for name in sorted(scenarios)]
    values = np.full((len(items), len(members)), math.nan)
    for column, member in enumerate(members):
        summary = member.run.summary
        for row, item in enumerate(items):
            score = member.run.item_scores.get(item.id)
            if score is None:
                continue
            if summary.judged:
                value = judged_value(item, score)
            else:
                value = getattr(score, summary.measure)
            if value is not None:
                values[row, column] = value
    clusters = clusters_of(items)
    return values, [item.subtask for item in items], [clusters[item.id] for item in items]
