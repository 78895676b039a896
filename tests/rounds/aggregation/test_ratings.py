"""Means of ratings and their intervals."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.rounds.aggregation.decisions import mean_of

FIVE = (1, 5)


@pytest.mark.parametrize(
    ("values", "half"),
    [
        ([48, 49], 12.7062047 * math.sqrt(0.5) / math.sqrt(2)),
        ([48, 49, 50], 4.3026527 / math.sqrt(3)),
        ([48, 48, 52, 52], 3.1824463 * statistics.stdev([1, 1, 5, 5]) / 2),
    ],
)
def test_student_interval(values: list[int], half: float) -> None:
    mean, interval = mean_of(values, (0, 100))
    assert mean == statistics.fmean(values)
    assert interval == pytest.approx((mean - half, mean + half), abs=1e-4)


def test_one_rating_and_equal_ratings() -> None:
    assert mean_of([4], FIVE) == (4.0, None)
    assert mean_of([4, 5], FIVE)[1] == FIVE
    low, high = mean_of([5, 5, 5], FIVE)[1] or (0, 0)
    assert (low, high) == (pytest.approx(5 - 4 * (1 - 0.05 ** (1 / 3)), abs=1e-4), 5)
    assert low < 3 < (mean_of([5] * 20, FIVE)[1] or (0, 0))[0] < 5


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_interval_contains_the_mean(values: list[int], rng: random.Random) -> None:
    mean, interval = mean_of(values, FIVE)
    rng.shuffle(values)
    assert mean_of(values, FIVE) == (mean, interval)
    if interval is not None:
        assert 1 <= interval[0] <= mean + 1e-4
        assert mean - 1e-4 <= interval[1] <= 5
        assert interval[0] < interval[1]


@pytest.mark.parametrize("weights", [(1, 2, 5, 8, 4), (1, 1, 1, 1, 1), (0, 0, 1, 5, 10), (0, 0, 0, 1, 20)])
@pytest.mark.parametrize("n", [3, 20])
def test_interval_covers_the_population_s_mean_in_92_percent_of_panels(n: int, weights: tuple[int, ...]) -> None:
    # In the last case most panels have equal ratings; an interval of width zero would never contain the mean.
    rng = random.Random(0)
    true = sum(w * v for w, v in zip(weights, range(1, 6), strict=True)) / sum(weights)
    held = 0
    for _ in range(2000):
        low, high = mean_of(rng.choices(range(1, 6), weights, k=n), FIVE)[1] or (math.inf, 0)
        held += low <= true <= high
    assert held / 2000 > 0.915
