"""Quantiles, tails and Wilson's interval: equal to scipy's own and to published values."""

from __future__ import annotations

import pytest
from scipy import stats

from h2htalk.distributions import binomial_tail, t_quantile, wilson_interval, z_quantile


@pytest.mark.parametrize("p", [0.6, 0.8, 0.975, 0.995])
def test_quantiles_are_those_of_scipys_distributions(p: float) -> None:
    assert z_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12)
    for df in (0.7, 1, 1.4, 6, 29.5, 400, 1e6):
        assert t_quantile(df, p) == pytest.approx(stats.t.ppf(p, df), rel=1e-9)


@pytest.mark.parametrize(("count", "of"), [(0, 5), (1, 5), (3, 7), (5, 5), (6, 5)])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_the_binomial_tail_is_that_of_scipys_distribution(count: int, of: int, share: float) -> None:
    assert binomial_tail(count, of, share) == pytest.approx(stats.binom.sf(count - 1, of, share), rel=1e-9)


def test_wilsons_interval() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I; of a share of 0 or 1 one end is the share itself.
    assert wilson_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)
    assert wilson_interval(1, 29)[1] == 1
