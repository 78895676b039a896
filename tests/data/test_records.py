"""Scenarios, personas, cases, dialogues and the table of subtasks: what is wrong is refused with file, line and id."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from h2htalk.benchmark.statistics.averages import clusters_of
from h2htalk.data.case import Case
from h2htalk.data.languages import RECORDS
from h2htalk.data.scenario import Dialogue, Persona, Scenario, bundled_personas
from h2htalk.data.settings import read_schema
from h2htalk.data.splits import load_split, read_item
from h2htalk.data.subtasks import (
    DIMENSIONS,
    MEMORY_CATEGORIES,
    SUBTASKS,
    TOTAL_COUNT,
    in_table_order,
)
from h2htalk.errors import ConfigError, DataError
from h2htalk.text.tokens import TOKENIZERS
from support.releases import case
from support.splits import changed, leaves

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from record_schemas import case_schema, scenario_schema

PLANS = [{"time": "08:00", "activity": "Opens the shop"}, {"time": "22:30", "activity": "Sleeps"}]
RECORD: dict[str, Any] = {
    "id": "s-1",
    "subtask": "dialogue_schedule",
    "language": "en",
    "persona": "nora",
    "inputs": {
        "today_schedule": PLANS,
        "current_activity": "Opens the shop",
        "history": [{"role": "user", "content": "Are you free?"}],
    },
    "reference": "At lunch, for you.",
    "tags": {"emotion": "joy", "complexity": "basic", "interaction": "casual", "risk": "none"},
    "provenance": {"source": "written here"},
    "licence": "CC0-1.0",
}


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_every_subtask_survives_its_own_dict(subtask: str) -> None:
    for scenario in load_split("mini@1").select(subtasks=[subtask]).scenarios:
        assert list(scenario.inputs) == [name for name, _ in SUBTASKS[subtask].inputs]
        stored = json.loads(json.dumps(scenario.to_dict()))
        assert Scenario.from_dict(stored) == scenario


@pytest.mark.parametrize("references", [[], ["At lunch.", "At noon."]])
def test_a_scenario_has_none_to_five_references(references: list[str]) -> None:
    record = {
        **changed(RECORD, {"reference": ...}),
        "references": references,
        "metadata": {"votes": [1], "note": None},
    }
    scenario = Scenario.from_dict(record)
    assert (list(scenario.references), scenario.reference) == (references, (references or [""])[0])
    assert Scenario.from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario
    assert list(Scenario.from_dict(RECORD).to_dict().items()) == list(
        RECORD.items()
    )  # one stays `reference`
    with pytest.raises(DataError, match="has both reference and references; keep references"):
        Scenario.from_dict({**RECORD, "references": references})


TEXTS = {"name": "Ada", "description": "You mend clocks.\n"}
ADA: dict[str, Any] = {"id": "ada", "relation": "close friend", "en": TEXTS}


def test_two_personas_are_bundled_in_both_languages() -> None:
    personas = bundled_personas()
    assert len(personas) >= 2
    for key, persona in personas.items():
        assert (persona.id, {*persona.names}, {*persona.descriptions}) == (
            key,
            {"en", "zh"},
            {"en", "zh"},
        )
        assert "both adults" in persona.descriptions["en"]
        assert "成年人" in persona.descriptions["zh"]
    assert len({name for p in personas.values() for name in p.names.values()}) == 2 * len(personas)


POINT = {"id": "stays", "kind": "must", "text": "stays"}
FACT = {
    "id": "cat",
    "kind": "stated",
    "session": 1,
    "text": "The cat is called Pip.",
    "forms": ["Pip"],
}


def test_the_user_turns_of_cases_are_answered_as_scenarios(tmp_path: Path) -> None:
    sessions = [
        {
            "turns": [
                {"user": "Hello.", "reference": "Hello you."},
                {"user": "It snows.", "reference": "At last."},
            ]
        },
        {"gap_days": 3, "turns": [{"user": "Gone again.", "reference": "The snow?"}]},
        {"gap_days": 1, "turns": [{"user": "No reply wanted."}]},
    ]
    history = [
        {"role": "user", "content": "Evening."},
        {"role": "companion", "content": "Evening!"},
    ]
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
    assert {(one.tags.risk, one.tags.emotion, one.subtask) for one in turns} == {
        ("high", "grief", "dialogue_emotion")
    }
    assert len(set(clusters_of(turns).values())) == 1
    with pytest.raises(ConfigError, match="have no subtasks; leave out --subtask"):
        split.select(subtasks=["dialogue_base"])


DIALOGUE: dict[str, Any] = {
    "id": "d-1",
    "language": "en",
    "messages": [
        {"role": "user", "content": "Hi."},
        {"role": "companion", "content": "Hello you."},
    ],
}
SPOKEN = st.text(min_size=1).filter(str.strip)


@given(
    turns=st.lists(st.tuples(st.sampled_from(["user", "companion"]), SPOKEN), min_size=1),
    metadata=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()),
)
def test_a_dialogue_survives_its_own_dict(
    turns: list[tuple[str, str]], metadata: dict[str, Any]
) -> None:
    messages = [{"role": role, "content": content} for role, content in turns]
    dialogue = Dialogue.from_dict({**DIALOGUE, "messages": messages, "metadata": metadata})
    assert dialogue.to_dict()["messages"] == messages
    assert Dialogue.from_dict(dialogue.to_dict()) == dialogue


READERS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "scenario": (Scenario.from_dict, RECORD, "s-1: "),
    "persona": (Persona.from_dict, ADA, ""),
    "case": (Case.from_dict, json.loads(json.dumps(case(1).to_dict())), "case-en-1: "),
    "dialogue": (Dialogue.from_dict, DIALOGUE, ""),
}


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (
            "scenario",
            {"subtask": "dialog_base"},
            "subtask: unknown subtask 'dialog_base'; did you mean 'dialogue_base'? c",
        ),
        ("scenario", {"language": "de"}, "language: no language 'de'; choose from en, zh"),
        (
            "scenario",
            {"references": [*"123456"], "reference": ...},
            "references: must be a list of at most 5",
        ),
        (
            "scenario",
            {"references": ["Hi.", "Yes.", "Hi."], "reference": ...},
            "references: holds a text twice",
        ),
        ("scenario", {"reference": " \n"}, "references.1: must be text that is not empty"),
        (
            "scenario",
            {"tags.emotoin": "joy"},
            "tags.emotoin: no such field; did you mean 'emotion'?",
        ),
        (
            "scenario",
            {"tags.emotion": "Joy!"},
            "tags.emotion: must be one lower-case word, not 'Joy!'",
        ),
        (
            "scenario",
            {"inputs.history": ...},
            "inputs: of dialogue_schedule must be today_schedule, current_activity,",
        ),
        (
            "scenario",
            {"inputs.history.0.role": "system"},
            "inputs.history.1.role: must be 'user' or 'companion', not",
        ),
        (
            "scenario",
            {"inputs.history.0.role": "companion"},
            "inputs: history must end with a user turn",
        ),
        ("scenario", {"inputs.history.0.time": "09:00"}, "inputs.history.1.time: no such field"),
        (
            "scenario",
            {"inputs.today_schedule.0.time": "24:00"},
            "inputs.today_schedule.1.time: must be HH:MM, 00:00 to",
        ),
        (
            "scenario",
            {"inputs.today_schedule.0.time": "22:30"},
            "inputs.today_schedule: times must ascend",
        ),
        ("persona", {"relation": " "}, "relation: must be text that is not empty"),
        ("persona", {"en": {"name": "Ada"}}, "en.description: is missing"),
        ("persona", {"en": None}, "needs a table for at least one language: en, zh"),
        ("case", {"study": "other"}, "study: must be 'high_risk'"),
        (
            "case",
            {"sessions": [{"turns": [{"user": "hi", "points": ["other"]}]}]},
            "names the point 'other'",
        ),
        ("case", {"points": [POINT, POINT]}, "points: the id 'stays' occurs twice"),
        ("case", {"facts": [FACT, FACT]}, "facts: the id 'cat' occurs twice"),
        (
            "case",
            {"facts": [{**FACT, "kind": "corrected"}]},
            "fact cat: a corrected fact, and no other, names the",
        ),
        (
            "case",
            {"facts": [{**FACT, "kind": "forgotten"}]},
            "fact cat: a forgotten fact, and no other, needs ask",
        ),
        ("case", {"facts": [{**FACT, "session": 2}]}, "fact cat: there is no such session"),
        (
            "case",
            {"points": [{**POINT, "check": "fact:cat"}]},
            "stays: 'fact:cat' names no fact of the case",
        ),
        (
            "case",
            {"points": [{**POINT, "check": "says:cat"}]},
            "stays: no check 'says:cat'; write fact:ID",
        ),
        (
            "case",
            {"sessions": [{"gap_days": 2, "turns": [{"user": "hi"}]}]},
            "the first session follows none",
        ),
        (
            "case",
            {"sessions": [{"turns": [{"user": "hi", "reference": " "}]}]},
            "sessions.1.turns.1.reference",
        ),
        (
            "case",
            {"history": [{"role": "user", "content": "hi"}]},
            "history: user and companion take turns",
        ),
        ("dialogue", {"id": 7}, "id: must be text, not 7"),
        # Two ids that look the same were two items, and an answer to one left the other unscored.
        ("dialogue", {"id": "d-1 "}, "without white space around it; it is 'd-1 '"),
        (
            "dialogue",
            {"id": "cafe\u0301"},
            "Unicode's form NFC, not empty, without white space around it; it is 'cafe",
        ),
        (
            "dialogue",
            {"messages": [*DIALOGUE["messages"], {"role": "user"}]},
            "messages.3.content: is missing",
        ),
        (
            "dialogue",
            {"metadata": {"x": [b"y"]}},
            "metadata: x.1: holds a bytes, which JSON cannot; write text",
        ),
        ("dialogue", {"metadata": {"x": {3: "y"}}}, "metadata: x: holds a key that is not text"),
    ],
)
def test_a_wrong_record_is_refused_by_name_and_place(
    kind: str, change: dict[str, Any], message: str
) -> None:
    read, record, name = READERS[kind]
    with pytest.raises(DataError) as raised:
        read(changed(record, change), "x.jsonl:3")
    where = f"x.jsonl:3: {name}"
    said = str(raised.value)
    assert said.startswith(where + message if kind == "scenario" else where)
    assert message in said
    assert "\n" not in str(raised.value)


def test_counts_and_levels_are_those_of_table_1() -> None:
    assert [(s.column, s.count, s.level or "") for s in SUBTASKS.values()] == [
        *(("Standard", 1882, ""), ("Emotional", 99, ""), ("Schedule", 533, "")),
        *(("Basic", 207, "I"), ("Middle", 444, "II"), ("Advanced", 143, "III")),
        *(("Response", 163, ""), ("Initiation", 76, "")),
        *(("Synthesis", 412, ""), ("Refinement", 589, ""), ("Initialization", 102, "")),
    ]
    assert TOTAL_COUNT == 4650
    assert {s.dimension for s in SUBTASKS.values()} == set(DIMENSIONS)
    assert in_table_order(reversed(SUBTASKS)) == list(SUBTASKS)
    assert SUBTASKS["recollection_initialization"].title == "RecollectionInitialization"


def test_the_memory_vocabulary_has_24_categories_and_a_null_line_a_language() -> None:
    for record in RECORDS.values():
        assert len(record.memory_categories) == len(set(record.memory_categories)) == 24
    assert RECORDS["en"].memory_categories == MEMORY_CATEGORIES
    nulls = {language: record.null_memory for language, record in RECORDS.items()}
    assert nulls == {"en": "No key information extracted.", "zh": "未提取到关键信息。"}
    assert {record.tokenizer for record in RECORDS.values()} == set(TOKENIZERS)


@pytest.mark.parametrize(("name", "schema"), [("scenario", scenario_schema), ("case", case_schema)])
def test_the_files_that_ship_are_those_of_the_records(
    name: str, schema: Callable[[], dict[str, Any]]
) -> None:
    assert json.loads(read_schema(name)) == schema(), "run tools/make_schemas.py"


def test_schema_and_reader_refuse_the_same_changes() -> None:
    """A scenario of each subtask, and a case with facts and points."""
    first = {one.subtask: one.to_dict() for one in load_split("mini@1").scenarios}
    history = [{"role": "user", "content": "Hi."}, {"role": "companion", "content": "Hello."}]
    for made in (*first.values(), case(1, facts=[FACT], history=history).to_dict()):
        record = json.loads(json.dumps(made))
        validator = Draft202012Validator(case_schema() if "study" in record else scenario_schema())
        validator.validate(record)
        for path, value in product(leaves(record, inner=True), ("", 7, None, [])):
            top = path.partition(".")[0]
            other = changed(record, {path: value})
            if top in ("provenance", "metadata") or other == record:
                continue
            if not validator.is_valid(other):
                with pytest.raises(DataError):
                    read_item(other, "line 1")
            elif top not in (
                "id",
                "points",
                "facts",
                "sessions",
                "history",
            ):  # names of others are checked by code
                read_item(other, "line 1")
