"""How far each voter is to be trusted, and how surely that is known: measured on other items against other people.

Dawid and Skene's model (`dawid_skene`) learns voters and truths from the same votes. With few votes a voter, or voters
who are all alike, it finds experts among them by chance and is sure of them. What a round decides by is therefore
measured more carefully. A voter v who met an item on which the others' votes, without v's own, have a majority for k
counts there as having met k; on a gold item, k is the gold label:

    n[v, k, l]   items on which v said l and met k
    p[v, l | k] = (n[v, k, l] + a) / (n[v, k, .] + RIGHT + WRONG)     a: RIGHT where l = k, else WRONG / (K - 1)

An item is judged by the p of its voters on all *other* items. The logarithm of p has the variance
1 / (n[v, k, l] + a) - 1 / (n[v, k, .] + RIGHT + WRONG) (binomial, first order): every lead has its standard error.
The others are wrong at times, so skill comes out rather too low than too high. This is the probability of a majority.

A tie is another matter. That it is one says that the item is hard, and what all voters do alike (miss a rare label,
guess on hard items) then speaks for one side only in the model. What settles a tie is how voters *differ*:

    m[v, k, l]   as n, but what v met is said without those close to v as well (`companions`)
    q[v, l | k] = (sum over u <> v of m[u, k, l] + 1) / (sum over u <> v of m[u, k, .] + K)     the pool of the others
    p[v, l | k] = (m[v, k, l] + POOL q[v, l | k]) / (m[v, k, .] + POOL)                         shrunk to the pool
    evidence for k = sum over the voters of the item of log p[v, l | k] - log q[v, l | k]

with the variance 1 / (m[v, k, l] + POOL q) - 1 / (m[v, k, .] + POOL) a voter, times (M / (M - m[v, k, .]))^2, M being
all votes under k: v's distance to the pool of the others is so many times that to the pool of all. Voters who are all
alike have no evidence, whatever the shares of the labels and however many the items.

Counts are whole numbers and sums are exact in any order (`dawid_skene.summable`): names and rows change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from h2htalk.rounds.companions import without_close
from h2htalk.rounds.dawid_skene import summable
from h2htalk.rounds.vote_table import VoteTable
from h2htalk.rounds.votes import SAME

Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

# What every voter is taken to have done before they are known, in votes: right two times in three; as the others do.
RIGHT, WRONG = 4.0, 2.0
POOL = 6.0
# What settles a tie: standard errors by which the evidence must lead, votes that each voter of the item must have given
# elsewhere under each of the two labels, and the probability of the label. `tools/eval_ties.py` holds the calibration.
LEAD, KNOWN, CLEAR = 2.5, 10, 0.87
# In place of an item's gold label: there is none; nobody ever gave that label.
NO_GOLD, NOT_GIVEN = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Log-likelihood of each item's votes under each label (nats) and its variance, both of shape (items, labels)."""

    sums: Numbers
    variance: Numbers

    def lead(self, row: int, at: int, other: int) -> float:
        """By how much a label leads another."""
        return float(self.sums[row, at] - self.sums[row, other])

    def spread(self, row: int, at: int, other: int) -> float:
        """Variance of that lead."""
        return float(self.variance[row, at] + self.variance[row, other])

    def chances(self, row: int, among: Sequence[int], prior: Numbers) -> list[float]:
        """Probabilities of some labels, their sum 1: each lead counts as far as it is sure (MacKay, 1992)."""
        weights = []
        for at in among:
            odds = [1.0]
            for other in among:
                if other != at:
                    lead = self.lead(row, at, other) + float(prior[row, at] - prior[row, other])
                    sure = math.sqrt(1 + math.pi / 8 * self.spread(row, at, other))
                    odds.append(math.exp(min(-lead / sure, 700)))
            weights.append(1 / math.fsum(odds))
        total = math.fsum(weights)
        return [weight / total for weight in weights]


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What voters known from other items say of each item.

    Attributes:
        labels: sorted; `items`: item -> row.
        votes: evidence of an item's votes as they are.
        beside: evidence of how its voters differ from the others.
        prior: log of how often a label was the majority (or gold) on other items, shape (items, labels).
        known: of an item's voters, the fewest votes under a label that one of them is known by; the same shape.
    """

    labels: tuple[str, ...]
    items: dict[str, int]
    votes: Evidence
    beside: Evidence
    prior: Numbers
    known: Counts

    def chance(self, item: str, label: str) -> float:
        """Probability of a label by an item's votes, 0 to 1; over all labels the sum is 1."""
        everything = range(len(self.labels))
        return self.votes.chances(self.items[item], everything, self.prior)[self.labels.index(label)]

    def settle(self, item: str, tied: Sequence[str], margin: float) -> tuple[str, float] | None:
        """The one of some tied labels that those who are known speak for clearly, and its probability; None: none.

        Args:
            item: that has the tie.
            tied: its leading labels, two at least.
            margin: by which the probability must lead the next, 0 to 1, besides being `CLEAR` and sure.
        """
        (best, label), *rest = sorted(zip(self.between(item, tied), tied, strict=True), reverse=True)
        clear = best >= CLEAR and best - rest[0][0] >= max(margin, SAME)
        sure = clear and all(self.sure(item, label, other) for _, other in rest)
        return (label, best) if sure else None

    def between(self, item: str, tied: Sequence[str]) -> list[float]:
        """Probability of each of some tied labels by how their voters differ from others; the sum is 1."""
        among = [self.labels.index(label) for label in tied]
        return self.beside.chances(self.items[item], among, self.prior)

    def sure(self, item: str, label: str, other: str) -> bool:
        """Whether a label leads another by `LEAD` standard errors, by voters who are all known under both."""
        row, at, against = self.items[item], self.labels.index(label), self.labels.index(other)
        enough = LEAD * math.sqrt(self.beside.spread(row, at, against))
        known = int(min(self.known[row, at], self.known[row, against]))
        return known >= KNOWN and self.beside.lead(row, at, against) > enough


def standing(table: VoteTable, gold: Mapping[str, str] | None = None) -> Standing:
    """Measure voters on a table with at least one vote.

    Args:
        table: the votes, those on gold items too.
        gold: item -> right label, where it is known.

    Returns:
        Memory: some 200 bytes a vote and label, 100 a pair of voters who meet.
    """
    right = _right(table, gold or {})
    others = table.counts()[table.item]
    others[np.arange(len(table)), table.label] -= 1
    heard = _elsewhere(table, _met(others, right[table.item]))
    apart = _elsewhere(table, _met(without_close(table, others), right[table.item]))
    known = np.full((len(table.items), len(table.labels)), np.iinfo(np.int64).max)
    np.minimum.at(known, table.item, apart.under)
    return Standing(
        table.labels,
        {item: at for at, item in enumerate(table.items)},
        _as_voted(table, heard),
        _as_different(table, apart),
        _prior(table, right),
        known,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Elsewhere:
    """Of each vote, what was said by label met on other items than its own; all of shape (votes, labels met).

    Attributes:
        said: times that its voter said what they say here; `under`: times that they said anything.
        pool_said, pool_under: the same of all other voters together.
    """

    said: Counts
    under: Counts
    pool_said: Counts
    pool_under: Counts


def _elsewhere(table: VoteTable, met: Counts) -> _Elsewhere:
    count, items = len(table.labels), len(table.items)
    told = np.flatnonzero(met >= 0)
    counted = np.zeros((len(table.voters), count, count), dtype=np.int64)
    np.add.at(counted, (table.voter[told], met[told], table.label[told]), 1)
    said, under = counted[table.voter, :, table.label], counted.sum(axis=2)[table.voter]
    panel = counted.sum(axis=0)
    all_said, all_under = panel[:, table.label].T.copy(), np.tile(panel.sum(axis=1), (len(table), 1))
    # Without the item itself: the voter's own row is taken out where it had been counted, and everybody else's.
    said[told, met[told]] -= 1
    under[told, met[told]] -= 1
    item_label = table.item * count + table.label
    for k in range(count):
        here = met == k
        all_said[:, k] -= np.bincount(item_label[here], minlength=items * count)[item_label]
        all_under[:, k] -= np.bincount(table.item[here], minlength=items)[table.item]
    return _Elsewhere(said, under, all_said - said, all_under - under)


def _as_voted(table: VoteTable, heard: _Elsewhere) -> Evidence:
    count = len(table.labels)
    own = np.arange(count)[None, :] == table.label[:, None]
    part = heard.said.astype(np.float64) + np.where(own, RIGHT, WRONG / max(count - 1, 1))
    whole = heard.under.astype(np.float64) + (RIGHT + WRONG)
    return Evidence(_by_item(table, _log(part) - _log(whole)), _by_item(table, 1 / part - 1 / whole))


def _as_different(table: VoteTable, apart: _Elsewhere) -> Evidence:
    pool = apart.pool_under.astype(np.float64) + len(table.labels)
    share = (apart.pool_said + 1.0) / pool
    part, whole = apart.said + POOL * share, apart.under + POOL
    variance = (1 / part - 1 / whole) * np.square((pool + apart.under) / pool)
    return Evidence(_by_item(table, _log(part / whole) - _log(share)), _by_item(table, variance))


def _right(table: VoteTable, gold: Mapping[str, str]) -> Counts:
    """Position of each item's gold label."""
    labels = {label: at for at, label in enumerate(table.labels)}
    return np.array(
        [labels.get(gold[item], NOT_GIVEN) if item in gold else NO_GOLD for item in table.items],
        dtype=np.int64,
    )


def _met(counts: Counts, right: Counts) -> Counts:
    """The position of the gold label, else of the one largest count, in each row; negative for a row without one."""
    best = counts.max(axis=1)
    alone = (counts == best[:, None]).sum(axis=1) == 1
    most = np.where(alone & (best > 0), counts.argmax(axis=1), NO_GOLD)
    return np.where(right == NO_GOLD, most, right)


def _prior(table: VoteTable, right: Counts) -> Numbers:
    """Log of the share of other items with a majority for each label, shape (items, labels)."""
    most = _met(table.counts(), right)
    count = len(table.labels)
    own = np.arange(count)[None, :] == most[:, None]
    others: Numbers = (np.bincount(most[most >= 0], minlength=count)[None, :] - own).astype(np.float64)
    return _log(others + 1) - _log(others.sum(axis=1, keepdims=True) + count)


def _log(values: Numbers) -> Numbers:
    """Logarithms, the same for the same value wherever it stands: a vectorised one may differ in the last bit."""
    kinds, at = np.unique(values, return_inverse=True)
    return np.array([math.log(value) for value in kinds.tolist()])[at].reshape(values.shape)


def _by_item(table: VoteTable, values: Numbers) -> Numbers:
    """Sums over the votes of each item, exact in any order; shape (items, labels)."""
    exact = summable(values, int(np.bincount(table.item).max()))
    columns = [np.bincount(table.item, weights=column, minlength=len(table.items)) for column in exact.T]
    return np.stack(columns, axis=1)
