"""The mean corrected by people's labels: check values, and what is refused; tools measure its coverage."""

from __future__ import annotations

from statistics import fmean, variance

import numpy as np
import pytest
from scipy import stats

from h2htalk.benchmark.calibration.corrected_mean import draw_labels, regression, strata_of, stratified


def judged(seed: int, items: int = 350) -> tuple[list[float], list[float]]:
    """Scores of a judge that is .4 too kind, and people's ratings."""
    rng = np.random.default_rng(seed)
    ratings = np.clip(np.round(2 * (3.8 + 1.1 * rng.standard_normal(items))) / 2, 0, 5)
    return (ratings + 0.4 + 0.5 * rng.standard_normal(items)).tolist(), ratings.tolist()


def test_all_labels_give_the_mean_of_the_labels() -> None:
    scores, ratings = judged(1, 60)
    labels = dict(enumerate(ratings))
    for found in (stratified(scores, labels, strata_of(scores)), regression(scores, labels)):
        assert found.value == pytest.approx(fmean(ratings))
        assert found.low_here == pytest.approx(found.high_here) or found.low_here is None
        assert found.low is not None
        assert found.high is not None
        assert found.low < found.value < found.high


def test_strata_end_at_the_ranks_and_each_gives_a_quarter_of_the_labels() -> None:
    scores = [float(n % 17) for n in range(200)]
    strata = strata_of(scores, 3)
    assert [strata.count(n) for n in range(4)] == [24, 56, 60, 60]
    assert all(scores[a] <= scores[b] for a in range(200) for b in range(200) if strata[a] < strata[b])
    drawn = draw_labels(scores, 100, 3)
    assert [sum(strata[at] == n for at in drawn) for n in range(4)] == [24, 25, 26, 25]
    assert drawn == draw_labels(scores, 100, 3)


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


def test_labels_that_agree_wholly_say_nothing_of_the_others() -> None:
    scores = [float(n % 5) for n in range(100)]
    labels = {at: scores[at] for at in draw_labels(scores, 20)}
    found = stratified(scores, labels, strata_of(scores))
    assert (found.value, found.low, found.low_here) == (pytest.approx(2.0), None, None)


def test_too_few_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="a stratum of 2 items has 0 labels"):
        stratified([1.0, 2.0, 3.0, 4.0] * 5, {0: 1.0, 1: 2.0}, strata_of([1.0, 2.0, 3.0, 4.0] * 5))
    with pytest.raises(ValueError, match="four are needed"):
        regression([1.0] * 9, {0: 1.0, 1: 2.0, 2: 3.0})


def test_one_score_alone_says_no_slope() -> None:
    """A judge that says yes once among the labelled replies divided by zero: that label decided the slope alone."""
    scores = [1.0, *[0.0] * 9]
    found = regression(scores * 3, {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0, 4: 0.0})
    assert found.value == pytest.approx(0.4)  # the labels' mean
    assert found.low is not None


def test_every_label_is_drawn_however_few_items_a_stratum_has() -> None:
    """Of four items, four labels drew three: what the last strata could not take was lost."""
    assert all(len(draw_labels([float(n) for n in range(size)], size)) == size for size in range(1, 30))


def test_the_mean_of_these_items_is_never_less_certain_than_that_of_such_items() -> None:
    """Errors that vary in one stratum gave these items t with 1 degree of freedom: [1.54, 2.77] beside [1.61, 2.70]."""
    scores = [float(n % 20) / 4 for n in range(40)]
    strata, drawn = strata_of(scores), draw_labels(scores, 8)
    errors = iter((0.5, -0.5))
    labels = {at: scores[at] - (next(errors) if strata[at] == 0 else 0.25) for at in drawn}
    found = stratified(scores, labels, strata)
    spread = (5 / 40) ** 2 * (1 - 2 / 5) * 0.5 / 2
    assert (found.high_here or 9) - found.value == pytest.approx(2.776445 * spread**0.5, rel=1e-6)  # t with 4
    rng = np.random.default_rng(0)
    for _ in range(200):
        labels = {at: scores[at] + rng.standard_normal() * (strata[at] == rng.integers(4)) for at in drawn}
        found = stratified(scores, labels, strata)
        if None not in (found.low, found.high, found.low_here, found.high_here):
            assert found.low <= found.low_here  # type: ignore[operator]
            assert found.high_here <= found.high  # type: ignore[operator]
