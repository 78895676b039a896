"""Labels that were chosen by length: they are noticed, and the regression on length corrects for it."""

from __future__ import annotations

import numpy as np
import pytest

from h2htalk.benchmark.statistics.corrected_mean import regression
from h2htalk.benchmark.statistics.transport import labels_unlike_rest, regressed


def judged(rng: np.random.Generator, items: int = 350) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """People's ratings, the scores of a judge that prefers length, and the length."""
    length = rng.standard_normal(items)
    ratings = np.clip(np.round(2 * (3.8 + 1.1 * rng.standard_normal(items))) / 2, 0, 5)
    return ratings, ratings + 0.2 + 0.4 * length + 0.5 * rng.standard_normal(items), length


def chosen_by_length(rng: np.random.Generator, length: np.ndarray, n: int) -> list[int]:
    weight = np.exp(0.8 * length)
    return rng.choice(len(length), n, replace=False, p=weight / weight.sum()).tolist()


def test_a_random_choice_is_seldom_called_unlike_and_a_choice_by_length_mostly() -> None:
    alarms = found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        _, scores, length = judged(rng)
        covariates = np.column_stack([scores, length])
        alarms += labels_unlike_rest(covariates, rng.permutation(350)[:50].tolist()) < 0.05
        found += labels_unlike_rest(covariates, chosen_by_length(rng, length, 50)) < 0.05
    assert alarms <= 6
    assert found >= 36


def test_the_regression_on_length_corrects_labels_that_were_chosen_by_it() -> None:
    truth = float(judged(np.random.default_rng(10**6), 400_000)[0].mean())
    cured = plain = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        ratings, scores, length = judged(rng)
        labels = {at: float(ratings[at]) for at in chosen_by_length(rng, length, 100)}
        found = regressed(scores.tolist(), labels, length.tolist())
        assert found.low is not None
        assert found.high is not None
        cured += found.low <= truth <= found.high
        other = regression(scores.tolist(), labels)
        plain += (other.low or 9) <= truth <= (other.high or 0)
    assert cured >= 182
    assert plain < 150


def test_labels_of_one_length_cannot_be_regressed_on_it() -> None:
    with pytest.raises(ValueError, match="cannot be regressed"):
        regressed([1.0] * 10, dict.fromkeys(range(5), 2.0), [3.0] * 10)
