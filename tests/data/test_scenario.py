"""A scenario holds exactly the fields of its subtask; whatever else is refused, with file, line and id."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from h2htalk.data.scenario import Persona, Scenario, bundled_personas
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


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("subtask", "dialog_base", "subtask: unknown subtask 'dialog_base'; did you mean 'dialogue_base'? choose from"),
        ("language", "de", "language: no language 'de'; choose from en, zh"),
        ("licence", ..., "licence: is missing"),
        ("references", ["1", "2", "3", "4", "5", "6"], "references: must be a list of at most 5"),
        ("references", ["Hi.", "Yes.", "Hi."], "references: holds a text twice"),
        ("reference", " \n", "references.1: must be text that is not empty"),
        ("metdata", {}, "metdata: no such field; did you mean 'metadata'?"),
        ("tags.emotoin", "joy", "tags.emotoin: no such field; did you mean 'emotion'?"),
        ("tags.emotion", "Joy!", "tags.emotion: must be one lower-case word, not 'Joy!'"),
        ("tags.complexity", "hard", "tags.complexity: must be 'basic', 'intermediate' or 'advanced', not 'hard'"),
        ("inputs.history", ..., "inputs: of dialogue_schedule must be today_schedule, current_activity, history"),
        ("inputs.history.0.role", "system", "inputs.history.1.role: must be 'user' or 'companion', not 'system'"),
        ("inputs.history.0.role", "companion", "inputs: history must end with a user turn"),
        ("inputs.history.0.time", "09:00", "inputs.history.1.time: no such field"),
        ("inputs.today_schedule.0.time", "24:00", "inputs.today_schedule.1.time: must be HH:MM, 00:00 to 23:59, not"),
        ("inputs.today_schedule.0.time", "22:30", "inputs.today_schedule: times must ascend"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(path: str, value: Any, message: str) -> None:
    record = changed(path, value)
    if path == "references":
        del record["reference"]
    with pytest.raises(DataError) as raised:
        Scenario.from_dict(record, "x.jsonl:9")
    assert str(raised.value).startswith(f"x.jsonl:9: s-1: {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("references", [[], ["At lunch.", "At noon."]])
def test_a_scenario_has_none_to_five_references(references: list[str]) -> None:
    record = {**changed("reference", ...), "references": references, "metadata": {"votes": [1], "note": None}}
    scenario = Scenario.from_dict(record)
    assert (list(scenario.references), scenario.reference) == (references, (references or [""])[0])
    assert Scenario.from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario
    assert list(Scenario.from_dict(RECORD).to_dict().items()) == list(RECORD.items())  # one stays `reference`
    with pytest.raises(DataError, match="has both reference and references; keep references"):
        Scenario.from_dict({**RECORD, "references": references})


# --- Personas ---------------------------------------------------------------------------------------------------

TEXTS = {"name": "Ada", "description": "You mend clocks.\n"}
ADA: dict[str, Any] = {"id": "ada", "relation": "close friend", "en": TEXTS}


def test_two_personas_are_bundled_in_both_languages() -> None:
    personas = bundled_personas()
    assert len(personas) >= 2
    for key, persona in personas.items():
        assert persona.id == key
        assert set(persona.names) == set(persona.descriptions) == {"en", "zh"}
        assert "both adults" in persona.descriptions["en"]
        assert "成年人" in persona.descriptions["zh"]
    assert len({name for p in personas.values() for name in p.names.values()}) == 2 * len(personas)


def test_a_persona_survives_its_own_dict() -> None:
    persona = Persona.from_dict(ADA, "ada.toml")
    assert persona.descriptions == {"en": "You mend clocks."}
    assert Persona.from_dict(persona.to_dict(), "ada.toml") == persona


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relation": " "}, "relation: must be text that is not empty"),
        ({"en": {"name": "Ada"}}, "en.description: is missing"),
        ({"fr": {}}, "fr: no such field"),
        ({"en": None}, "needs a table for at least one language: en, zh"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=r"^ada\.toml: ") as raised:
        Persona.from_dict({**ADA, **change}, "ada.toml")
    assert message in str(raised.value)
