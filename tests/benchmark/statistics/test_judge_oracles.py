"""The regression estimator beside ppi-python 0.2.3 and cje-eval 0.9.3, on what `tools/judge_oracles` stored of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.calibration.corrected_mean import CorrectedMean, regression

STORED = json.loads((Path(__file__).parent / "judge_oracles.json").read_text())


def named(one: dict[str, Any]) -> str:
    return f"{one['error']}-{len(one['labels'])}"


def regression_of(one: dict[str, Any]) -> CorrectedMean:
    """The labels are those of the first items, which are a simple random sample."""
    return regression(one["scores"], dict(enumerate(one["labels"])))


@pytest.mark.parametrize("one", STORED, ids=named)
def test_the_point_is_that_of_ppi_with_the_same_slope(one: dict[str, Any]) -> None:
    """`ppi_mean_pointestimate` with lam = b (1 - n/N)."""
    assert regression_of(one).value == pytest.approx(one["ppi_regression"], abs=1e-12)


@pytest.mark.parametrize("one", [one for one in STORED if one["error"] != "blunders"], ids=named)
def test_the_mean_and_its_interval_are_near_those_of_cje(one: dict[str, Any]) -> None:
    value, error, low, high = one["cje"]
    found = regression_of(one)
    assert found.low is not None
    assert found.high is not None
    assert abs(found.value - value) <= 1.2 * error
    assert 0.6 <= (found.high - found.low) / (high - low) <= 1.1
