"""Who says the same as whom more often than others do: people by whom a voter is better not measured.

The others' majority says what a voter met (`standing`). Where one of the others copies the voter, or the two copy a
third, that majority has the voter's own word in it, and they prove each other right. Of all pairs v, u who met on
t[v, u] items and said the same on s[v, u] of them, u is close to v where

    s[v, u] - t[v, u] r > CLOSE sqrt(t[v, u] r (1 - r)),    r = (sum of s[v, w] over w <> u + 1) / (the same of t + 2)

(CLOSE standard errors more than the rest of those who meet v), or where v met nobody but u. On an item with t votes, v
is measured without the closest t / 2 - 1 people, one at least and `CLOSE_MOST` at most: as many as can stand on v's
side of a tie there. Good voters among poor ones are close as well, but leaving out a few of them costs little. Where
those who copy are half of every panel, votes alone cannot tell who copies whom: they and the honest then look alike.
Of more than `CLOSE_MOST` + 1 who copy, some are measured by others of them.

Counts are whole numbers, equals have one rank: names and rows change no bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from h2htalk.rounds.vote_table import VoteTable

Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

# Standard errors, and people at most: all allies in a tie of eight votes. Without more of them, good voters among poor
# ones would be measured by the poor alone (of 20 votes an item, half of the ties that can be settled would not be).
CLOSE, CLOSE_MOST = 2.0, 3


def without_close(table: VoteTable, others: Counts) -> Counts:
    """The others' votes on each vote's item by label, without those of the people close to its voter.

    Args:
        table: with at least one vote.
        others: by vote and label, the votes of everybody else on its item.

    Returns:
        The same shape.
    """
    (close, rank), kept, voters = _close(table), others.copy(), len(table.voters)
    if not len(close):
        return kept
    allies = np.bincount(table.item) // 2 - 1
    most = np.clip(allies, 1, CLOSE_MOST)[table.item]
    for first, second in _pairs(table):
        for mine, theirs in ((first, second), (second, first)):
            pair = table.voter[mine] * voters + table.voter[theirs]
            at = np.minimum(np.searchsorted(close, pair), len(close) - 1)
            near = (close[at] == pair) & (rank[at] < most[mine])
            kept[mine[near], table.label[theirs[near]]] -= 1
    return kept


def _close(table: VoteTable) -> tuple[Counts, Counts]:
    """Pairs (v, u) in which u is close to v, each as v * voters + u, sorted; and how many are closer to v."""
    voters = len(table.voters)
    found = [np.empty((3, 0), dtype=np.int64)]
    for first, second in _pairs(table):
        pair, at = np.unique(table.voter[first] * voters + table.voter[second], return_inverse=True)
        same = np.bincount(at[table.label[first] == table.label[second]], minlength=len(pair))
        found.append(np.stack([pair, np.bincount(at), same]))
    pairs, times, same = np.concatenate(found, axis=1)
    pair, at = np.unique(pairs, return_inverse=True)
    one, other = np.divmod(pair, voters)
    who, whom = np.append(one, other), np.append(other, one)
    # Weights of bincount are floats; counts below 2^53 stay whole.
    times, same = (np.tile(np.bincount(at, part, len(pair)), 2) for part in (times, same))
    rest = np.bincount(who, times, voters)[who] - times
    usual = (np.bincount(who, same, voters)[who] - same + 1) / (rest + 2)
    beyond = (same - times * usual) / np.sqrt(times * usual * (1 - usual))
    beyond[rest == 0] = np.inf
    near = np.flatnonzero(beyond > CLOSE)
    key, rank = (who * voters + whom)[near], _rank(who, beyond)[near]
    order = np.argsort(key)
    return key[order], rank[order]


def _rank(who: Counts, values: Numbers) -> Counts:
    """How many larger values the same person has: equal values have one rank, so that no name decides."""
    order = np.lexsort((-values, who))
    person, value, at = who[order], values[order], np.arange(len(who))
    begins = np.append(True, person[1:] != person[:-1])[: len(who)]
    differs = begins | np.append(True, value[1:] != value[:-1])[: len(who)]
    rank = np.empty_like(at)
    rank[order] = np.maximum.accumulate(np.where(differs, at, 0)) - np.maximum.accumulate(
        np.where(begins, at, 0)
    )
    return rank


def _pairs(table: VoteTable) -> Iterator[tuple[Counts, Counts]]:
    """Rows of all pairs of votes on one item, each pair once, a share at a time."""
    for step in range(1, len(table)):
        first = np.flatnonzero(table.item[:-step] == table.item[step:])
        if not len(first):
            return
        yield first, first + step
