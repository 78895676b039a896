"""A judge beside people: agreement, planted biases, and means corrected by labels (tools measure their coverage)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, variance

import numpy as np
import pytest
from judged_made import judged_item
from scipy import stats
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from h2htalk.benchmark.calibration.calibrate import (
    Correction,
    Finding,
    agreements,
    correct,
    error_effects,
    weighted_kappa,
)
from h2htalk.benchmark.calibration.corrected_mean import JudgedItem, draw_labels, regression, strata_of, stratified


def test_strata_end_at_the_ranks_and_each_gives_a_quarter_of_the_labels() -> None:
    scores = [float(n % 17) for n in range(200)]
    strata = strata_of(scores, 3)
    assert [strata.count(n) for n in range(4)] == [24, 56, 60, 60]
    assert all(scores[a] <= scores[b] for a in range(200) for b in range(200) if strata[a] < strata[b])
    drawn = draw_labels(scores, 100, 3)
    assert [sum(strata[at] == n for at in drawn) for n in range(4)] == [24, 25, 26, 25]
    assert drawn == draw_labels(scores, 100, 3)
    # Of four items, four labels drew three: what the last strata could not take was lost.
    assert all(len(draw_labels([float(n) for n in range(size)], size)) == size for size in range(1, 30))


def test_check_values() -> None:
    """40 items with a mean score of 4, of which 8 are labelled; half widths over these items, and over such items."""
    own, ratings = [3.5, 4.5, 5, 2, 4.5, 5, 4, 4.5], [3, 4, 5, 2.5, 4.5, 3.5, 5, 4]
    scores, labels = [*own, *[(160 - sum(own)) / 32] * 32], dict(enumerate(ratings))
    for found, value, here, df in (
        (regression(scores, labels), 3.8591, 0.5567, 6),
        (stratified(scores, labels, [0] * 40), 3.8125, 0.5630, 7),
    ):
        assert [found.value, (found.high_here or 0) - found.value] == pytest.approx([value, here], abs=1e-4)
        v, u = (here / stats.t.ppf(0.975, df)) ** 2, variance(ratings) / 40  # Satterthwaite's degrees of freedom
        over = stats.t.ppf(0.975, (v + u) ** 2 / (v * v / df + u * u / 7)) * (v + u) ** 0.5
        assert (found.high or 0) - found.value == pytest.approx(over, abs=1e-4)


def test_one_score_alone_says_no_slope() -> None:
    """A judge that says yes once among the labelled replies divided by zero: that label decided the slope alone."""
    scores = [1.0, *[0.0] * 9]
    found = regression(scores * 3, {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0, 4: 0.0})
    assert found.value == pytest.approx(0.4)  # the labels' mean
    assert found.low is not None


def test_the_mean_of_these_items_is_never_less_certain_than_that_of_such_items() -> None:
    """Errors that vary in one stratum gave these items t with 1 degree of freedom: [1.54, 2.77] beside [1.61, 2.70]."""
    scores = [float(n % 20) / 4 for n in range(40)]
    strata, drawn = strata_of(scores), draw_labels(scores, 8)
    errors = iter((0.5, -0.5))
    labels = {at: scores[at] - (next(errors) if strata[at] == 0 else 0.25) for at in drawn}
    found = stratified(scores, labels, strata)
    spread = (5 / 40) ** 2 * (1 - 2 / 5) * 0.5 / 2
    assert (found.high_here or 9) - found.value == pytest.approx(2.776445 * spread**0.5, rel=1e-6)  # t with 4
    assert (found.high or 0) >= (found.high_here or 9)


ITEMS = 350


def judged(seed: int, labels: int, drawn: bool = False) -> tuple[list[JudgedItem], list[int]]:
    """Items of a judge that prefers length, of which people labelled some, drawn by strata or at random."""
    rng = np.random.default_rng(seed)
    length = rng.standard_normal(ITEMS)
    people = np.clip(np.round(2 * (3.8 + 1.1 * rng.standard_normal(ITEMS))) / 2, 0, 5)
    scores = (people + 0.2 + 0.4 * length + 0.5 * rng.standard_normal(ITEMS)).tolist()
    own = {*(draw_labels(scores, labels, seed) if drawn else rng.choice(ITEMS, labels, replace=False).tolist())}
    ratings = [float(rating) if at in own else None for at, rating in enumerate(people)]
    s = rng.random(ITEMS).tolist()
    return [judged_item(n, f, ratings[n], length=length[n], s=s[n]) for n, f in enumerate(scores)], strata_of(
        scores, seed
    )


def ratings(items: Sequence[JudgedItem]) -> dict[int, float]:
    return {at: one.people for at, one in enumerate(items) if one.people is not None}


def scores_of(items: Sequence[JudgedItem]) -> list[float]:
    return [one.score for one in items]


def refusal(found: Correction) -> str:
    assert found.mean is None
    return found.estimator


def test_the_estimator_depends_on_how_the_labels_came() -> None:
    (drawn, strata), (chance, _) = judged(3, 100, True), judged(3, 100)
    for mean, expected in (
        (correct("levels", "R", drawn, strata).mean, stratified(scores_of(drawn), ratings(drawn), strata)),
        (correct("levels", "R", chance, random=True).mean, regression(scores_of(chance), ratings(chance))),
    ):
        assert mean is not None
        assert mean == expected
    # Labels whose choice is unknown were once corrected after a test that overlooked half of the choices by length.
    assert "nobody knows which items" in refusal(correct("levels", "R", chance))
    everything, _ = judged(3, ITEMS)
    found = correct("levels", "R", everything)
    assert (found.estimator, found.labels, found.items) == ("all labelled", ITEMS, ITEMS)
    assert found.mean is not None
    assert found.mean.low_here == found.mean.value == pytest.approx(fmean(ratings(everything).values()))
    # Answers that nobody rated vary within an item: nothing is said of these very items.
    found = correct("levels", "R", [replace(one, whole=at > 0) for at, one in enumerate(everything)])
    assert found.mean is not None
    assert (found.mean.low_here, found.mean.low is None) == (None, False)


def test_what_cannot_be_corrected_is_refused_with_the_reason() -> None:
    assert refusal(correct("levels", "R", judged(1, 3)[0], random=True)) == "3 labels, and 4 are needed"
    drawn, strata = judged(1, 40, True)
    few = [one if at in [*ratings(drawn)][:7] else replace(one, people=None) for at, one in enumerate(drawn)]
    assert refusal(correct("levels", "R", few, strata)) == "7 labels, and 8 are needed"
    same = [one if one.people is None else replace(one, people=2.0, panel=(2.5,)) for one in drawn]
    assert "the same on all labelled items" in refusal(correct("levels", "R", same, strata))
    alone = [one if h == 3 else replace(one, people=None) for one, h in zip(drawn, strata, strict=True)]
    assert "two are needed" in refusal(correct("levels", "R", alone, strata))


@pytest.mark.parametrize("drawn", [True, False])
def test_j_corrects_the_rating_alone(drawn: bool) -> None:
    """J = 3 S + 0.4 R, where S needs no correction; section 2 of the estimators' reference."""
    items, strata = judged(7, 48, drawn)
    s, how = np.array([one.s for one in items]), (strata if drawn else None, not drawn)
    r, j = correct("levels", "R", items, *how).mean, correct("levels", "J", items, *how)
    assert r is not None
    assert j.mean is not None
    assert j.own == pytest.approx(fmean(3 * s) + 0.4 * fmean(scores_of(items)))
    assert j.mean.value == pytest.approx(fmean(3 * s) + 0.4 * r.value)
    assert (j.mean.high_here or 0) - j.mean.value == pytest.approx(0.4 * ((r.high_here or 0) - r.value))
    labels, weights = [rating + 7.5 * s[at] for at, rating in ratings(items).items()], np.ones(48)
    if drawn:
        own = [strata[at] for at in ratings(items)]
        weights = np.array([strata.count(h) / own.count(h) for h in own])
    mean = np.average(labels, weights=weights)
    beyond = np.average((labels - mean) ** 2, weights=weights) * 48 / 47 / ITEMS
    here, over = ((end or 0) - j.mean.value for end in (j.mean.high_here, j.mean.high))
    assert over**2 == pytest.approx(here**2 + 4 * 0.16 * beyond, rel=0.05)  # t squared is nearly 4


def agreement_of(judge: list[float], people: list[float]) -> dict[str, Finding]:
    items = [judged_item(at, score, rating) for at, (score, rating) in enumerate(zip(judge, people, strict=True))]
    return {one.name: one for one in agreements(items)}


def test_kappa_and_spearman_equal_other_programs() -> None:
    rng = np.random.default_rng(0)
    people = np.clip(np.round(2 * (3.5 + rng.standard_normal(60))) / 2, 0, 5)
    judge = np.clip(np.round(6 * (people + 0.3 + 0.6 * rng.standard_normal(60))) / 6, 0, 5)
    found = agreement_of(judge.tolist(), people.tolist())
    whole = [np.floor(side + 0.5).astype(int) for side in (judge, people)]
    kappa = cohen_kappa_score(*whole, weights="quadratic")
    assert found["weighted kappa"].value == pytest.approx(kappa, abs=1e-12)
    assert found["Spearman"].value == pytest.approx(spearmanr(judge, people).statistic, abs=1e-12)
    assert all((one.low or 9) < (one.value or 9) < (one.high or 0) for one in found.values())
    # Half points are rounded up on both sides, and a side that does not vary has no correlation.
    assert agreement_of([2.5, 1.5, 4.0], [3, 2, 4])["weighted kappa"].value == pytest.approx(1.0)
    constant = agreement_of([3.0] * 20, [float(n % 5) for n in range(20)])
    assert (constant["Spearman"].value, constant["weighted kappa"].value) == (None, 0.0)
    # Weights count as repeated items.
    drawn = [0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 11, 11]
    weights = np.bincount(drawn, minlength=60)[None].astype(float)
    kappa = cohen_kappa_score(*(side[drawn] for side in whole), weights="quadratic")
    assert weighted_kappa(np.array(whole), weights)[0] == pytest.approx(kappa, abs=1e-12)


def test_a_cluster_is_left_out_at_a_time() -> None:
    items = [
        replace(one, cluster=f"c{at // 3}", weight=1.0 + at % 2) for at, one in enumerate(judged(5, ITEMS)[0][:24])
    ]
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
    for few in ([replace(one, length=1.0) for one in items], items[:2]):
        assert {(one.value, one.method) for one in error_effects(few)} == {(None, "too few items decide it")}
