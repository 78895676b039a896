"""Majority votes with explicit ties, independent of the names and the order of votes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.rounds.aggregation.vote_table import Vote, VoteTable, tabulate

# Probabilities that differ by less are a tie. Rounding errors stay below 1e-10 at 100,000 items.
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class VoteResult:
    """The result of the votes on one item.

    Attributes:
        label: the leading label; None for a tie.
        support: votes for it; of a tie, for each leading label (under Dawid-Skene: the smallest number).
        posterior: of the leading label, or of each tied one: its share of the votes (majority) or its probability
            (Dawid-Skene); 0 to 1.
        votes: number of votes on the item.
        tied: the leading labels, sorted, if there are several.
        chances: label -> share or probability; a majority has the labels given to the item, Dawid-Skene all labels.
    """

    label: str | None
    support: int
    posterior: float
    votes: int
    tied: tuple[str, ...] = ()
    chances: Mapping[str, float] = field(default_factory=dict)


def majority(votes: Iterable[Vote] | VoteTable) -> dict[str, VoteResult]:
    """Return the most frequent label of each item that has votes, sorted by item; equal counts are a tie.

    Args:
        votes: of one question. Equal votes of one annotator on an item count once.

    Raises:
        RoundError: an annotator gave an item two labels.
    """
    table = tabulate(votes)
    # Items with the same counts share one result: there are few kinds of counts, and many items.
    by_counts: dict[tuple[int, ...], VoteResult] = {}
    results = {}
    for item, row in zip(table.items, map(tuple, table.counts().tolist()), strict=True):
        if row not in by_counts:
            by_counts[row] = _count_result(table.labels, row)
        results[item] = by_counts[row]
    return results


def _count_result(labels: Sequence[str], counts: Sequence[int]) -> VoteResult:
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
