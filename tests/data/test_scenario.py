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
        ("id", "a\tb", "id must be printable text"),
        (
            "subtask",
            "dialog_base",
            "unknown subtask 'dialog_base'; did you mean 'dialogue_base'? choose from dialogue_base",
        ),
        ("subtask", ["dialogue_base"], "unknown subtask"),
        ("language", "de", "language is 'de'; choose from en, zh"),
        ("persona", "", "persona must be text that is not empty"),
        ("reference", " \n", "reference must be text that is not empty"),
        ("reference", ["Hi."], "reference must be text that is not empty"),
        ("references", ["At lunch.", "At noon."], "has both reference and references; keep references"),
        ("licence", None, "licence must be text that is not empty"),
        ("provenance", [], "provenance must be an object"),
        ("provenance", {"p": float("inf")}, "provenance holds the number inf, which JSON cannot"),
        ("provenance", {"day": datetime.date(2026, 11, 20)}, "provenance holds a date, which JSON cannot"),
        ("extra", 1, "unknown field extra (open fields go into metadata)"),
        ("tags", "joy", "tags must be an object"),
        ("tags.emotion", "Joy!", "tags.emotion is 'Joy!'"),
        ("tags.complexity", "hard", "tags.complexity is 'hard'; choose from basic"),
        ("tags.interaction", None, "tags.interaction is None"),
        ("tags.risk", "low", "tags.risk is 'low'; choose from none, elevated, high"),
        ("tags.mood", "good", "tags: unknown field mood"),
        ("inputs", [], "inputs must be an object"),
        (
            "inputs.history",
            ...,
            "inputs of dialogue_schedule must be today_schedule, current_activity, history",
        ),
        ("inputs.memories", ["x"], "inputs of dialogue_schedule must be"),
        ("inputs.history", [], "history must be a list that is not empty"),
        ("inputs.history", "Are you free?", "history must be a list that is not empty"),
        ("inputs.history.0.role", "system", "history 1: role is 'system'"),
        ("inputs.history.0.role", "companion", "history must end with a user turn"),
        ("inputs.history.0.time", "09:00", "history 1: unknown field time"),
        ("inputs.current_activity", " ", "current_activity must be text that is not empty"),
        (
            "inputs.today_schedule.0",
            "08:00 Opens the shop",
            "today_schedule 1: a schedule entry must be an object",
        ),
        ("inputs.today_schedule.0.time", "8:00", "time is '8:00'; it must be HH:MM"),
        ("inputs.today_schedule.0.time", "24:00", "time is '24:00'"),
        ("inputs.today_schedule.0.time", "08:60", "time is '08:60'"),
        ("inputs.today_schedule.0.time", "0٨:00", "it must be HH:MM"),
        ("inputs.today_schedule.0.time", 800, "time is 800"),
        ("inputs.today_schedule.0.time", "22:30", "today_schedule: times must ascend"),
        ("inputs.today_schedule.0.activity", "", "today_schedule 1: activity must be text"),
        ("inputs.today_schedule.0.place", "town", "today_schedule 1: unknown field place"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(path: str, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=r"^x\.jsonl:9: ") as raised:
        Scenario.from_dict(changed(path, value), "x.jsonl:9")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


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
        ("Hi.", "references must be a list of at most 5 texts"),
        (["1", "2", "3", "4", "5", "6"], "references must be a list of at most 5 texts"),
        (["Hi.", "\n"], "reference 2 must be text that is not empty"),
        (["Hi.", "Yes.", "Hi."], "references holds a text twice"),
    ],
)
def test_wrong_references_are_named_with_their_place(references: object, message: str) -> None:
    record = {**changed("reference", ...), "references": references}
    with pytest.raises(DataError, match=rf"^x\.jsonl:9: s-1: {message}"):
        Scenario.from_dict(record, "x.jsonl:9")


def test_the_id_is_part_of_the_message() -> None:
    with pytest.raises(DataError, match=r"x\.jsonl:9: s-1: reference must"):
        Scenario.from_dict(changed("reference", ""), "x.jsonl:9")


def test_material_to_remember_may_end_with_either_speaker() -> None:
    """Only a conversation that is to be answered must end with the user."""
    history = [{"role": "user", "content": "I moved."}, {"role": "companion", "content": "Where to?"}]
    record = {**RECORD, "subtask": "recollection_synthesis", "inputs": {"history": history}}
    assert len(Scenario.from_dict(record).turns) == 2
