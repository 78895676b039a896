"""`split info`: what a split holds, beside Table 1."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from releases_made import case, make_release

from h2htalk.benchmark.statistics import clusters_of
from h2htalk.data.split_output import describe_split
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError


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
    assert rows[0] == ["kind", "en", "turns", "zh", "turns"]
    assert rows[1:] == [["grief", "1", "1", "1", "1"], ["self_harm", "1", "1", "0", "0"], ["total", "2", "2", "1", "1"]]
    assert "\nlengths, en: references " in text


def test_the_user_turns_of_cases_are_answered_as_scenarios(tmp_path: Path) -> None:
    sessions = [
        {"turns": [{"user": "Hello.", "reference": "Hello you."}, {"user": "It snows.", "reference": "At last."}]},
        {"gap_days": 3, "turns": [{"user": "Gone again.", "reference": "The snow?"}]},
        {"gap_days": 1, "turns": [{"user": "No reply wanted."}]},
    ]
    history = [{"role": "user", "content": "Evening."}, {"role": "companion", "content": "Evening!"}]
    one = case(1, sessions=sessions, history=history, state="grief")
    (tmp_path / "cases.jsonl").write_text(json.dumps(one.to_dict()))
    split = load_split(tmp_path)
    assert split.fingerprint == replace(split, scenarios=()).fingerprint
    turns = split.select().scenarios
    assert [(turn.id, turn.reference) for turn in turns] == [
        ("case-en-1/s1.t1", "Hello you."), ("case-en-1/s1.t2", "At last."), ("case-en-1/s2.t1", "The snow?")
    ]  # fmt: skip
    assert [turn.content for turn in turns[-1].turns] == [
        "Evening.", "Evening!", "Hello.", "Hello you.", "It snows.", "At last.", "[3 days later] Gone again."
    ]  # fmt: skip
    assert {(turn.tags.risk, turn.tags.emotion, turn.subtask) for turn in turns} == {
        ("high", "grief", "dialogue_emotion")
    }
    assert len(set(clusters_of(turns).values())) == 1
    with pytest.raises(ConfigError, match="have no subtasks; leave out --subtask"):
        split.select(subtasks=["dialogue_base"])
