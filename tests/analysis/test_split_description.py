"""`split info`: what a split holds, beside Table 1."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from releases_made import case, make_release

from h2htalk.analysis.split_description import describe_split
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS


def test_counts_stand_by_subtask_and_language_beside_table_1() -> None:
    split = load_split("mini@1")
    counts = Counter((s.subtask, s.language) for s in split.scenarios)
    rows = {line.split()[0]: line.split()[1:] for line in describe_split(split).splitlines() if line.strip()}
    assert rows["subtask"] == ["en", "zh", "Table", "1"]
    for name, subtask in SUBTASKS.items():
        assert rows[name] == [str(counts[name, "en"]), str(counts[name, "zh"]), f"{subtask.count:,}"]
    assert describe_split(split).startswith(f"mini 1: {len(split.scenarios)} scenarios, CC-BY-4.0\n")
    assert rows["total"][2] == "4,650"


def test_several_and_private_references_are_counted() -> None:
    split = load_split("mini@1")
    assert "references:" not in describe_split(split)
    first, second, *rest = split.scenarios
    changed = (replace(first, references=("One.", "Two.")), replace(second, references=()), *rest)
    text = describe_split(replace(split, scenarios=changed, references_sha256="0a" * 32))
    assert f"\nthe file of the private references has the SHA-256 {'0a' * 32}\n" in text
    assert "\nreferences: 1 of the scenarios have several, 1 have none (private)\n" in text


def test_cases_are_counted_by_kind_and_language(tmp_path: Path) -> None:
    folder = make_release(tmp_path / "release", cases=[case(1), case(2, kind="self_harm"), case(1, "zh")])
    split = load_split(f"{folder}#high_risk")
    text = describe_split(split)
    assert text.startswith("made-high_risk-test 1.0.0: 3 cases, CC-BY-4.0\n")
    rows = [line.split() for line in text.split("\n\n")[1].splitlines()]
    assert rows[0] == ["kind", "en", "en", "turns", "zh", "zh", "turns"]
    assert rows[1:] == [["grief", "1", "1", "1", "1"], ["self_harm", "1", "1", "0", "0"], ["total", "2", "2", "1", "1"]]
    assert "\nen: characters of a reference  " in text
