"""Means of ratings and their intervals."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from h2htalk.rounds.aggregation.ratings import mean_of
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("values", "value", "half"),
    [
        ([4, 5], 4.5, 12.7062047 * math.sqrt(0.5) / math.sqrt(2)),
        ([3, 4, 5], 4.0, 4.3026527 / math.sqrt(3)),
        ([1, 1, 5, 5], 3.0, 3.1824463 * statistics.stdev([1, 1, 5, 5]) / 2),
    ],
)
def test_student_interval(values: list[int], value: float, half: float) -> None:
    mean = mean_of(values)
    assert mean.value == value
    assert mean.interval == pytest.approx((value - half, value + half))


def test_no_interval_for_one_rating() -> None:
    mean = mean_of([4], (1, 5))
    assert (mean.value, mean.interval) == (4.0, None)


def test_interval_of_equal_ratings() -> None:
    assert mean_of([5, 5, 5]).interval is None
    assert mean_of([4, 5], (1, 5)).interval == (1, 5)
    low, high = mean_of([5, 5, 5], (1, 5)).interval or (0, 0)
    assert (low, high) == (pytest.approx(5 - 4 * (1 - 0.05 ** (1 / 3))), 5)
    assert low < 3 < mean_of([5] * 20, (1, 5)).interval[0] < 5  # type: ignore[index]


@pytest.mark.parametrize(("values", "scale"), [([], None), ([6], (1, 5)), ([0, 3], (1, 5))])
def test_invalid_ratings(values: list[int], scale: tuple[int, int] | None) -> None:
    with pytest.raises(ValueError, match="needs ratings within the scale"):
        mean_of(values, scale)


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_interval_contains_the_mean(values: list[int], rng: random.Random) -> None:
    mean = mean_of(values, (1, 5))
    rng.shuffle(values)
    assert mean_of(values, (1, 5)) == mean
    if mean.interval is not None:
        assert 1 <= mean.interval[0] <= mean.value <= mean.interval[1] <= 5
        assert mean.interval[0] < mean.interval[1]


@pytest.mark.parametrize("weights", [(1, 2, 5, 8, 4), (1, 1, 1, 1, 1), (0, 0, 1, 5, 10), (0, 0, 0, 1, 20)])
@pytest.mark.parametrize("n", [3, 5, 20])
def test_interval_covers_the_population_s_mean_in_92_percent_of_panels(n: int, weights: tuple[int, ...]) -> None:
    # In the last case most panels have equal ratings; an interval of width zero would never contain the mean.
    rng = random.Random(0)
    true = sum(w * v for w, v in zip(weights, range(1, 6), strict=True)) / sum(weights)
    held = 0
    for _ in range(2000):
        low, high = mean_of(rng.choices(range(1, 6), weights, k=n), (1, 5)).interval or (math.inf, 0)
        held += low <= true <= high
    assert held / 2000 > 0.915
