"""Means of a few ratings, and intervals that do not pretend."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.rounds.aggregation.ratings import mean_of, t_quantile


@pytest.mark.parametrize(
    ("values", "value", "half"),
    [
        ([4, 5], 4.5, 12.706 * math.sqrt(0.5) / math.sqrt(2)),
        ([3, 4, 5], 4.0, 4.303 / math.sqrt(3)),
        ([1, 1, 5, 5], 3.0, 3.182 * statistics.stdev([1, 1, 5, 5]) / 2),
    ],
)
def test_the_interval_is_students(values: list[int], value: float, half: float) -> None:
    mean = mean_of(values)
    assert mean.value == value
    assert mean.interval == pytest.approx((value - half, value + half))


def test_one_rating_has_no_interval() -> None:
    mean = mean_of([4], (1, 5))
    assert (mean.value, mean.interval) == (4.0, None)


def test_equal_ratings_are_no_certainty() -> None:
    assert mean_of([5, 5, 5]).interval is None
    assert mean_of([4, 5], (1, 5)).interval == (1, 5)
    low, high = mean_of([5, 5, 5], (1, 5)).interval or (0, 0)
    assert (low, high) == (pytest.approx(5 - 4 * (1 - 0.05 ** (1 / 3))), 5)
    assert low < 3 < mean_of([5] * 20, (1, 5)).interval[0] < 5  # type: ignore[index]


@pytest.mark.parametrize(("values", "scale"), [([], None), ([6], (1, 5)), ([0, 3], (1, 5))])
def test_no_ratings_or_one_off_the_scale_is_an_error(
    values: list[int], scale: tuple[int, int] | None
) -> None:
    with pytest.raises(ValueError, match="needs ratings within the scale"):
        mean_of(values, scale)


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_order_changes_no_bit_and_the_mean_lies_inside(values: list[int], rng: random.Random) -> None:
    mean = mean_of(values, (1, 5))
    rng.shuffle(values)
    assert mean_of(values, (1, 5)) == mean
    if mean.interval is not None:
        assert 1 <= mean.interval[0] <= mean.value <= mean.interval[1] <= 5
        assert mean.interval[0] < mean.interval[1]


@pytest.mark.parametrize("weights", [(1, 2, 5, 8, 4), (1, 1, 1, 1, 1), (0, 0, 1, 5, 10), (0, 0, 0, 1, 20)])
@pytest.mark.parametrize("n", [3, 5, 20])
def test_at_least_92_of_100_panels_have_the_mean_of_all_in_their_interval(
    n: int, weights: tuple[int, ...]
) -> None:
    # Of the last kind most panels are of one mind; an interval of no width would hold the mean in none of them.
    rng = random.Random(0)
    true = sum(w * v for w, v in zip(weights, range(1, 6), strict=True)) / sum(weights)
    held = 0
    for _ in range(2000):
        low, high = mean_of(rng.choices(range(1, 6), weights, k=n), (1, 5)).interval or (math.inf, 0)
        held += low <= true <= high
    assert held / 2000 > 0.915


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    # Published tables of Student's t.
    [
        (1, 12.706),
        (2, 4.303),
        (19, 2.093),
        (30, 2.042),
        (31, 2.040),
        (40, 2.021),
        (60, 2.000),
        (120, 1.980),
        (10**6, 1.960),
    ],
)
def test_quantiles_of_students_t(freedom: int, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, abs=0.001)
