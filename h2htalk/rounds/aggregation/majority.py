"""Majority votes with explicit ties. Renamed or reordered votes give the same result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.rounds.aggregation.vote_table import Vote, VoteTable, tabulate

# Chances that differ by less are a tie. What the arithmetic itself is off by stays below 1e-10 at 100,000 items.
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class VoteResult:
    """What votes say of one item.

    Attributes:
        label: that leads; None for a tie.
        support: votes for it; of a tie, for each leading label (under Dawid-Skene: for the one that has fewest).
        posterior: of the leading label, or of each of the tied: for a majority its share of the item's votes, for
            Dawid-Skene its probability; 0 to 1.
        votes: on the item.
        tied: the leading labels, sorted, where there are several.
        chances: label -> share or probability. A majority names the labels that somebody gave to the item,
            Dawid-Skene all labels of all votes.
    """

    label: str | None
    support: int
    posterior: float
    votes: int
    tied: tuple[str, ...] = ()
    chances: Mapping[str, float] = field(default_factory=dict)


def majority(votes: Iterable[Vote] | VoteTable) -> dict[str, VoteResult]:
    """The label most votes went to, by item (sorted); equal counts are a tie and stay one.

    Args:
        votes: of one question. Equal votes of one annotator on an item count once. No votes: no decisions; an item that
            nobody voted on is in no vote and so in no decision.

    Raises:
        RoundError: an annotator gave an item two labels.
    """
    table = tabulate(votes)
    # Items on which the same counts fell share one decision: there are few kinds, and many items.
    kinds: dict[tuple[int, ...], VoteResult] = {}
    decided = {}
    for item, row in zip(table.items, map(tuple, table.counts().tolist()), strict=True):
        if row not in kinds:
            kinds[row] = _by_count(table.labels, row)
        decided[item] = kinds[row]
    return decided


def _by_count(labels: Sequence[str], counts: Sequence[int]) -> VoteResult:
    total, most = sum(counts), max(counts)
    leading = tuple(label for label, count in zip(labels, counts, strict=True) if count == most)
    chances = {label: count / total for label, count in zip(labels, counts, strict=True) if count}
    return vote_result(leading, most, most / total, total, chances)


def vote_result(
    leading: Sequence[str], support: int, posterior: float, votes: int, chances: Mapping[str, float]
) -> VoteResult:
    if len(leading) == 1:
        return VoteResult(leading[0], support, posterior, votes, (), chances)
    return VoteResult(None, support, posterior, votes, tuple(leading), chances)
