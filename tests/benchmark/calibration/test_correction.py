"""Which estimator corrects a mean, and when none does."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from calibration_made import judged_item

from h2htalk.benchmark.calibration.calibrate import Correction, LabelSample, correct
from h2htalk.benchmark.calibration.corrected_mean import draw_labels, regression, strata_of, stratified


def judged(seed: int, labels: int, how: str, items: int = 350) -> tuple[LabelSample, float]:
    """A judge that prefers length, labels drawn by strata or at random, and people's mean of the items."""
    rng = np.random.default_rng(seed)
    length = rng.standard_normal(items)
    people = np.clip(np.round(2 * (3.8 + 1.1 * rng.standard_normal(items))) / 2, 0, 5)
    scores = (people + 0.2 + 0.4 * length + 0.5 * rng.standard_normal(items)).tolist()
    own = rng.choice(items, labels, replace=False).tolist()
    if how == "plan":
        own = draw_labels(scores, labels, seed)
    made = [judged_item(n, f, length=x) for n, (f, x) in enumerate(zip(scores, length.tolist(), strict=True))]
    errors = {at: scores[at] - float(people[at]) for at in own}
    strata = strata_of(scores, seed) if how == "plan" else None
    return LabelSample(made, scores, errors, [0.0] * items, strata, how == "random"), float(people.mean())


def ratings(sample: LabelSample) -> dict[int, float]:
    return {at: sample.scores[at] - error for at, error in sample.errors.items()}


def test_the_estimator_depends_on_how_the_labels_came() -> None:
    drawn, chance, unknown = (judged(3, 100, how)[0] for how in ("plan", "random", ""))
    assert correct("levels", "R", drawn).mean == stratified(drawn.scores, ratings(drawn), drawn.strata or [])
    assert correct("levels", "R", chance).mean == regression(chance.scores, ratings(chance))
    # Labels whose choice is unknown were once corrected after a test that overlooked half of the choices by length.
    assert "nobody knows which items" in refusal(correct("levels", "R", unknown))
    everything = replace(judged(3, 350, "")[0])
    found = correct("levels", "R", everything)
    assert found.estimator == "all labelled"
    assert found.mean is not None
    assert found.mean.low_here == found.mean.value == pytest.approx(fmean(ratings(everything).values()))


def refusal(found: Correction) -> str:
    assert found.mean is None
    return found.estimator


def test_what_cannot_be_corrected_is_refused_with_the_reason() -> None:
    assert refusal(correct("levels", "R", judged(1, 3, "random")[0])) == "3 labels, and 4 are needed"
    drawn, _ = judged(1, 20, "plan")
    few = replace(drawn, errors=dict(list(drawn.errors.items())[:7]))
    assert refusal(correct("levels", "R", few)) == "7 labels, and 8 are needed"
    same = replace(drawn, errors=dict.fromkeys(drawn.errors, 0.5))
    assert "the same on all labelled items" in refusal(correct("levels", "R", same))
    one_stratum = {at: e for at, e in judged(1, 40, "plan")[0].errors.items() if (drawn.strata or [])[at] == 0}
    assert "two are needed" in refusal(correct("levels", "R", replace(drawn, errors=one_stratum)))


@pytest.mark.parametrize("how", ["plan", "random"])
def test_j_corrects_the_rating_alone(how: str) -> None:
    """J = 3 S + 0.4 R, where S needs no correction; section 2 of the estimators' reference."""
    sample, _ = judged(7, 48, how)
    s = np.random.default_rng(1).random(350)
    r = correct("levels", "R", sample).mean
    j = correct("levels", "J", replace(sample, known=(7.5 * s).tolist()), 0.4)
    assert r is not None
    assert j.mean is not None
    assert j.own == pytest.approx(fmean(3 * s) + 0.4 * fmean(sample.scores))
    assert j.mean.value == pytest.approx(fmean(3 * s) + 0.4 * r.value)
    assert (j.mean.high_here or 0) - j.mean.value == pytest.approx(0.4 * ((r.high_here or 0) - r.value))
    labels = [rating + 7.5 * s[at] for at, rating in ratings(sample).items()]
    weights = np.ones(48)
    if how == "plan":
        strata = [(sample.strata or [])[at] for at in sample.errors]
        weights = np.array([(sample.strata or []).count(h) / strata.count(h) for h in strata])
    mean = np.average(labels, weights=weights)
    beyond = np.average((labels - mean) ** 2, weights=weights) * 48 / 47 / 350
    here, over = ((end or 0) - j.mean.value for end in (j.mean.high_here, j.mean.high))
    # t squared is nearly 4.
    assert over**2 == pytest.approx(here**2 + 4 * 0.16 * beyond, rel=0.05)
