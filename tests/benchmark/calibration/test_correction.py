"""Which estimator corrects a mean, and when none does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from judged_made import judged_item

from h2htalk.benchmark.calibration.calibrate import Correction, correct
from h2htalk.benchmark.calibration.corrected_mean import draw_labels, regression, strata_of, stratified
from h2htalk.benchmark.calibration.labels import JudgedItem

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
        assert (mean.value, mean.low, mean.high_here) == pytest.approx(
            (expected.value, expected.low, expected.high_here)
        )
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
