"""Measures of votes with which others' published figures are compared: kappas, and accuracy if ties are broken."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from h2htalk.errors import RoundError
from h2htalk.rounds.aggregation.votes import Vote, VoteResult, VoteTable, tabulate


def fleiss_kappa(votes: Iterable[Vote] | VoteTable) -> float:
    """Return Fleiss' kappa (J. L. Fleiss, Psychological Bulletin 76(5), 1971) of items with equal numbers of votes.

    Returns:
        At most 1; nan if only one label occurs, or there are no votes.

    Raises:
        RoundError: items have different numbers of votes, or one each.
    """
    counts = tabulate(votes).counts()
    if not len(counts):
        return math.nan
    sizes = sorted({int(size) for size in counts.sum(axis=1)})
    if len(sizes) > 1 or sizes[0] < 2:
        numbers = f"{sizes[0]} to {sizes[-1]} votes" if len(sizes) > 1 else "one vote each"
        raise RoundError(
            f"Fleiss' kappa needs items with the same number of votes, two or more; these have {numbers}; use "
            "agreement_of"
        )
    n = sizes[0]
    # Sums of whole numbers do not depend on the order of labels.
    same = int((counts * (counts - 1)).sum())
    totals = counts.sum(axis=0)
    return _beyond_chance(same, len(counts) * n * (n - 1), int((totals**2).sum()), int(totals.sum()) ** 2)


def cohen_kappa(votes: Iterable[Vote] | VoteTable) -> float:
    """Return Cohen's kappa (J. Cohen, Educational and Psychological Measurement 20(1), 1960) of two annotators.

    Returns:
        Over the items of both, at most 1; nan if there are none, or only one label occurs on them.

    Raises:
        RoundError: there are not two annotators.
    """
    table = tabulate(votes)
    if len(table.annotators) != 2:
        raise RoundError(f"Cohen's kappa compares two annotators, not {len(table.annotators)}; use agreement_of")
    # Votes are sorted by item, then annotator: an item of both annotators is two consecutive rows.
    first = np.flatnonzero(table.item[1:] == table.item[:-1])
    one, other = table.label[first], table.label[first + 1]
    labels = len(table.labels)
    chance = int(np.bincount(one, minlength=labels) @ np.bincount(other, minlength=labels))
    return _beyond_chance(int((one == other).sum()), len(first), chance, len(first) ** 2)


def _beyond_chance(same: int, of: int, same_by_chance: int, of_chance: int) -> float:
    """Return (observed - expected) / (1 - expected) of whole numbers; nan if chance alone explains everything."""
    if not of or same_by_chance == of_chance:
        return math.nan
    observed, expected = same / of, same_by_chance / of_chance
    return (observed - expected) / (1 - expected)


def expected_accuracy(results: Mapping[str, VoteResult], gold: Mapping[str, str]) -> float:
    """Return the expected share of right results, 0 to 1, if ties are broken at random.

    Args:
        results: by item.
        gold: item -> right label, at least one. An item without a result counts as wrong.
    """
    right = 0.0
    for item, label in gold.items():
        result = results.get(item)
        if result is not None:
            right += float(label == result.label)
            right += 1 / len(result.tied) if label in result.tied else 0.0
    return right / len(gold)
