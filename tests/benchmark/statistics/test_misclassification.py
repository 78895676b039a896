"""The corrected share of yes: check values of the paper's formula, and what cannot be corrected."""

from __future__ import annotations

import pytest

from h2htalk.benchmark.statistics.misclassification import corrected_share


def test_the_check_values() -> None:
    share, (low, high) = corrected_share(400, 1000, 180, 200, 140, 200)
    assert (share, low, high) == pytest.approx((0.1667, 0.0564, 0.2627), abs=1e-4)


def test_a_judge_without_errors_keeps_its_share() -> None:
    share, (low, high) = corrected_share(30, 100, 50, 50, 50, 50)
    assert share == pytest.approx(0.3)
    assert low < 0.3 < high


@pytest.mark.parametrize(
    ("labels", "message"), [((0, 0, 5, 9), "both kinds"), ((5, 9, 0, 0), "both kinds"), ((4, 9, 5, 9), "chance")]
)
def test_what_cannot_be_corrected(labels: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        corrected_share(40, 100, *labels)
