"""The synthetic split: Table 1's shape, the same bytes each time, texts of the lengths it promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from h2htalk.data.subtasks import SUBTASKS

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from make_synthetic_split import scenario_counts, write_split


def test_the_default_has_the_counts_of_table_1() -> None:
    assert scenario_counts(4650) == {name: subtask.count for name, subtask in SUBTASKS.items()}


@pytest.mark.parametrize("count", [1, 7, 100, 500, 4651])
def test_any_other_count_is_met_exactly(count: int) -> None:
    assert sum(scenario_counts(count).values()) == count


def test_two_calls_give_the_same_bytes_and_another_seed_gives_others(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write_split(tmp_path / name, 60, seed)
    a, b, c = ((tmp_path / name / "scenarios.jsonl").read_bytes() for name in "abc")
    assert a == b != c
