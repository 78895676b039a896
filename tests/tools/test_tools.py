"""Made splits, the files that a call passes through, and published accuracies of votes: `tools/`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from votes_made import public_votes

from h2htalk.data.subtasks import SUBTASKS
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import VoteResult, majority

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import make_synthetic_split
from vote_measures import expected_accuracy


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


@pytest.mark.slow
def test_every_window_is_found_in_the_package() -> None:
    tool = Path(make_synthetic_split.__file__).with_name("trace_files.py")
    done = subprocess.run([sys.executable, tool], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    counts = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert len(counts) == 9
    assert min(counts) > 2


def f1(decisions: dict[str, VoteResult], gold: dict[str, str], label: str) -> float:
    found = {item for item, decision in decisions.items() if decision.label == label}
    right = {item for item, one in gold.items() if one == label}
    return 2 * len(found & right) / (len(found) + len(right))


@pytest.mark.parametrize(
    ("name", "counted", "ties", "modelled"),
    # Zheng et al., PVLDB 10(5) 2017, Table 6: d_possent Dawid-Skene 96.00, majority 93.31 with random ties.
    [("d_possent", 93.35, 43, 96.0), ("snow_rte", 89.69, 65, 92.75)],
)
def test_published_accuracies(shared_data: Path, name: str, counted: float, ties: int, modelled: float) -> None:
    votes, gold = public_votes(shared_data, name)
    results = majority(votes)
    assert sum(result.label is None for result in results.values()) == ties
    assert round(100 * expected_accuracy(results, gold), 2) == counted
    for iterations in (20, None):
        results = dawid_skene(votes, iterations=iterations)
        assert expected_accuracy(results, gold) == pytest.approx(modelled / 100, abs=1e-12)
        assert name != "d_possent" or round(100 * f1(results, gold, "1"), 2) == 95.66
