"""A judge beside people: agreement equal to other programs' values, and planted biases of its error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from judged_made import judged_item
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from h2htalk.benchmark.calibration.calibrate import Finding, agreements, error_effects, weighted_kappa
from h2htalk.benchmark.calibration.labels import JudgedItem


def sides(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    people = np.clip(np.round(2 * (3.5 + rng.standard_normal(n))) / 2, 0, 5)
    return np.clip(np.round(6 * (people + 0.3 + 0.6 * rng.standard_normal(n))) / 6, 0, 5), people


def agreement_of(judge: list[float], people: list[float]) -> dict[str, Finding]:
    items = [judged_item(at, score, rating) for at, (score, rating) in enumerate(zip(judge, people, strict=True))]
    return {one.name: one for one in agreements(items)}


def test_kappa_and_spearman_equal_other_programs() -> None:
    judge, people = sides(60)
    found = agreement_of(judge.tolist(), people.tolist())
    whole = [np.floor(side + 0.5).astype(int) for side in (judge, people)]
    kappa = cohen_kappa_score(*whole, weights="quadratic")
    assert found["weighted kappa"].value == pytest.approx(kappa, abs=1e-12)
    assert found["Spearman"].value == pytest.approx(spearmanr(judge, people).statistic, abs=1e-12)
    assert all((one.low or 9) < (one.value or 9) < (one.high or 0) for one in found.values())
    # Half points are rounded up on both sides, and a side that does not vary has no correlation.
    assert agreement_of([2.5, 1.5, 4.0], [3, 2, 4])["weighted kappa"].value == pytest.approx(1.0)
    constant = agreement_of([3.0] * 20, [float(n % 5) for n in range(20)])
    assert constant["Spearman"] == Finding("Spearman", None, None, None, 20, "draws of items")
    assert constant["weighted kappa"].value == 0.0


def test_weights_count_as_repeated_items() -> None:
    judge, people = sides(12, 3)
    drawn = [0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 11, 11]
    weights, whole = np.bincount(drawn, minlength=12)[None].astype(float), np.floor(np.array([judge, people]) + 0.5)
    kappa = cohen_kappa_score(*whole[:, drawn].astype(int), weights="quadratic")
    assert weighted_kappa(whole, weights)[0] == pytest.approx(kappa, abs=1e-12)


def biased(seed: int, length: float, n: int = 40) -> list[JudgedItem]:
    """Items judged .3 too kindly, by `length` more for a unit of log length."""
    rng = np.random.default_rng(seed)
    size, noise, people = rng.standard_normal(n), 0.5 * rng.standard_normal(n), 3 + rng.standard_normal(n)
    scores = people + 0.3 + length * size + noise
    return [judged_item(at, float(scores[at]), float(people[at]), length=float(size[at])) for at in range(n)]


def test_a_planted_bias_lies_inside_its_interval() -> None:
    found = {one.name: one for one in error_effects(biased(2, 0.5))}
    for (name, one), planted in zip(found.items(), (0.3, 0.5), strict=True):
        assert name in ("mean error", "error by log length")
        assert (one.low or 9) <= planted <= (one.high or 0)


def test_a_cluster_is_left_out_at_a_time() -> None:
    items = [replace(one, cluster=f"c{at // 3}", weight=1.0 + at % 2) for at, one in enumerate(biased(5, 0.2, 24))]
    x, y, w = (np.array([getattr(one, name) for one in items]) for name in ("length", "error", "weight"))

    def fit(own: np.ndarray) -> np.ndarray:
        slope, level = np.polyfit((x - np.average(x, weights=w))[own], y[own], 1, w=np.sqrt(w[own]))
        return np.array([level, slope])

    whole = fit(np.arange(24) >= 0)
    changes = sum((fit(np.arange(24) // 3 != left) - whole) ** 2 for left in range(8))
    found = error_effects(items)
    assert [one.value for one in found] == pytest.approx(whole.tolist())
    half = [(one.high or 0) - (one.value or 0) for one in found]
    assert half == pytest.approx((2.446912 * changes**0.5).tolist(), rel=1e-5)  # t with 6 degrees of freedom
    assert {one.method for one in found} == {"jackknife, t(6)"}


def test_effects_that_too_few_items_decide_are_not_given() -> None:
    same = [replace(one, length=1.0) for one in biased(1, 0.0)]
    alone = [replace(one, length=float(at == 0)) for at, one in enumerate(biased(1, 0.0))]
    for items in (same, alone, biased(1, 0.0, 2)):
        assert {(one.value, one.method) for one in error_effects(items)} == {(None, "too few items decide it")}
