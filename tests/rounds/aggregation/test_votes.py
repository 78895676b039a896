"""Results of votes: published values, ties, and independence of names and order."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from votes_made import vote_lists, votes_of

from h2htalk.errors import RoundError
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import Vote, VoteResult, majority

ITERATIONS = st.sampled_from([20, None])


@settings(deadline=None)
@given(vote_lists())
def test_majority_equals_a_count(votes: list[Vote]) -> None:
    decisions = majority(votes)
    assert set(decisions) == {vote.item for vote in votes}
    for item, decision in decisions.items():
        labels = [vote.label for vote in votes if vote.item == item]
        leading = sorted({label for label in labels if labels.count(label) == max(map(labels.count, labels))})
        assert [decision.label] == leading if len(leading) == 1 else list(decision.tied) == leading
        shares = {label: labels.count(label) / len(labels) for label in labels}
        assert (decision.support, decision.votes) == (labels.count(leading[0]), len(labels))
        assert decision.posterior == pytest.approx(shares[leading[0]])
        assert {label: share for label, share in decision.chances.items() if share} == pytest.approx(shares)


def plain_dawid_skene(votes: list[Vote], rounds: int) -> dict[str, dict[str, float]]:
    """The published recipe with dictionaries and loops: item -> label -> probability."""
    labels = sorted({vote.label for vote in votes})
    items = sorted({vote.item for vote in votes})
    annotators = sorted({vote.annotator for vote in votes})
    begin = {(k, l): 0.7 if k == l else 0.3 / (len(labels) - 1) for k in labels for l in labels}  # noqa: E741
    conf = {(v, k, l): begin[k, l] for v in annotators for k, l in begin}  # noqa: E741
    prior = {k: 1 / len(labels) for k in labels}
    chance: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for i in items:
            said = [(vote.annotator, vote.label) for vote in votes if vote.item == i]
            product = {k: prior[k] * math.prod(conf[v, k, l] for v, l in said) for k in labels}  # noqa: E741
            chance[i] = {k: product[k] / sum(product.values()) for k in labels}
        prior = {k: sum(chance[i][k] for i in items) / len(items) for k in labels}
        for v in annotators:
            theirs = [vote for vote in votes if vote.annotator == v]
            for k in labels:
                met = sum(chance[vote.item][k] for vote in theirs)
                for l in labels:  # noqa: E741
                    heard = sum(chance[vote.item][k] for vote in theirs if vote.label == l)
                    conf[v, k, l] = heard / met if met else begin[k, l]
    return chance


@settings(deadline=None)
@given(vote_lists(), st.integers(1, 8))
def test_chances_equal_those_of_a_plain_implementation(votes: list[Vote], rounds: int) -> None:
    if len({vote.label for vote in votes}) < 2:
        return
    decisions = dawid_skene(votes, iterations=rounds)
    for item, chances in plain_dawid_skene(votes, rounds).items():
        assert dict(decisions[item].chances) == pytest.approx(chances, abs=1e-9)


@given(vote_lists(labels="ab"), ITERATIONS)
def test_ties_do_not_depend_on_rounding_errors(votes: list[Vote], iterations: int | None) -> None:
    # Every vote has a mirror image: neighbouring annotators and the labels are exchanged on a mirrored item. Then
    # the two annotators of the tie are equivalent, but iterations would magnify the rounding errors of inexact sums.
    partner = {f"v{at}": f"v{at ^ 1}" for at in range(8)}
    flip = {"a": "b", "b": "a"}
    mirrored = [Vote(f"z{vote.item}", partner[vote.annotator], flip[vote.label]) for vote in votes]
    tie = [Vote("m", "v0", "a"), Vote("m", "v1", "b")]
    decision = dawid_skene([*votes, *mirrored, *tie], iterations=iterations)["m"]
    assert (decision.label, decision.tied, decision.posterior) == (None, ("a", "b"), 0.5)


def test_initial_accuracy_without_anything_to_learn_from() -> None:
    assert dawid_skene(votes_of("a a\na ."))["item-01"] == VoteResult("a", 1, 1.0, 1, (), {"a": 1.0})
    for iterations in (20, None):
        decisions = dawid_skene(votes_of("a\na\nb"), iterations=iterations)
        assert [decision.label for decision in decisions.values()] == ["a", "a", "b"]
        assert [decision.posterior for decision in decisions.values()] == pytest.approx([0.7] * 3)


def test_two_labels_of_one_annotator_on_an_item_are_an_error() -> None:
    votes = [*votes_of("a b\nb b"), Vote("item-01", "annotator-00", "a")]
    for decide in (majority, dawid_skene):
        with pytest.raises(RoundError, match=r"item 'item-01': annotator 'annotator-00' gave two labels; keep one"):
            decide(votes)


@given(vote_lists(labels="abcd"), ITERATIONS, st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(votes: list[Vote], iterations: int | None, rng: random.Random) -> None:
    def renamed(names: set[str]) -> dict[str, str]:
        new = [f"{number}" for number in range(len(names))]
        rng.shuffle(new)
        return dict(zip(sorted(names), new, strict=True))

    items = renamed({vote.item for vote in votes})
    annotators = renamed({vote.annotator for vote in votes})
    labels = renamed({vote.label for vote in votes})
    others = [Vote(items[vote.item], annotators[vote.annotator], labels[vote.label]) for vote in votes]
    rng.shuffle(others)
    _same(majority(votes), majority(others), items, labels)
    results = (dawid_skene(one, iterations=iterations) for one in (votes, others))
    _same(*results, items, labels)


def _same(
    one: dict[str, VoteResult], other: dict[str, VoteResult], items: dict[str, str], labels: dict[str, str]
) -> None:
    assert {items[item] for item in one} == set(other)
    for item, decision in one.items():
        twin = other[items[item]]
        assert twin.label == (None if decision.label is None else labels[decision.label])
        assert twin.tied == tuple(sorted(labels[label] for label in decision.tied))
        assert (twin.support, twin.posterior, twin.votes) == (decision.support, decision.posterior, decision.votes)
        assert twin.chances == {labels[label]: chance for label, chance in decision.chances.items()}
