"""The sign-flip test, and the interval that it gives: p below .05 exactly where 0 is outside."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from h2htalk.benchmark.statistics.paired_tests import Difference, clustered_slope, paired_result
from h2htalk.benchmark.statistics.sign_flips import LEVEL, sign_flip_p, sign_flips


def test_flips_by_hand() -> None:
    """Of the eight sums of +-1 +-2 +-3, two are at least 6 away from 0, and four at least 4."""
    assert sign_flip_p(np.array([1.0, 2.0, 3.0])) == 2 / 8
    assert sign_flip_p(np.array([-1.0, 2.0, 3.0])) == 4 / 8
    # Of more values flips are drawn: near the exact ones, and never zero.
    values = np.random.default_rng(0).normal(0.4, 1, 13)
    signs = np.array([[1 if k >> i & 1 else -1 for i in range(13)] for k in range(1 << 13)])
    exact = float((np.abs(signs @ values) >= abs(values.sum()) - 1e-12).mean())
    assert sign_flip_p(values) == pytest.approx(exact, abs=0.015)
    assert sign_flip_p(np.ones(100)) == 1 / 10_001


# Differences of rates are whole numbers; others vary as scores do. Clusters of several items weigh more.
DIFFERENCES = st.one_of(
    st.sampled_from([-1.0, 0.0, 0.0, 1.0]), st.floats(-1, 1, allow_subnormal=False)
)
ITEMS = st.lists(
    st.tuples(st.integers(0, 24), st.sampled_from("ab"), DIFFERENCES), min_size=1, max_size=60
)
# Six of six: t and CR1 gave 0.16 (-0.02 to 0.34) beside p .031.
SKEWED = [(k, "a", value) for k, value in enumerate((0.02, 0.03, 0.04, 0.05, 0.3, 0.5))]


@given(ITEMS)
@example(SKEWED)
@example([(k, "a", float(k < 6)) for k in range(25)])  # 19 clusters do not differ
@example([(k, ("b" if k > 20 else "a"), 0.25) for k in range(24)])
@example(
    [(0, "a", 8.936442786238543e-134), (1, "a", 0.0)]
)  # fourth powers underflowed: a division by 0
@example(
    [(0, "a", 1e-200), (1, "a", 0.0), (2, "b", 1.0), (3, "b", 1.0)]
)  # squares did: an error of 0
@example([(0, "a", 2.3e-308), (1, "a", 0.0), (2, "a", 0.0)])
def test_an_interval_excludes_0_exactly_where_p_is_below_05(
    items: list[tuple[int, str, float]],
) -> None:
    """`compare` showed intervals that held 0 beside p .049, and others that did not beside p .06."""
    result = paired_result(
        [Difference(stratum, str(cluster), value) for cluster, stratum, value in items]
    )
    low = result.estimate.low
    high = result.estimate.high
    if low is None or high is None:
        assert result.p() >= LEVEL or result.effect is None
        return
    assert low <= result.mean + 1e-12
    assert high >= result.mean - 1e-12
    assert (result.p() < LEVEL) == (low > 0 or high < 0)
    assert result.p() == pytest.approx(sign_flip_p(np.array(result.totals)))


@pytest.mark.parametrize("number", [7, 12, 40])
def test_the_ends_are_where_the_test_begins_to_reject(number: int) -> None:
    values = np.random.default_rng(number).normal(0.5, 1, number)
    weights = (1 / number,) * number
    found = sign_flips(tuple((values / number).tolist()), weights)
    width = found.high - found.low
    for end, beyond in ((found.low, -1), (found.high, 1)):
        inside, outside = (values - end + step * beyond * width for step in (0.01, -0.01))
        assert sign_flip_p(inside) >= LEVEL > sign_flip_p(outside)


def test_few_clusters_and_equal_differences_have_no_interval() -> None:
    """Equal differences had an interval without width: the test rejects every other value."""
    five = sign_flips((0.2,) * 5, (0.2,) * 5)
    assert (five.p, five.low, five.high) == (2 / 2**5, None, None)
    for number in (6, 12, 40):
        weights = tuple(1 / number for _ in range(number))
        equal = sign_flips(tuple(10 * weight for weight in weights), weights)
        assert equal.p < LEVEL
        assert (equal.low, equal.high) == (None, None)
    assert sign_flips((0.0,) * 9, (1 / 9,) * 9) == sign_flips((0.0,), (1.0,))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4), DIFFERENCES), min_size=2, max_size=60)
)
def test_the_interval_of_a_slope_fits_its_test(places: list[tuple[int, int, float]]) -> None:
    """The slope over turns had the interval of draws of clusters beside p of the sign-flip test."""
    clusters, x, y = zip(
        *((str(cluster), float(turn), value) for cluster, turn, value in places), strict=True
    )
    found = clustered_slope(clusters, x, y)
    if found is not None and found.estimate.interval is not None:
        low, high = found.estimate.interval
        assert (found.p() < LEVEL) == (low > 0 or high < 0)
        assert math.isfinite(found.mean)
