"""The synthetic split: Table 1's shape, the same bytes each time, texts of the lengths it promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from make_synthetic_split import make_scenarios, scenario_counts, write_split


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


def test_a_split_of_any_size_loads(tmp_path: Path) -> None:
    write_split(tmp_path / "split", 120)
    split = load_split(str(tmp_path / "split"))
    assert len(split.scenarios) == 120
    assert split.name == "synthetic-120"
    # Apart from null lines, hardly two alike.
    assert len({scenario.reference for scenario in split.scenarios}) > 110


def test_references_have_the_lengths_that_peers_were_measured_with() -> None:
    own_form = ("recollection_synthesis", "itinerary_middle")  # memory blocks and timetables
    for record in make_scenarios(400):
        if record["subtask"] in own_form:
            continue
        reference = record["reference"]
        if record["language"] == "en":
            assert 14 <= len(reference.split()) <= 34
        else:
            # A cut that ends in a mark loses it, and the full stop comes after.
            assert 24 <= len(reference) <= 53


def test_another_folder_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="holds other files"):
        write_split(tmp_path, 10)
