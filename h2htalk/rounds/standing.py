"""How far each voter is to be trusted, and how surely that is known: measured on other items against other people.

Dawid and Skene's model (`dawid_skene`) learns voters and truths from the same votes. With few votes a voter, or voters
who are all alike, it finds experts among them by chance and is sure of them. What a round decides by is therefore
measured more carefully. A voter v who met an item on which the others' votes, without v's own, have a majority for k
counts there as having met k:

    n[v, k, l]   items on which v said l and the others' majority was k
    p[v, l | k] = (n[v, k, l] + a) / (n[v, k, .] + RIGHT + WRONG)     a: RIGHT where l = k, else WRONG / (K - 1)

An item is judged by the p of its voters on all *other* items. The logarithm of p has the variance
1 / (n[v, k, l] + a) - 1 / (n[v, k, .] + RIGHT + WRONG) (binomial, first order): every lead has its standard error.
The others are wrong at times, so skill comes out rather too low than too high.

Counts are whole numbers and sums are exact in any order (`dawid_skene.summable`): names and rows change no bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from h2htalk.rounds.dawid_skene import summable
from h2htalk.rounds.vote_table import VoteTable

Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

# What every voter is taken to have done before they are known: right two times in three.
RIGHT, WRONG = 4.0, 2.0
# Standard errors by which the evidence for a tied label must lead, and votes that each of its voters must have given
# elsewhere where the others agreed. Of ties among 20 equal voters (20 votes an item) chance settles one in 20 at 2,
# fewer than one in 100 at 2.5; tests/rounds/test_standing.py holds the calibration.
LEAD, KNOWN = 2.5, 10


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What voters known from other items say of each item.

    Attributes:
        labels: sorted; `items`: item -> row.
        evidence: log-likelihood of an item's votes under each label, shape (items, labels), nats.
        variance: of that, the same shape.
        prior: log of how often a label was the majority on other items, the same shape.
        known: of an item's voters, the fewest votes that one of them is known by; shape (items,).
    """

    labels: tuple[str, ...]
    items: dict[str, int]
    evidence: Numbers
    variance: Numbers
    prior: Numbers
    known: Counts

    def chance(self, item: str, label: str) -> float:
        """Probability of a label, 0 to 1: each lead over another label counts as far as it is sure (MacKay, 1992)."""
        row, at = self.items[item], self.labels.index(label)
        odds = []
        for other in range(len(self.labels)):
            if other != at:
                lead = self._lead(row, at, other) + float(self.prior[row, at] - self.prior[row, other])
                odds.append(
                    math.exp(min(-lead / math.sqrt(1 + math.pi / 8 * self._spread(row, at, other)), 700))
                )
        return 1 / (1 + math.fsum(odds))

    def sure(self, item: str, label: str, other: str) -> bool:
        """Whether the evidence for a label leads another's by `LEAD` standard errors, from voters who are known."""
        row, at, against = self.items[item], self.labels.index(label), self.labels.index(other)
        enough = LEAD * math.sqrt(self._spread(row, at, against))
        return int(self.known[row]) >= KNOWN and self._lead(row, at, against) >= enough

    def _lead(self, row: int, at: int, other: int) -> float:
        return float(self.evidence[row, at] - self.evidence[row, other])

    def _spread(self, row: int, at: int, other: int) -> float:
        return float(self.variance[row, at] + self.variance[row, other])


def standing(table: VoteTable) -> Standing:
    """Measure voters on a table with at least one vote. Memory: some 60 bytes a vote and label."""
    count, votes = len(table.labels), len(table)
    rows = np.arange(votes)
    others = table.counts()[table.item]
    others[rows, table.label] -= 1
    met = _only_most(others)
    counted = np.zeros((len(table.voters), count, count), dtype=np.int64)
    told = met >= 0
    np.add.at(counted, (table.voter[told], met[told], table.label[told]), 1)
    # Without the item itself: the voter's own row is taken out where it had been counted.
    said = counted[table.voter, :, table.label]
    under = counted.sum(axis=2)[table.voter]
    said[rows[told], met[told]] -= 1
    under[rows[told], met[told]] -= 1
    own = np.arange(count)[None, :] == table.label[:, None]
    least = np.where(own, RIGHT, WRONG / max(count - 1, 1)).astype(np.float64)
    part, whole = said + least, under.astype(np.float64) + (RIGHT + WRONG)
    evidence = _by_item(table, _log(part) - _log(whole))
    variance = _by_item(table, 1 / part - 1 / whole)
    known = np.full(len(table.items), np.iinfo(np.int64).max)
    np.minimum.at(known, table.item, under.sum(axis=1))
    return Standing(
        table.labels,
        {item: at for at, item in enumerate(table.items)},
        evidence,
        variance,
        _prior(table),
        known,
    )


def _only_most(counts: Counts) -> Counts:
    """The position of the one largest count in each row; -1 for a row without one."""
    best = counts.max(axis=1)
    alone = (counts == best[:, None]).sum(axis=1) == 1
    return np.where(alone & (best > 0), counts.argmax(axis=1), -1)


def _prior(table: VoteTable) -> Numbers:
    """Log of the share of other items with a majority for each label, shape (items, labels)."""
    most = _only_most(table.counts())
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
