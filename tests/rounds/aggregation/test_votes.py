"""Results of votes and agreement: published values, ties, intervals, and independence of names and order."""

from __future__ import annotations

import math
import random
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from votes_made import public_votes, vote_lists, votes_of

from h2htalk.errors import RoundError
from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import Vote, VoteResult, majority
from h2htalk.rounds.questions import Level

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


def test_initial_accuracy_and_one_label_an_annotator() -> None:
    assert dawid_skene(votes_of("a a\na ."))["item-01"] == VoteResult("a", 1, 1.0, 1, (), {"a": 1.0})
    for iterations in (20, None):
        decisions = dawid_skene(votes_of("a\na\nb"), iterations=iterations)
        assert [decision.label for decision in decisions.values()] == ["a", "a", "b"]
        assert [decision.posterior for decision in decisions.values()] == pytest.approx([0.7] * 3)
    # Two labels of one annotator on an item are an error.
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


# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): 12 units, 4 observers (one line a unit).
TEXTBOOK = """
1 1 . 1
2 2 3 2
3 3 3 3
3 3 3 3
2 2 2 2
1 2 3 4
4 4 4 4
1 1 2 1
2 2 2 2
. 5 5 5
. . 1 1
. 3 . .
"""
LEVELS: list[Level] = ["nominal", "ordinal"]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_textbook_example(level: Level, alpha: float) -> None:
    found = agreement_of(votes_of(TEXTBOOK), level)
    assert round(found.alpha or 0, 3) == alpha
    assert (found.items, found.votes, found.reason) == (11, 40, "")


@pytest.mark.parametrize(("name", "alpha"), [("d_possent", 0.1493), ("snow_rte", 0.2415)])
def test_alpha_of_public_votes(shared_data: Path, name: str, alpha: float) -> None:
    votes, _ = public_votes(shared_data, name)
    assert round(agreement_of(votes, "nominal").alpha or 0, 4) == alpha


@settings(deadline=None)
@given(vote_lists(labels="1234"), st.sampled_from(LEVELS))
def test_value_counts_give_the_library_s_result_for_the_matrix(votes: list[Vote], level: Level) -> None:
    matrix = np.full((8, 10), np.nan)
    for vote in votes:
        matrix[int(vote.annotator[1:]), int(vote.item[1:])] = float(vote.label)
    ours = agreement_of(votes, level).alpha
    pairable = matrix[:, (~np.isnan(matrix)).sum(axis=0) > 1]
    if len(np.unique(pairable[~np.isnan(pairable)])) < 2:
        assert ours is None
    else:
        assert ours == pytest.approx(float(krippendorff.alpha(matrix, level_of_measurement=level)), abs=1e-6)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("1 . .\n. 2 .", "no item has two votes"),
        ("1 1 1\n1 1 .", "all votes on items with two or more votes are one label"),
        # The second label occurs on an item with one vote only.
        ("1 1 1\n1 1 .\n. . 2", "all votes on items with two or more votes are one label"),
    ],
)
def test_undefined_alpha_has_a_reason(table: str, reason: str) -> None:
    found = agreement_of(votes_of(table), "nominal")
    assert (found.alpha, found.interval, found.reason.startswith(reason)) == (None, None, True)


def test_ratings_are_ordered_as_numbers() -> None:
    # As text, 10 is before 9. The ratings of each item are neighbours: nearly full agreement.
    votes = votes_of("9 10\n10 9\n1 1\n2 1\n5 5")
    assert (agreement_of(votes, "ordinal").alpha or 0) > 0.85
    assert (agreement_of(votes, "nominal").alpha or 1) < 0.5


def test_interval_is_close_to_that_of_resampled_items(shared_data: Path) -> None:
    votes, _ = public_votes(shared_data, "snow_rte")
    by_item: dict[str, list[Vote]] = {}
    for vote in votes:
        by_item.setdefault(vote.item, []).append(vote)
    rng = random.Random(0)
    drawn = []
    for _ in range(60):
        picks = enumerate(rng.choices(list(by_item.values()), k=len(by_item)))
        again = [Vote(f"{n}", vote.annotator, vote.label) for n, theirs in picks for vote in theirs]
        drawn.append(agreement_of(again, "nominal").alpha or 0)
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert agreement_of(votes, "nominal").interval == pytest.approx((low, high), abs=0.008)


@settings(deadline=None)
@given(vote_lists(labels="123"), st.sampled_from(LEVELS), st.randoms(use_true_random=False))
def test_names_and_order_do_not_change_agreement(votes: list[Vote], level: Level, rng: random.Random) -> None:
    annotators, items = [f"n{at}" for at in range(8)], [f"j{at}" for at in range(10)]
    rng.shuffle(annotators)
    rng.shuffle(items)
    others = [Vote(items[int(v.item[1:])], annotators[int(v.annotator[1:])], v.label) for v in votes]
    rng.shuffle(others)
    ours = agreement_of(votes, level)
    assert agreement_of(others, level) == ours
    if ours.interval is not None:
        assert ours.interval[0] <= ours.interval[1] <= 1
