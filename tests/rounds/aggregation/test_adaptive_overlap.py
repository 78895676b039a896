"""Adaptive overlap: how many more votes items need."""

from __future__ import annotations

from collections import Counter

import pytest
from h2htalk.rounds.aggregation.adaptive_overlap import needs_more, needs_more_by_posterior
from hypothesis import given, settings
from hypothesis import strategies as st
from votes_made import counted, vote_lists

from h2htalk.rounds.aggregation.votes import Vote


def one(counts: tuple[int, ...], **settings: int) -> int:
    return needs_more(counted(counts), ["item-00"], **settings)["item-00"]


# --- A lead -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "more"),
    [
        ((0,), 4),  # three answers cannot lead by four
        ((1,), 3),
        ((3,), 1),
        ((4,), 0),
        ((3, 1), 2),
        ((5, 1), 0),
        ((2, 2), 4),
        ((4, 3, 1), 3),
        ((2, 2, 2), 4),
        ((9, 8), 3),  # 20 - 17
        ((10, 10), 0),  # its maximum
        ((12, 11), 0),  # beyond it
    ],
)
def test_requests_the_smallest_number_that_can_be_enough(counts: tuple[int, ...], more: int) -> None:
    assert one(counts) == more


def test_minimum_with_a_small_lead() -> None:
    assert [one((n,), lead=1) for n in range(5)] == [3, 2, 1, 0, 0]
    assert one((0,), minimum=5, lead=2, maximum=5) == 5
    assert one((1,), minimum=1, lead=1, maximum=1) == 0


def test_result_has_each_requested_item_once() -> None:
    votes = counted((4,), (2, 2))
    assert needs_more(votes, ["new", "item-01", "item-00", "new"]) == {"new": 4, "item-01": 4, "item-00": 0}
    assert list(needs_more(votes, ["new", "item-01"])) == ["new", "item-01"]
    assert needs_more([], ["a"]) == {"a": 4}
    assert needs_more(votes, []) == {}


# --- A posterior ------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(vote_lists(labels="ab"), st.sampled_from([(0.7, 0.95, 4), (0.7, 0.99, 6), (0.8, 0.95, 3), (0.6, 0.8, 4)]))
def test_posterior_of_two_labels_is_a_lead(votes: list[Vote], rule: tuple[float, float, int]) -> None:
    accuracy, confidence, lead = rule
    items = [f"i{at}" for at in range(10)]
    assert needs_more_by_posterior(votes, items, accuracy=accuracy, labels=2, confidence=confidence) == needs_more(
        votes, items, lead=lead
    )


@settings(deadline=None)
@given(vote_lists(labels="abc"), st.floats(0.4, 0.95), st.floats(0.5, 0.99), st.integers(3, 5))
def test_requests_until_the_posterior_is_reached(
    votes: list[Vote], accuracy: float, confidence: float, labels: int
) -> None:
    found = needs_more_by_posterior(
        votes, ["i0"], accuracy=accuracy, labels=labels, confidence=confidence, minimum=1, maximum=1000
    )["i0"]
    counts = sorted(Counter(vote.label for vote in votes if vote.item == "i0").values(), reverse=True)
    counts += [0] * (labels - len(counts))
    ratio = accuracy * (labels - 1) / (1 - accuracy)

    def posterior(more: int) -> float:
        leads = [counts[0] + more, *counts[1:]]
        return 1 / sum(ratio ** (count - leads[0]) for count in leads)

    assert posterior(found) >= confidence - 1e-6 or found == 1000 - sum(counts)
    if found > max(0, 1 - sum(counts)):
        assert posterior(found - 1) < confidence + 1e-6


def test_more_labels_need_fewer_votes() -> None:
    # Wrong votes are spread over more labels, so two equal votes are stronger evidence.
    few = needs_more_by_posterior([], ["a"], accuracy=0.7, labels=2, minimum=1)["a"]
    many = needs_more_by_posterior([], ["a"], accuracy=0.7, labels=5, minimum=1)["a"]
    assert (few, many) == (4, 2)
