"""The estimate of GPU hours: the formulas by hand, what must grow with what, and the items of Table 1."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from estimate_gpu_hours import Assumptions, Device, ModelShape, Workload, estimate, measure_workload

WORK = Workload(items=1000, prompt=900.0, shared=400.0, output=100.0)
SMALL = ModelShape("1B", 1e9, layers=10, kv_heads=2, head_width=50, gpus=1)
DEVICE = Device(matrix_rate=100e12, bandwidth=1e12, memory=10e9)
PLAIN = Assumptions(matrix_share=0.5, bandwidth_share=0.5, memory_share=1.0, sequences=100, start_minutes=6.0)


def test_writing_is_bound_by_memory_until_the_batch_is_large() -> None:
    found = estimate(SMALL, WORK, DEVICE, PLAIN)
    step = (2e9 + 100 * 950 * 4000) / 0.5e12  # the weights, and each sequence's cache half-way
    assert found.sequences == 100
    assert found.writing * 3600 == pytest.approx(1000 * 100 / 100 * step)
    slow = replace(DEVICE, matrix_rate=1e12)
    assert estimate(SMALL, WORK, slow, PLAIN).writing * 3600 == pytest.approx(1000 * 2 * 1e9 * 100 / 0.5e12)


def test_hours_are_of_every_gpu_that_holds_the_model() -> None:
    assumed = replace(PLAIN, parallel_share=1.0)
    one, two = (estimate(replace(SMALL, gpus=gpus), WORK, DEVICE, assumed) for gpus in (1, 2))
    assert one.gpu_hours == one.wall_hours
    assert one.start == pytest.approx(0.1)
    assert two.gpu_hours - one.gpu_hours == pytest.approx(0.1)  # both wait for the start
    told = estimate(replace(SMALL, gpus=2), WORK, DEVICE, replace(assumed, parallel_share=0.5))
    assert told.reading == pytest.approx(2 * two.reading)


def test_a_run_has_the_items_of_table_1_and_its_budgets() -> None:
    work = measure_workload(len)
    assert work.items == 4650
    assert 0 < work.shared < work.prompt
    assert 96 < work.output < 192
    assert measure_workload(len, thinking=1000).output == pytest.approx(work.output + 1000)
    assert measure_workload(len, sap="none").prompt < work.prompt
