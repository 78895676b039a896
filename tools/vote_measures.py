"""Measures of votes with which others' published figures are compared: kappa, and accuracy if ties are broken."""

from __future__ import annotations

from collections.abc import Mapping

from h2htalk.rounds.aggregation.votes import VoteResult, VoteTable


def fleiss_kappa(votes: VoteTable) -> float:
    """Return Fleiss' kappa (J. L. Fleiss, Psychological Bulletin 76(5), 1971); each item has equally many votes."""
    counts = votes.counts()
    n = int(counts[0].sum())
    observed = (counts * (counts - 1)).sum() / (len(counts) * n * (n - 1))
    expected = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    return float((observed - expected) / (1 - expected))


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
            if label in result.tied:
                right += 1 / len(result.tied)
    return right / len(gold)
