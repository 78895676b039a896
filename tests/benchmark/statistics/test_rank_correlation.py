"""Spearman's rho with ties, equal to scipy's; what the intervals rest on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from h2htalk.benchmark.statistics import closed_form, rank_correlation

RNG = np.random.default_rng(3)


def alone(size: int, cluster: int = 1) -> list[str]:
    return [str(n // cluster) for n in range(size)]


@pytest.mark.parametrize("levels", [2, 3, 6, 50])
def test_rho_is_scipys_on_tied_values(levels: int) -> None:
    for _ in range(20):
        x = RNG.integers(0, levels, 40).astype(float)
        y = np.round(x + RNG.normal(0, levels / 3, 40))
        found = rank_correlation([(alone(40), np.array([x, y]))])
        assert found.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_a_draw_is_the_correlation_of_the_repeated_units() -> None:
    """The interval's ends are quantiles of scipy's rho over the same seeded draws of clusters."""
    x = RNG.integers(0, 5, 24).astype(float)  # 12 clusters of 2
    y = x + RNG.integers(0, 4, 24)
    found = rank_correlation([(alone(24, 2), np.array([x, y]))])
    rng, rhos = np.random.default_rng(0), []
    for counts in rng.multinomial(12, np.full(12, 1 / 12), 1000):
        drawn = np.repeat(np.arange(24), np.repeat(counts, 2))
        rhos.append(stats.spearmanr(x[drawn], y[drawn]).statistic)
    # Clusters are sorted as texts before they are drawn, so the draws agree in distribution only.
    assert (found.low, found.high) == pytest.approx(np.quantile(rhos, (0.025, 0.975)), abs=0.08)


def test_several_runs_are_averaged_and_drawn_together() -> None:
    """Models of another level do not add to a correlation within each."""
    x = RNG.normal(size=50)
    y = 0.5 * x + RNG.normal(size=50)
    single = rank_correlation([(alone(50), np.array([x, y]))])
    twice = rank_correlation([(alone(50), np.array([x, y])), (alone(50), np.array([x, y]) + 100)])
    assert twice == pytest.approx(single)
    opposite = rank_correlation([(alone(50), np.array([x, y])), (alone(50), np.array([x, -y]))])
    assert opposite.value == pytest.approx(0, abs=1e-12)


def test_what_cannot_be_computed_is_none() -> None:
    constant = np.array([[1.0, 1, 1, 1, 1], [1, 2, 3, 4, 5]])
    assert rank_correlation([(alone(5), constant)]) == (None, None, None)
    three = rank_correlation([(alone(3), np.array([[1.0, 2, 3], [1, 3, 2]]))])
    assert (three.value, three.low, three.high) == (pytest.approx(0.5), None, None)
    assert closed_form(0.9, 3) == (0.9, None, None)


def test_the_closed_form_is_bonett_and_wrights() -> None:
    low, high = (math.tanh(math.atanh(0.6) + sign * 1.959964 * math.sqrt(1.18 / 17)) for sign in (-1, 1))
    assert closed_form(0.6, 20) == pytest.approx((0.6, low, high), abs=1e-6)


def test_a_perfect_correlation_of_a_few_pairs_is_no_certainty() -> None:
    for found in (closed_form(1.0, 4), rank_correlation([(alone(4), np.array([[1.0, 2, 3, 4], [2, 3, 4, 9]]))])):
        assert found.value == pytest.approx(1)
        assert found.low < 0 < found.high == pytest.approx(1)  # type: ignore[operator]
    assert closed_form(-1.0, 30).high < -0.9  # type: ignore[operator]
