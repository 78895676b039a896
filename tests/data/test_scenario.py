"""A scenario holds exactly the fields of its subtask; whatever else is refused, with file, line and id."""

from __future__ import annotations

import copy
import datetime
import json
from typing import Any

import pytest

from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError

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


def changed(path: str, value: Any) -> dict[str, Any]:
    """The record with one field set, such as `inputs.history.0.role`; `...` removes it."""
    record = copy.deepcopy(RECORD)
    *way, last = path.split(".")
    place: Any = record
    for key in way:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if value is ...:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return record


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_every_subtask_survives_its_own_dict(subtask: str) -> None:
    for scenario in load_split("mini@1").select(subtasks=[subtask]).scenarios:
        assert list(scenario.inputs) == [name for name, _ in SUBTASKS[subtask].inputs]
        stored = json.loads(json.dumps(scenario.to_dict()))
        assert Scenario.from_dict(stored) == scenario


def test_metadata_is_open_and_kept() -> None:
    scenario = Scenario.from_dict({**RECORD, "metadata": {"votes": [1, 2], "note": None}})
    assert scenario.to_dict()["metadata"] == {"votes": [1, 2], "note": None}


@pytest.mark.parametrize("field", list(RECORD))
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(DataError, match=field):
        Scenario.from_dict(changed(field, ...), "x.jsonl:9")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("id", "a\tb", "id: must be printable text"),
        ("subtask", "dialog_base", "subtask: unknown subtask 'dialog_base'; did you mean 'dialogue_base'? choose from"),
        ("language", "de", "language: no language 'de'; choose from en, zh"),
        ("reference", " \n", "references.1: must be text that is not empty"),
        ("reference", ["Hi."], "references.1: must be text, not ['Hi.']"),
        ("references", ["At lunch.", "At noon."], "has both reference and references; keep references"),
        ("provenance", {"p": float("inf")}, "provenance: p: holds the number inf, which JSON cannot"),
        ("provenance", {"day": datetime.date(2026, 11, 20)}, "provenance: day: holds a date, which JSON cannot"),
        ("metdata", {}, "metdata: no such field; did you mean 'metadata'?"),
        ("tags.emotion", "Joy!", "tags.emotion: must be one lower-case word, not 'Joy!'"),
        ("tags.complexity", "hard", "tags.complexity: must be 'basic', 'intermediate' or 'advanced', not 'hard'"),
        ("inputs", [], "inputs: must be an object, not []"),
        ("inputs.history", ..., "inputs: of dialogue_schedule must be today_schedule, current_activity, history"),
        ("inputs.memories", ["x"], "inputs: of dialogue_schedule must be"),
        ("inputs.history", [], "inputs.history: must be a list of at least 1, not []"),
        ("inputs.history.0.role", "system", "inputs.history.1.role: must be 'user' or 'companion', not 'system'"),
        ("inputs.history.0.role", "companion", "inputs: history must end with a user turn"),
        ("inputs.history.0.time", "09:00", "inputs.history.1.time: no such field"),
        *(
            ("inputs.today_schedule.0.time", time, "inputs.today_schedule.1.time: must be HH:MM, 00:00 to 23:59, not")
            for time in ("8:00", "24:00", "08:60", "0٨:00", "08:00\n")
        ),
        ("inputs.today_schedule.0.time", "22:30", "inputs.today_schedule: times must ascend"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(path: str, value: Any, message: str) -> None:
    with pytest.raises(DataError) as raised:
        Scenario.from_dict(changed(path, value), "x.jsonl:9")
    name = "" if path in ("id", "references") else "s-1: "
    assert str(raised.value).startswith(f"x.jsonl:9: {name}{message}")
    assert "\n" not in str(raised.value)


def test_all_errors_of_a_record_are_listed() -> None:
    record = changed("tags.risk", "low") | {"language": "de", "extra": 1}
    record["inputs"]["history"] = [{"role": "me", "content": ""}]
    with pytest.raises(DataError) as raised:
        Scenario.from_dict(record, "x.jsonl:9")
    places = [line.split(": ")[2] for line in str(raised.value).splitlines()]
    wanted = ["language", "inputs.history.1.role", "inputs.history.1.content", "tags.risk", "extra"]
    assert places == wanted


@pytest.mark.parametrize("references", [[], ["At lunch."], ["At lunch.", "At noon."], ["1", "2", "3", "4", "5"]])
def test_a_scenario_has_none_to_five_references(references: list[str]) -> None:
    scenario = Scenario.from_dict({**changed("reference", ...), "references": references})
    assert scenario.references == tuple(references)
    assert scenario.reference == (references[0] if references else "")
    assert Scenario.from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario


def test_one_reference_is_written_as_before() -> None:
    """Files and fingerprints of splits with one reference stay as they are, however it was read."""
    listed = Scenario.from_dict({**changed("reference", ...), "references": [RECORD["reference"]]})
    assert listed == Scenario.from_dict(RECORD)
    assert list(listed.to_dict().items()) == list(RECORD.items())


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (["1", "2", "3", "4", "5", "6"], "references: must be a list of at most 5"),
        (["Hi.", "\n"], "references.2: must be text that is not empty"),
        (["Hi.", "Yes.", "Hi."], "references: holds a text twice"),
    ],
)
def test_wrong_references_are_named_with_their_place(references: object, message: str) -> None:
    record = {**changed("reference", ...), "references": references}
    with pytest.raises(DataError, match=rf"^x\.jsonl:9: s-1: {message}"):
        Scenario.from_dict(record, "x.jsonl:9")


def test_material_to_remember_may_end_with_either_speaker() -> None:
    """Only a conversation that is to be answered must end with the user."""
    history = [{"role": "user", "content": "I moved."}, {"role": "companion", "content": "Where to?"}]
    record = {**RECORD, "subtask": "recollection_synthesis", "inputs": {"history": history}}
    assert len(Scenario.from_dict(record).turns) == 2
