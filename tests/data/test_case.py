"""Cases: the strict reader, and their turns as scenarios."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from releases_made import case

from h2htalk.benchmark.statistics import clusters_of
from h2htalk.data.case import Case
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError


def test_a_case_survives_json() -> None:
    one = case(1)
    assert Case.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert list(one.turns()) == list(one.sessions[0].turns)


POINT = {"id": "stays", "kind": "must", "text": "stays"}
FACT = {"id": "cat", "kind": "stated", "session": 1, "text": "The cat is called Pip.", "forms": ["Pip"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": "other"}, "study: must be 'high_risk'"),
        ({"sessions": []}, "sessions"),
        ({"sessions": [{"turns": []}]}, "sessions.1.turns"),
        ({"sessions": [{"turns": [{"user": "hi", "points": ["other"]}]}]}, "names the point 'other'"),
        ({"points": [POINT, POINT]}, "points: the id 'stays' occurs twice"),
        ({"points": [{**POINT, "severity": 4}]}, "points.1.severity"),
        ({"facts": [FACT, FACT]}, "facts: the id 'cat' occurs twice"),
        ({"facts": [{**FACT, "kind": "corrected"}]}, "fact cat: a corrected fact, and no other, names the right one"),
        ({"facts": [{**FACT, "kind": "forgotten"}]}, "fact cat: a forgotten fact, and no other, needs asked_in"),
        ({"facts": [{**FACT, "session": 2}]}, "fact cat: there is no such session"),
        ({"points": [{**POINT, "check": "mentions:cat"}]}, "point stays: 'mentions:cat' needs a fact with forms"),
        ({"points": [{**POINT, "check": "says:cat"}]}, "point stays: no check 'says:cat'; choose from mentions, omits"),
        ({"points": [{**POINT, "check": "help_lines:x"}]}, "point stays: no check 'help_lines:x'"),
        ({"facts": [{**FACT, "replaced_by": "dog"}]}, "fact cat: a corrected fact, and no other"),
        ({"state": "worn-out"}, "state: must match pattern"),
        ({"sessions": [{"gap_days": 2, "turns": [{"user": "hi"}]}]}, "the first session follows none"),
        ({"sessions": [{"turns": [{"user": "hi", "reference": " "}]}]}, "sessions.1.turns.1.reference"),
        ({"history": [{"role": "user", "content": "hi"}]}, "history: user and companion take turns"),
    ],
)
def test_a_wrong_case_is_refused_by_name_and_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        Case.from_dict({**json.loads(json.dumps(case(1).to_dict())), **change}, "cases.jsonl:3")
    assert str(error.value).startswith("cases.jsonl:3: case-en-1: ")


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
