"""Votes to decisions: majority with explicit ties, and Dawid-Skene. Renamed or reordered votes decide the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from h2htalk.rounds.aggregation.vote_table import Vote, VoteTable, tabulate

__all__ = [
    "Decision",
    "Recipe",
    "Vote",
    "VoteTable",
    "dawid_skene",
    "expected_accuracy",
    "majority",
    "tabulate",
]

Recipe = Literal["converged", "vldb"]
# Chances that differ by less are a tie. What the arithmetic itself is off by stays below 1e-10 at 100,000 items.
SAME = 1e-9
VLDB_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Decision:
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


def majority(votes: Iterable[Vote] | VoteTable) -> dict[str, Decision]:
    """The label most votes went to, by item (sorted); equal counts are a tie and stay one.

    Args:
        votes: of one question. Equal votes of one voter on an item count once. No votes: no decisions; an item that
            nobody voted on is in no vote and so in no decision.

    Raises:
        RoundError: a voter gave an item two labels.
    """
    table = tabulate(votes)
    # Items on which the same counts fell share one decision: there are few kinds, and many items.
    kinds: dict[tuple[int, ...], Decision] = {}
    decided = {}
    for item, row in zip(table.items, map(tuple, table.counts().tolist()), strict=True):
        if row not in kinds:
            kinds[row] = _by_count(table.labels, row)
        decided[item] = kinds[row]
    return decided


def _by_count(labels: Sequence[str], counts: Sequence[int]) -> Decision:
    total, most = sum(counts), max(counts)
    leading = tuple(label for label, count in zip(labels, counts, strict=True) if count == most)
    chances = {label: count / total for label, count in zip(labels, counts, strict=True) if count}
    return _decision(leading, most, most / total, total, chances)


def dawid_skene(
    votes: Iterable[Vote] | VoteTable,
    *,
    rounds: int | None = None,
    recipe: Recipe = "converged",
    smoothing: float = 0.0,
    tolerance: float = 1e-7,
) -> dict[str, Decision]:
    """The likeliest label when each voter's reliability is learned from all votes, by item (sorted).

    Every voter begins as right with a chance of 0.7, labels as equally frequent; nothing is drawn at random. With one
    voter the posterior stays 0.7, with one label in all votes it is 1: there is nothing to learn from. A voter with
    few votes may seem infallible; `smoothing=1` tempers that.

    Args:
        votes: as for `majority`.
        rounds: exactly so many rounds of expectation and maximisation, 1 or more, in place of what the recipe says.
        recipe: `vldb` is the published one, 20 rounds (Zheng et al., PVLDB 10(5), 2017), whose figures it repeats;
            `converged` goes on until a round gains less than `tolerance`, at most 1,000 rounds.
        smoothing: votes of each kind that every voter is taken to have given besides (Dirichlet), 0 or more.
        tolerance: gain of log-likelihood a vote, in nats. With smoothing the prior's part counts as well.

    Returns:
        Probabilities within 1e-9 of each other are a tie. Renamed voters or labels and shuffled rows change no bit.

    Raises:
        RoundError: a voter gave an item two labels.
        ValueError: an argument out of range.
    """
    if (
        (rounds is not None and rounds < 1)
        or not 0 <= smoothing < math.inf
        or not tolerance > 0
        or recipe not in ("converged", "vldb")
    ):
        raise ValueError(
            "dawid_skene: rounds >= 1, smoothing >= 0, tolerance > 0, recipe 'converged' or 'vldb'"
        )
    table = tabulate(votes)
    if not len(table):
        return {}
    from h2htalk.rounds.aggregation.dawid_skene import fit

    if rounds is None and recipe == "vldb":
        rounds = VLDB_ROUNDS
    chances = fit(table, rounds, smoothing, tolerance).chances.T.tolist()
    decided = {}
    for item, counts, likely in zip(table.items, table.counts().tolist(), chances, strict=True):
        best = max(likely)
        leading = [at for at, chance in enumerate(likely) if best - chance <= SAME]
        named = tuple(table.labels[at] for at in leading)
        by_label = dict(zip(table.labels, likely, strict=True))
        decided[item] = _decision(named, min(counts[at] for at in leading), best, sum(counts), by_label)
    return decided


def _decision(
    leading: Sequence[str], support: int, posterior: float, votes: int, chances: Mapping[str, float]
) -> Decision:
    if len(leading) == 1:
        return Decision(leading[0], support, posterior, votes, (), chances)
    return Decision(None, support, posterior, votes, tuple(leading), chances)


def expected_accuracy(decisions: Mapping[str, Decision], gold: Mapping[str, str]) -> float:
    """Share of gold items decided rightly, 0 to 1, when a fair coin breaks ties: the exact expectation, no draw.

    Args:
        decisions: by item.
        gold: item -> right label, at least one. An item that was not decided counts as wrong.
    """
    right = 0.0
    for item, label in gold.items():
        decision = decisions.get(item)
        if decision is not None:
            right += float(label == decision.label)
            right += 1 / len(decision.tied) if label in decision.tied else 0.0
    return right / len(gold)
