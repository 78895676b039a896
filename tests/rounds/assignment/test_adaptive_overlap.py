"""Adaptive overlap: how many more votes items need."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from votes_made import counted, vote_lists

from h2htalk.rounds.aggregation.votes import Vote
from h2htalk.rounds.assignment.remaining_annotations import needs_more
from h2htalk.rounds.settings import Adaptive


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
    assert needs_more(counted(counts), ["item-00"], Adaptive(), 20, 3) == {"item-00": more}


def test_minimum_and_order_of_items() -> None:
    small = [needs_more(counted((n,)), ["item-00"], Adaptive(lead=1), 20, 2)["item-00"] for n in range(5)]
    assert small == [3, 2, 1, 0, 0]
    assert needs_more(counted((0,)), ["item-00"], Adaptive(minimum=5, lead=2), 5, 2) == {"item-00": 5}
    votes = counted((4,), (2, 2))
    found = needs_more(votes, ["new", "item-01", "item-00", "new"], Adaptive(), 20, 2)
    assert list(found.items()) == [("new", 4), ("item-01", 4), ("item-00", 0)]


@settings(deadline=None)
@given(vote_lists(labels="ab"), st.sampled_from([(0.7, 0.95, 4), (0.7, 0.99, 6), (0.8, 0.95, 3), (0.6, 0.8, 4)]))
def test_posterior_of_two_labels_is_a_lead(votes: list[Vote], rule: tuple[float, float, int]) -> None:
    accuracy, confidence, lead = rule
    items = [f"i{at}" for at in range(10)]
    posterior = Adaptive(accuracy=accuracy, confidence=confidence)
    assert needs_more(votes, items, posterior, 20, 2) == needs_more(votes, items, Adaptive(lead=lead), 20, 2)


@settings(deadline=None)
@given(vote_lists(labels="abc"), st.floats(0.4, 0.95), st.floats(0.5, 0.99), st.integers(3, 5))
def test_requests_until_the_posterior_is_reached(
    votes: list[Vote], accuracy: float, confidence: float, labels: int
) -> None:
    rule = Adaptive(minimum=1, accuracy=accuracy, confidence=confidence)
    found = needs_more(votes, ["i0"], rule, 1000, labels)["i0"]
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
    rule = Adaptive(minimum=1, accuracy=0.7, confidence=0.95)
    assert [needs_more([], ["a"], rule, 20, labels)["a"] for labels in (2, 5)] == [4, 2]
