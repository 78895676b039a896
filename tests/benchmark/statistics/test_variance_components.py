"""Variances of items, answers and judgements: the planted ones are found, and a design costs least."""

from __future__ import annotations

import numpy as np
import pytest

from h2htalk.benchmark.statistics.intervals import t_quantile
from h2htalk.benchmark.statistics.variance_components import VarianceComponents, cheapest, variance_components


def planted(rng: np.random.Generator, items: int, k: int, m: int) -> list[list[list[float]]]:
    item = rng.normal(0, 0.8, (items, 1, 1))
    answer = rng.normal(0, 0.5, (items, k, 1))
    return (3 + item + answer + rng.normal(0, 0.3, (items, k, m))).tolist()


def test_the_planted_variances_are_found() -> None:
    rng = np.random.default_rng(0)
    found = [variance_components(planted(rng, 60, 3, 4)) for _ in range(200)]
    for name, truth in (("items", 0.64), ("answers", 0.25), ("judgements", 0.09)):
        assert np.mean([getattr(one, name) for one in found]) == pytest.approx(truth, rel=0.03)
    expected = VarianceComponents(0.64, 0.25, 0.09, 0).variance(60, 3, 4)
    assert np.mean([one.error2 for one in found]) == pytest.approx(expected, rel=0.05)


def test_equal_judgements_have_no_variance() -> None:
    found = variance_components([[[1.0, 1.0], [2.0, 2.0]], [[3.0, 3.0], [4.0, 4.0]]])
    assert (found.judgements, found.answers) == (0, 0.5)
    assert found.items == pytest.approx(1.75)


def test_unequal_numbers_and_a_single_item_are_refused() -> None:
    for scores in ([[[1.0, 2.0], [1.0]], [[1.0, 2.0], [1.0, 2.0]]], [[[1.0, 2.0], [2.0, 2.0]]]):
        with pytest.raises(ValueError, match="equally many"):
            variance_components(scores)


@pytest.mark.parametrize(
    ("k", "m", "expected"), [(1, 4, (0.89, 0, 0.09)), (3, 1, (0.64, 0.34, 0)), (1, 1, (0.98, 0, 0))]
)
def test_a_level_with_one_each_is_in_the_level_above(k: int, m: int, expected: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(1)
    found = [variance_components(planted(rng, 60, k, m)) for _ in range(300)]
    for name, truth in zip(("items", "answers", "judgements"), expected, strict=True):
        assert np.mean([getattr(one, name) for one in found]) == pytest.approx(truth, rel=0.03)
    error = VarianceComponents(0.64, 0.25, 0.09, 0).variance(60, k, m)
    assert np.mean([one.error2 for one in found]) == pytest.approx(error, rel=0.03)


def test_a_design_of_few_items_reaches_the_half_width_with_t() -> None:
    found = VarianceComponents(0.64, 0.25, 0.09, 0)
    items, k, m, _ = cheapest(found, 0.8, item=10, answer=1, judgement=1)
    assert items < 10
    assert t_quantile(items - 1) * found.variance(items, k, m) ** 0.5 <= 0.8
    assert t_quantile(items - 2) * found.variance(items - 1, k, m) ** 0.5 > 0.8


def test_the_cheapest_design_follows_the_costs() -> None:
    found = VarianceComponents(0.64, 0.25, 0.09, 0)
    items, k, m, cost = cheapest(found, 0.1, item=0, answer=1, judgement=1)
    assert (k, m) == (1, 1)  # an item is free: take more of them
    assert found.variance(items, k, m) <= (0.1 / 1.96) ** 2
    assert cost == 2 * items
    many = cheapest(found, 0.1, item=50, answer=1, judgement=0.1)
    assert many[1] > 1
    assert many[2] > 1
    # The closed forms: m* = sqrt(ca se2 / (cj sb2)), k* = sqrt(ci sb2 / (ca sa2)), of an answer with its judgements.
    assert many[2] == pytest.approx((1 * 0.09 / (0.1 * 0.25)) ** 0.5, abs=1)


def test_no_design_of_a_grid_is_cheaper() -> None:
    rng = np.random.default_rng(4)
    k, m = np.meshgrid(np.arange(1, 21), np.arange(1, 21))
    for draw in range(300):
        parts, costs = rng.gamma(0.5, size=3) * rng.integers(0, 2, 3), rng.gamma(0.3, size=3) * rng.integers(0, 2, 3)
        found = VarianceComponents(*parts.tolist(), 0)
        *_, cost = cheapest(found, 0.001, *costs.tolist())
        items = np.maximum(2, found.variance(1, k, m) * (1.959964 / 0.001) ** 2)  # type: ignore[arg-type]
        grid = items * (costs[0] + k * (costs[1] + m * costs[2]))
        assert cost <= grid.min() * 1.0001 + 5 * sum(costs.tolist()) * 400, draw


def test_the_number_of_items_is_the_least() -> None:
    for half_width in np.geomspace(0.001, 5, 100):
        items, _, _, _ = cheapest(VarianceComponents(0.7, 0, 0, 0), half_width, 1, 1, 1)
        assert t_quantile(items - 1) * (0.7 / items) ** 0.5 <= half_width
        assert items == 2 or t_quantile(items - 2) * (0.7 / (items - 1)) ** 0.5 > half_width
