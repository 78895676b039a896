"""Boards: runs of one protocol with their ranks, ties and baselines.

A rank is one more than the number of runs that the paired test shows to be better; runs that it does not tell apart are
tied. The arithmetic (`contest`) takes a matrix of items and runs and knows no run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark import statistics
from h2htalk.benchmark.judge.judgements import judged_value
from h2htalk.benchmark.report.leaderboard import PLACES, by_protocol
from h2htalk.benchmark.report.table2 import TableRow, table_row
from h2htalk.benchmark.statistics import Values, clusters_of, figure_weights, holm, sign_flip_p
from h2htalk.benchmark.summary import Summary
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.distributions import CONFIDENCE, UPPER
from h2htalk.site.sources import RunSource

ALPHA = 1 - CONFIDENCE
FLIPS_A_PAIR = 100  # Holm multiplies p by the number of pairs, so the least p must fall with it
_SAME = 1e-9  # figures of 0 to 100 that differ by less are equal


@dataclass(frozen=True, slots=True)
class Contest:
    """Runs compared on the items that all of them have a value for.

    `figure`: `overall` where all subtasks are there, else `items_mean`; `means`: of each run, 0 to 100. By run and run:
    `p`, two-sided, adjusted by Holm over all pairs, and `low` and `high`, the 95 % interval of the row's mean minus the
    column's by the bootstrap of clusters. `first`: the probability of each run to be among the first three by the same
    draws; runs that share the last place share what is left of it; None where no more than three compete. There is no
    bootstrap with fewer than ten clusters.
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


def contest(values: Values, subtasks: Sequence[str], clusters: Sequence[str]) -> Contest | None:
    """Compare runs by pairs; None for fewer than two, or where they have no item in common.

    `values`: items x runs, 0 to 1; NaN where an item has none, which leaves it out for all runs. `subtasks` and
    `clusters` are those of the items.
    """
    known = [int(at) for at in np.flatnonzero(~np.isnan(values).any(axis=1))]
    if values.shape[1] < 2 or not len(known):
        return None
    names = [subtasks[k] for k in known]
    counts = {name: names.count(name) for name in SUBTASKS if name in names}
    figure = "overall" if len(counts) == len(SUBTASKS) else "items_mean"
    weights, place = figure_weights(counts)[figure], {name: at for at, name in enumerate(counts)}
    found, of_cluster = np.unique(np.array([clusters[k] for k in known], object), return_inverse=True)
    at = np.array([place[name] for name in names]), of_cluster
    # By subtask and cluster: the sums of each run, and the number of items.
    sums, sizes = np.zeros((len(counts), len(found), values.shape[1])), np.zeros((len(counts), len(found)))
    np.add.at(sums, at, 100 * values[known])
    np.add.at(sizes, at, 1)
    shares = np.array([weights[name] for name in counts]) / math.fsum(weights.values())
    totals = ((shares / sizes.sum(axis=1))[:, None, None] * sums).sum(axis=0)
    drawn = (None, None, None) if len(found) < statistics.FEW else _bootstrap(sums, sizes, shares)
    return Contest(figure, len(known), len(found), totals.sum(axis=0), _adjusted_p(totals), *drawn)


def _adjusted_p(totals: Values) -> Values:
    """Return p of `sign_flip_p` of each pair of columns, adjusted; the same flips serve all pairs."""
    runs = totals.shape[1]
    a, b = np.triu_indices(runs, 1)
    differences = totals[:, a] - totals[:, b]
    differences[np.abs(differences) < _SAME / len(totals)] = 0.0
    rng, flips = np.random.default_rng(0), max(statistics.FLIPS, FLIPS_A_PAIR * len(a))
    least, reached = np.abs(differences.sum(axis=0)) - _SAME, np.ones(len(a))
    rows = max(1, statistics.SIGNS_AT_ONCE // max(len(totals), len(a)))
    for start in range(0, flips, rows):
        bits = rng.integers(0, 2, size=(min(rows, flips - start), len(totals)), dtype=np.int8)
        sums = (2.0 * bits - 1) @ totals
        reached += (np.abs(sums[:, a] - sums[:, b]) >= least).sum(axis=0)
    exact = {k: sign_flip_p(own) for k, own in enumerate(differences.T) if np.count_nonzero(own) <= statistics.EXACT}
    adjusted, found = holm(dict(enumerate((reached / (flips + 1)).tolist())) | exact), np.ones((runs, runs))
    found[a, b] = found[b, a] = [adjusted[k] for k in range(len(a))]
    return found


def _bootstrap(sums: Values, sizes: Values, shares: Values) -> tuple[Values, Values, Values | None]:
    """Return `low`, `high` and `first` by draws of clusters: seeded, and the same clusters for all runs."""
    _, n, runs = sums.shape
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), statistics.DRAWS).astype(np.float64)
    items = drawn @ sizes.T
    weights = shares * (items > 0)  # a small subtask may be in no draw: the others then stand for it, in all runs alike
    parts = np.tensordot(drawn, sums, (1, 1)) * (weights / np.maximum(items, 1))[:, :, None]
    figures = np.round(parts.sum(axis=1) / weights.sum(axis=1, keepdims=True), 9)
    own, others = figures[:, :, None], figures[:, None, :]
    low, high = np.quantile(own - others, (1 - UPPER, UPPER), axis=0)
    if runs <= PLACES:
        return low, high, None
    above, level = (others > own).sum(axis=2), (others == own).sum(axis=2)
    return low, high, np.clip((PLACES - above) / level, 0, 1).mean(axis=0)


# `7B`, `0.5b`, `135M`; not `8x7B`, `A3B`, `E2B`, `4bit`, `128K`. `1M` may be a length of context, so M has two digits.
_BILLIONS = re.compile(r"(?<![A-Za-z0-9.,])([0-9]{1,4}(?:\.[0-9]{1,3})?)[Bb](?![A-Za-z0-9])")
_MILLIONS = re.compile(r"(?<![A-Za-z0-9.,])([0-9]{2,4})[Mm](?![A-Za-z0-9])")
_CLASSES = ((1.0, "<1B"), (8.0, "1-8B"), (32.0, "8-31B"), (math.inf, "32B+"))  # the paper's, and one below


def size_of(model: str) -> float | None:
    """Read a model's number of parameters, in billions, from its name; None where the name states none, or two."""
    billions = {float(found) for found in _BILLIONS.findall(model)}
    sizes = billions or {float(found) / 1000 for found in _MILLIONS.findall(model)}
    return next(iter(sizes)) or None if len(sizes) == 1 else None


def size_class(size: float | None) -> str | None:
    """Return the size class of the paper's Table 2; `<1B` for those below its smallest."""
    return None if size is None else next(name for end, name in _CLASSES if size < end)


@dataclass(frozen=True, slots=True)
class Entry:
    """A run on its board. `rank`, `first` and `place` (in the contest) are None where it is not ranked; `tied` are the
    labels of ranked runs that the test does not tell it apart from."""

    source: RunSource
    row: TableRow
    size: float | None
    rank: int | None = None
    first: float | None = None
    tied: tuple[str, ...] = ()
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """Runs of one protocol, best first; `figure` is the key of the column that ranks them."""

    number: int
    summary: Summary  # of one of its runs: the split, the measure and the protocol are those of all
    figure: str
    entries: tuple[Entry, ...]
    baselines: tuple[TableRow, ...]
    contest: Contest | None


def boards_of(sources: Sequence[RunSource]) -> list[Board]:
    """Group runs by protocol and rank each group; the largest group is the first board."""
    summaries = [one.run.summary for one in sources]
    shown = [one if one.measure == "s" else one.without_judgements() for one in summaries]  # J needs S
    known = {id(own): replace(one, run=replace(one.run, summary=own)) for one, own in zip(sources, shown, strict=True)}
    groups = sorted(by_protocol(shown), key=lambda members: (-len(members), members[0].signature.fingerprint))
    return [_board(at, [known[id(own)] for own in members]) for at, members in enumerate(groups, 1)]


def _board(number: int, members: Sequence[RunSource]) -> Board:
    rows = {one.key: replace(table_row(one.run.summary), model=one.label) for one in members}
    # Members come by label, which breaks ties below.
    competing = [one for one in members if rows[one.key].complete and rows[one.key].source == "run"]
    found = contest(*_matrix(competing)) if len(competing) > 1 else None
    values = [row.value("overall") for row in rows.values() if row.complete]
    figure = found.figure if found else "overall" if values and None not in values else "items_mean"
    entries = {one.key: Entry(one, rows[one.key], size_of(one.run.summary.model)) for one in members}
    if found is not None:
        for place, one in enumerate(competing):
            tied = tuple(own.label for at, own in enumerate(competing) if at != place and not found.apart[place, at])
            first = None if found.first is None else float(found.first[place])
            entries[one.key] = replace(entries[one.key], rank=found.ranks[place], first=first, tied=tied, place=place)
    best = sorted(entries.values(), key=lambda e: (e.rank or math.inf, not e.row.complete, -(e.row.value(figure) or 0)))
    baselines = [table_row(one.run.summary, name) for one in members for name in one.run.summary.baselines]
    different = {(row.model, row.cells.get(figure)): row for row in reversed(baselines)}.values()
    below = sorted(different, key=lambda row: (-(row.value(figure) or 0.0), row.model))
    return Board(number, members[0].run.summary, figure, tuple(best), tuple(below), found)


def _matrix(members: Sequence[RunSource]) -> tuple[Values, list[str], list[str]]:
    """The values of all items, in the order of their ids, with the subtask and the cluster of each."""
    scenarios = {one.id: one for member in members for one in member.run.data.split.scenarios}
    items = [scenarios[name] for name in sorted(scenarios)]
    values = np.full((len(items), len(members)), math.nan)
    for column, run in enumerate(member.run for member in members):
        for row, item in enumerate(items):
            if (score := run.item_scores.get(item.id)) is not None:
                value = judged_value(item, score) if run.summary.judged else getattr(score, run.summary.measure)
                values[row, column] = math.nan if value is None else value
    clusters = clusters_of(items)
    return values, [item.subtask for item in items], [clusters[item.id] for item in items]
