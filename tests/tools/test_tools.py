"""Made splits, the files that a call passes through, and published accuracies of votes: `tools/`."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from h2htalk.data.subtasks import SUBTASKS
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import VoteResult, majority
from support.votes import public_votes

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "exposure"))
import make_synthetic_split
import read_exposure
import release_reading
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


@pytest.mark.parametrize("people", [1.0, 0.8])
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_what_a_release_lets_through_is_as_computed(share: float, people: float) -> None:
    exact = release_reading.computed(share, 0.8, 0.05, people)
    drawn = release_reading.simulated(share, 0.8, 0.05, people, 100_000, random.Random(1))
    assert drawn.read_by_people == pytest.approx(exact.read_by_people, abs=0.004)
    assert drawn.harmful == pytest.approx(exact.harmful, abs=0.003)
    assert exact.harmful < share


def test_the_page_of_measurements_prints_what_the_formula_gives() -> None:
    page = (Path(__file__).parents[2] / "docs" / "measurements.md").read_text(encoding="utf-8")
    for share in release_reading.SHARES:
        exact = release_reading.computed(share, 0.8, 0.05, 1.0)
        row = f"| {100 * share:g} % | {100 * exact.read_by_people:.1f} %; {100 * exact.harmful:.2f} % |"
        assert row in page


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
def test_published_accuracies(
    shared_data: Path, name: str, counted: float, ties: int, modelled: float
) -> None:
    votes, gold = public_votes(shared_data, name)
    results = majority(votes)
    assert sum(result.label is None for result in results.values()) == ties
    assert round(100 * expected_accuracy(results, gold), 2) == counted
    for iterations in (20, None):
        results = dawid_skene(votes, iterations=iterations)
        assert expected_accuracy(results, gold) == pytest.approx(modelled / 100, abs=1e-12)
        assert name != "d_possent" or round(100 * f1(results, gold, "1"), 2) == 95.66


def test_a_reader_of_exposed_dialogues_is_scored_by_the_products_parser(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["the ferry", "twins", "by the lock"]
    shown = [
        (True, "I sail the ferry, have twins and live by the lock."),
        (False, "I sail the ferry."),
    ]
    dialogues = tmp_path / "dialogues.jsonl"
    with dialogues.open("w", encoding="utf-8") as file:
        for exposed, text in shown:
            details = words if exposed else words[:1]
            messages = [{"role": "user", "content": text}]
            line = {"language": "en", "exposed": exposed, "messages": messages, "details": details}
            print(json.dumps(line), file=file)
    folder = tmp_path / "reader"
    assert read_exposure.main(["draw", str(folder), str(dialogues)]) == 0
    questions = [
        json.loads(line)
        for line in (folder / "en-1.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(questions) == 2
    assert not (folder / "zh-1.jsonl").exists()
    assert "known_for" in (folder / "rules-en.txt").read_text(encoding="utf-8")
    with (folder / "out" / "en.jsonl").open("w", encoding="utf-8") as file:
        for question in questions:
            quoted = [
                word
                for word in [*words, "a lighthouse"]
                if word in question["prompt"] or word == "a lighthouse"
            ]
            entries = [
                {"message": 1, "quote": word, "tells": "", "kind": "work", "fits": "few"}
                for word in quoted
            ]
            print(
                json.dumps({"id": question["id"], "reply": json.dumps({"details": entries})}),
                file=file,
            )
    capsys.readouterr()
    assert read_exposure.main(["score", str(folder), str(dialogues)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "en: 0 dialogues unread; 2 quotes stand in no message of the user",
        "  with three or more details: named 1 of 1 (1.00; 0.21 to 1.00)",
        "  the others: named 0 of 1 (0.00; 0.00 to 0.79)",
        "  the authors' details of the first: quoted 3 of 3 (1.00; 0.44 to 1.00)",
    ]
