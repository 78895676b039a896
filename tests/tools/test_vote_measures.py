"""Measures of votes: published tables of kappas, and published accuracies of the package's decisions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from votes_made import public_votes

from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import VoteResult, majority

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from vote_measures import expected_accuracy


def f1(decisions: dict[str, VoteResult], gold: dict[str, str], label: str) -> float:
    found = {item for item, decision in decisions.items() if decision.label == label}
    right = {item for item, one in gold.items() if one == label}
    return 2 * len(found & right) / (len(found) + len(right))


@pytest.mark.parametrize(
    ("name", "counted", "ties", "modelled"),
    # Zheng et al., PVLDB 10(5) 2017, Table 6: d_possent Dawid-Skene 96.00, majority 93.31 with random ties.
    [("d_possent", 93.35, 43, 96.0), ("snow_rte", 89.69, 65, 92.75)],
)
def test_published_accuracies(shared_data: Path, name: str, counted: float, ties: int, modelled: float) -> None:
    votes, gold = public_votes(shared_data, name)
    results = majority(votes)
    assert sum(result.label is None for result in results.values()) == ties
    assert round(100 * expected_accuracy(results, gold), 2) == counted
    for iterations in (20, None):
        results = dawid_skene(votes, iterations=iterations)
        assert expected_accuracy(results, gold) == pytest.approx(modelled / 100, abs=1e-12)
        assert name != "d_possent" or round(100 * f1(results, gold, "1"), 2) == 95.66
