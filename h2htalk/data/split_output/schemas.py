"""JSON Schemas (draft 2020-12) of scenarios and cases, made from the records and tables that read them.

They ship as files (`bundled/schemas`, written by `tools/make_schemas.py`) for editors and validators. The readers check
more: ids that occur twice, the order of times, points that name facts.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import TypeAdapter

from h2htalk.data.case import Case
from h2htalk.data.dialogue import ROLES
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import (
    COMPLEXITIES,
    EMOTION,
    FIELDS,
    INTERACTIONS,
    MOST_REFERENCES,
    RISKS,
    TIME,
)
from h2htalk.data.subtasks import SUBTASKS

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string", "pattern": r"\S"}


def scenario_schema() -> dict[str, Any]:
    """The schema of a scenario; the fields of `inputs` depend on the subtask."""
    tags = {
        "emotion": {"type": "string", "pattern": _whole(EMOTION)},
        "complexity": {"enum": list(COMPLEXITIES)},
        "interaction": {"enum": list(INTERACTIONS)},
        "risk": {"enum": list(RISKS)},
    }
    properties = {
        "id": _TEXT,
        "subtask": {"enum": list(SUBTASKS)},
        "language": {"enum": list(LANGUAGES)},
        "persona": _TEXT,
        "inputs": {"type": "object"},
        "reference": _TEXT,
        "references": {"type": "array", "items": _TEXT, "maxItems": MOST_REFERENCES, "uniqueItems": True},
        "tags": _object(tags, list(tags)),
        "provenance": {"type": "object"},
        "licence": _TEXT,
        "metadata": {"type": "object"},
    }
    by_subtask = [
        {
            "if": {"properties": {"subtask": {"const": subtask.name}}, "required": ["subtask"]},
            "then": {"properties": {"inputs": _inputs(dict(subtask.inputs))}},
        }
        for subtask in SUBTASKS.values()
    ]
    return {
        "$schema": _DIALECT,
        "title": "h2htalk scenario",
        **_object(properties, [name for name in FIELDS if name != "reference"]),
        "oneOf": [{"required": ["reference"]}, {"required": ["references"]}],
        "allOf": by_subtask,
    }


def case_schema() -> dict[str, Any]:
    """The schema of a case."""
    schema = TypeAdapter(Case).json_schema()
    schema["properties"]["language"] = {"enum": list(LANGUAGES)}
    return {"$schema": _DIALECT, "title": "h2htalk case", **{k: v for k, v in schema.items() if k != "title"}}


def _inputs(kinds: dict[str, str]) -> dict[str, Any]:
    turn = _object({"role": {"enum": list(ROLES)}, "content": _TEXT}, ["role", "content"])
    entry = _object({"time": {"type": "string", "pattern": _whole(TIME)}, "activity": _TEXT}, ["time", "activity"])
    items = {"turns": turn, "schedule": entry, "texts": _TEXT}
    fields = {
        name: _TEXT if kind == "text" else {"type": "array", "minItems": 1, "items": items[kind]}
        for name, kind in kinds.items()
    }
    return _object(fields, list(fields))


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _whole(pattern: re.Pattern[str]) -> str:
    return f"^(?:{pattern.pattern})$"
