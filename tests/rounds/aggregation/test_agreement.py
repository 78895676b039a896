"""Agreement: published values, intervals, and undefined values."""

from __future__ import annotations

import random
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from votes_made import public_votes, vote_lists, votes_of

from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.votes import Vote
from h2htalk.rounds.questions import Level

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
def test_names_and_order_do_not_matter(votes: list[Vote], level: Level, rng: random.Random) -> None:
    annotators, items = [f"n{at}" for at in range(8)], [f"j{at}" for at in range(10)]
    rng.shuffle(annotators)
    rng.shuffle(items)
    others = [Vote(items[int(v.item[1:])], annotators[int(v.annotator[1:])], v.label) for v in votes]
    rng.shuffle(others)
    ours = agreement_of(votes, level)
    assert agreement_of(others, level) == ours
    if ours.interval is not None:
        assert ours.interval[0] <= ours.interval[1] <= 1
