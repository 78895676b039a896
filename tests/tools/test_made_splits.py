"""Made splits: valid scenarios, Table 1's shape, the promised lengths, the same bytes each time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from h2htalk.data.subtasks import SUBTASKS

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import make_synthetic_split


@pytest.mark.parametrize("count", [1, 7, 100, 4650, 4651])
def test_the_synthetic_split_has_any_count_and_table_1s_by_default(count: int) -> None:
    counts = make_synthetic_split.scenario_counts(count)
    assert sum(counts.values()) == count
    assert count != 4650 or counts == {name: subtask.count for name, subtask in SUBTASKS.items()}


def test_two_calls_give_the_same_bytes_and_another_seed_gives_others(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        make_synthetic_split.write_split(tmp_path / name, 60, seed=seed)
    a, b, c = ((tmp_path / name / "scenarios.jsonl").read_bytes() for name in "abc")
    assert a == b != c
