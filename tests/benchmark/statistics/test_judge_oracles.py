"""The regression estimator beside ppi-python 0.2.3 and cje-eval 0.9.3, on what `tools/judge_oracles` stored of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.calibration.corrected_mean import regression

STORED = json.loads((Path(__file__).parent / "judge_oracles.json").read_text())


@pytest.mark.parametrize("one", STORED, ids=lambda one: f"{one['error']}-{len(one['labels'])}")
def test_the_regression_is_that_of_ppi_python_and_near_cje_eval(one: dict[str, Any]) -> None:
    """`ppi_mean_pointestimate` with lam = b (1 - n/N); the labels are those of the first items."""
    found = regression(one["scores"], dict(enumerate(one["labels"])))
    assert found.value == pytest.approx(one["ppi_regression"], abs=1e-12)
    if one["error"] != "blunders":
        value, error, low, high = one["cje"]
        assert abs(found.value - value) <= 1.2 * error
        assert 0.6 <= ((found.high or 0) - (found.low or 0)) / (high - low) <= 1.1
