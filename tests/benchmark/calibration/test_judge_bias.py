"""What a judge's error depends on: planted biases are found, and none where none is."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_made import judged_item

from h2htalk.benchmark.calibration.judge_bias import (
    Effect,
    FamilyErrors,
    error_effects,
    family_bias,
    order_bias,
    run_bias,
)
from h2htalk.benchmark.calibration.judged_items import JudgedItem


def family_runs(seed: int, length: float, family: float, items: int = 60) -> list[FamilyErrors]:
    """Answers of three models to the same items, of which people think differently."""
    rng, hard = np.random.default_rng(seed), np.random.default_rng(seed + 10**6).standard_normal(items)
    runs = []
    for name, quality in (("gpt", 3.0), ("qwen", 3.4), ("llama", 2.6)):
        size = rng.standard_normal(items)
        people = quality + 0.5 * hard + 0.5 * rng.standard_normal(items)
        # Items are judged too kindly or too strictly, whatever the answer is.
        error = 0.3 * hard + length * size + family * (name == "gpt") + 0.5 * rng.standard_normal(items)
        own = zip((people + error).tolist(), people.tolist(), size.tolist(), strict=True)
        runs.append(FamilyErrors(name, ["gpt"], [judged_item(n, f, y, length=x) for n, (f, y, x) in enumerate(own)]))
    return runs


def holds(effect: Effect, truth: float) -> bool:
    return effect.low is not None and effect.high is not None and effect.low <= truth <= effect.high


def test_planted_biases_lie_inside_their_intervals() -> None:
    hits = {"length, within items": 0, "own family": 0}
    for seed in range(100):
        for one in family_bias(family_runs(seed, 0.5, 0.7)):
            hits[one.name] += holds(one, 0.5 if one.name.startswith("length") else 0.7)
    assert min(hits.values()) >= 90


def test_without_a_bias_few_are_called() -> None:
    calls = {"length, within items": 0, "own family": 0}
    for seed in range(100):
        for one in family_bias(family_runs(seed, 0.0, 0.0)):
            calls[one.name] += not holds(one, 0.0)
    assert max(calls.values()) <= 11  # 5 in 100, and three standard errors


def test_the_interval_is_hc3s_by_hand() -> None:
    """MacKinnon and White (1985): residuals divided by 1 - h, through the diagonal of the sandwich."""
    rng = np.random.default_rng(4)
    x, noise = rng.standard_normal(30), rng.standard_normal(30)
    y = 0.2 + 0.5 * x + noise * (1 + x**2)
    mean, slope = error_effects(y.tolist(), {"length": x.tolist()}, [str(n) for n in range(30)])
    design = np.column_stack([np.ones(30), x - x.mean()])
    bread = np.linalg.inv(design.T @ design)
    beta = bread @ design.T @ y
    residuals = (y - design @ beta) / (1 - np.einsum("ij,jk,ik->i", design, bread, design))
    sandwich = bread @ (design.T * residuals**2) @ design @ bread
    assert (mean.value, slope.value) == pytest.approx(beta)
    # 2.0484 is the 97.5 % quantile of t with 28 degrees of freedom.
    half = [(one.high or 0) - (one.value or 0) for one in (mean, slope)]
    assert half == pytest.approx(2.0484 * np.sqrt(np.diag(sandwich)), rel=1e-4)
    assert slope.method == "HC3, t(28)"


def test_leaving_out_a_cluster_at_a_time_is_the_same_by_hand() -> None:
    """CR3's covariance is the sum of squared changes of the estimate as each cluster is left out."""
    rng = np.random.default_rng(5)
    x, y, clusters = rng.standard_normal(24), rng.standard_normal(24), [f"c{n // 3}" for n in range(24)]
    groups = [f"g{n // 3}" for n in range(24)]
    (found,) = error_effects(y.tolist(), {"length": x.tolist()}, clusters, groups)

    def slope(left_out: int) -> float:
        own = [n for n in range(24) if n // 3 != left_out]
        centred = [v[own] - np.repeat(v[own].reshape(-1, 3).mean(1), 3) for v in (x, y)]
        return float(centred[0] @ centred[1] / (centred[0] @ centred[0]))

    changes = sum((slope(cluster) - slope(-1)) ** 2 for cluster in range(8))
    assert found.value == pytest.approx(slope(-1))
    assert (found.high or 0) - slope(-1) == pytest.approx(2.3646 * changes**0.5, rel=1e-4)  # t with 7
    assert found.method == "CR3, t(7)"


def test_families_without_the_judges_own_are_compared_with_the_first() -> None:
    runs = [one._replace(judges=["claude"]) for one in family_runs(1, 0.0, 2.0)]
    found = {one.name: one for one in family_bias(runs)}
    assert list(found) == ["length, within items", "family llama against gpt", "family qwen against gpt"]
    assert holds(found["family llama against gpt"], -2.0)
    assert holds(found["family qwen against gpt"], -2.0)


def test_languages_are_compared_and_effects_that_cannot_be_told_apart_are_not_given() -> None:
    rng = np.random.default_rng(2)

    def item(n: int, length: float) -> JudgedItem:
        chinese = n % 2 == 1
        people = 3 + float(rng.standard_normal())
        return judged_item(n, people + 1.5 * chinese + float(rng.standard_normal()) / 4, people, length=length,
                           language="zh" if chinese else "en")  # fmt: skip

    found = {one.name: one for one in run_bias([item(n, float(rng.standard_normal())) for n in range(40)])}
    assert holds(found["language zh"], 1.5)
    same = run_bias([item(n, float(n % 2)) for n in range(40)])
    assert {one.value for one in same} == {None}
    assert same[0].method == "the labels cannot tell these effects apart"


def test_the_order_of_the_rubric_is_a_paired_difference() -> None:
    forward = {str(n): judged_item(n, 3.0) for n in range(4)}
    reverse = {str(n): judged_item(n, score) for n, score in enumerate((3.5, 3.0, 4.0))}
    found = order_bias(forward, reverse)
    # Differences .5, 0, 1: mean .5, standard error .5 / sqrt(3), t(2) 4.3027.
    assert (found.value, found.n) == (0.5, 3)
    assert (found.high or 0) - 0.5 == pytest.approx(4.3027 * 0.5 / 3**0.5, rel=1e-4)
