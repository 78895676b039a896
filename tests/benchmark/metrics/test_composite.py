"""S is the plain mean of seven values (Eq. 2); an item is the mean of its samples, or unscored with a reason."""

from __future__ import annotations

import pytest

from h2htalk.benchmark.metrics.composite import SampleScore, composite_score, item_score, judged_score, lexical_mean
from h2htalk.benchmark.metrics.lexical import LexicalScores

HALF = LexicalScores(0.5, 0.4, 0.3, 0.2, 0.6, 0.4)
ONES = LexicalScores(1, 1, 1, 1, 1, 1)
ZEROS = LexicalScores(0, 0, 0, 0, 0, 0)


def values(lexical: LexicalScores, ss: float | None = None) -> dict[str, float]:
    return lexical._asdict() | ({} if ss is None else {"ss": ss})


def sample(number: int, lexical: LexicalScores, ss: float | None = None, **more: object) -> SampleScore:
    return SampleScore("a", number, values(lexical, ss), **more)  # type: ignore[arg-type]


def test_s_is_the_mean_of_the_seven() -> None:
    assert composite_score(values(HALF, 0.8)) == pytest.approx((2.4 + 0.8) / 7, abs=1e-12)
    assert lexical_mean(values(HALF)) == pytest.approx(0.4, abs=1e-12)


def test_s_stays_in_its_range() -> None:
    assert composite_score(values(ONES, 1.0)) == 1.0
    assert composite_score(values(ZEROS, -0.2)) == 0.0  # a cosine can be below zero
    assert composite_score(values(HALF, -0.2)) == pytest.approx(2.2 / 7)


def test_an_item_is_the_mean_of_its_samples() -> None:
    samples = [sample(1, ZEROS, 0.2, violations=("too_long",)), sample(0, ONES, 1.0), sample(2, HALF, 0.6)]
    item = item_score("a", samples)
    assert item.lexical == pytest.approx((0 + 1 + 0.4) / 3)
    assert item.ss == pytest.approx(0.6)
    assert item.s == pytest.approx((0.2 / 7 + 1 + 3.0 / 7) / 3)
    assert item.compliance == pytest.approx(2 / 3)
    assert item.unscored is None
    assert [s.sample for s in item.samples] == [0, 1, 2]


def test_an_empty_answer_is_scored_and_a_failed_call_is_not() -> None:
    assert item_score("a", [sample(0, ZEROS)]).lexical == 0.0
    failed = item_score("a", [SampleScore("a", 0, unscored="timeout")])
    assert (failed.lexical, failed.s, failed.compliance, failed.unscored) == (None, None, None, "timeout")


def test_one_failed_sample_leaves_the_item_unscored_with_the_first_reason() -> None:
    """The mean of the others would be the mean of another, easier item."""
    unscored = [SampleScore("a", n, unscored=reason) for n, reason in ((3, "timeout"), (1, "http_500"))]
    item = item_score("a", [unscored[0], sample(0, ONES, 1.0), unscored[1], sample(2, HALF, 0.5)])
    assert (item.lexical, item.ss, item.s, item.unscored) == (None, None, None, "http_500")
    assert len(item.samples) == 4


def test_j_by_hand() -> None:
    assert judged_score(0.5, 4.0) == pytest.approx(0.6 * 5 * 0.5 + 0.4 * 4.0)
