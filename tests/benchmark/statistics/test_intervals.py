"""Intervals of means and rates: check values (coverage: `tools/bench_statistics.py`)."""

from __future__ import annotations

import pytest

from h2htalk.benchmark.statistics import mean_of, rate_interval, weighted_mean


def interval(values: list[float]) -> tuple[float, float]:
    mean = mean_of(values)
    assert mean is not None
    return mean.interval()


def test_check_values() -> None:
    assert interval([0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.6]) == pytest.approx((0.1267, 0.4708), abs=1e-4)
    assert interval([0.0] * 7) == pytest.approx((0, 0.4610), abs=1e-4)
    # Wilson (1927), 81 of 263, as in statsmodels and R's binom.
    assert rate_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)


def test_a_value_alone_has_no_interval() -> None:
    assert mean_of([0.5]) is None


def test_a_mean_below_zero_has_an_interval_in_range() -> None:
    low, high = interval([-0.02, -0.01, 0.0])
    assert low == 0 <= high <= 1


def test_a_weighted_mean_of_one_cell_is_the_cell() -> None:
    mean = mean_of([0.1, 0.3, 0.2, 0.9])
    assert mean is not None
    assert weighted_mean([mean], [3]).interval() == pytest.approx(mean.interval())
