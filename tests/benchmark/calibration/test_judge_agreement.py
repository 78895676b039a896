"""Agreement of judge and people: equal to other programs' values, and to published ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from calibration_made import judged_item
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from h2htalk.benchmark.calibration.agreement import Agreement, agreements, icc, weighted_kappa
from h2htalk.benchmark.calibration.judged_items import JudgedItem

# Shrout and Fleiss (1979), table 2: four raters of six targets; ICC(2,1) is .29.
SHROUT_FLEISS = np.array([[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]], float)


def sides(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    people = np.clip(np.round(2 * (3.5 + rng.standard_normal(n))) / 2, 0, 5)
    return np.clip(np.round(6 * (people + 0.3 + 0.6 * rng.standard_normal(n))) / 6, 0, 5), people


def items(judge: Sequence[float], people: Sequence[float]) -> list[JudgedItem]:
    return [judged_item(at, score, rating) for at, (score, rating) in enumerate(zip(judge, people, strict=True))]


def by_name(found: list[Agreement]) -> dict[str, Agreement]:
    return {one.measure: one for one in found}


def test_every_measure_equals_another_programs() -> None:
    judge, people = sides(60)
    found = by_name(agreements(items(judge.tolist(), people.tolist())))
    whole = [np.floor(side + 0.5).astype(int) for side in (judge, people)]
    kappa = cohen_kappa_score(*whole, weights="quadratic")
    assert found["weighted kappa"].value == pytest.approx(kappa, abs=1e-12)
    assert found["Spearman"].value == pytest.approx(spearmanr(judge, people).statistic, abs=1e-12)
    for one in found.values():
        assert one.low is not None
        assert one.low < (one.value or 9) < (one.high or 0)


def test_the_published_icc() -> None:
    assert icc(SHROUT_FLEISS, np.ones((1, 6)))[0] == pytest.approx(0.2898, abs=5e-5)


def test_weights_count_as_repeated_items() -> None:
    judge, people = sides(12, 3)
    drawn = [0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 11, 11]
    weights, whole = np.bincount(drawn, minlength=12)[None].astype(float), np.floor(np.array([judge, people]) + 0.5)
    kappa = cohen_kappa_score(*whole[:, drawn].astype(int), weights="quadratic")
    assert weighted_kappa(whole, weights)[0] == pytest.approx(kappa, abs=1e-12)
    both = np.array([judge, people])
    assert icc(both, weights)[0] == pytest.approx(icc(both[:, drawn], np.ones((1, 12)))[0], abs=1e-12)


def test_half_points_are_rounded_up_on_both_sides() -> None:
    found = by_name(agreements(items([2.5, 1.5, 4.0], [3, 2, 4])))
    assert found["weighted kappa"].value == pytest.approx(1.0)


def test_the_interval_of_kappa_covers() -> None:
    judge, people = (np.floor(side + 0.5) for side in sides(200_000, 9))
    truth = weighted_kappa(np.array([judge, people]), np.ones((1, 200_000)))[0]
    hits = 0
    for seed in range(40):
        one = by_name(agreements(items(*(side.tolist() for side in sides(50, seed)))))["weighted kappa"]
        hits += (one.low or 0) <= truth <= (one.high or 0)
    assert hits >= 33


def test_annotators_are_compared_where_all_rated_the_item() -> None:
    raters = [dict(zip("abcd", column, strict=True)) for column in (SHROUT_FLEISS.T / 2).tolist()]
    rated = [judged_item(at, 3.0, raters=own) for at, own in enumerate(raters)]
    found = by_name(agreements([*rated, judged_item(99, 3.0, raters={"a": 1.0})]))["ICC(2,1) of annotators"]
    assert found.value == pytest.approx(0.2898, abs=5e-5)
    assert (found.n, found.low) == (6, None)


def test_a_side_that_does_not_vary_has_no_correlation() -> None:
    found = by_name(agreements(items([3.0] * 20, [float(n % 5) for n in range(20)])))
    assert found["Spearman"] == Agreement("Spearman", None, None, None, 20)
    assert found["weighted kappa"].value == 0.0
