"""JSON Schemas of the records that users write: scenarios and cases. `make_schemas.py` writes them."""

from __future__ import annotations

from typing import Any

from h2htalk.data.case import Case
from h2htalk.data.records import adapter
from h2htalk.data.scenario import INPUTS, Scenario
from h2htalk.data.subtasks import SUBTASKS


def scenario_schema() -> dict[str, Any]:
    """The schema of a scenario; the fields of `inputs` depend on the subtask."""
    schema = _schema(Scenario)
    text = {"type": "string", "pattern": r"\S"}
    several = schema["properties"]["references"]
    schema["required"].remove("references")
    schema["oneOf"] = [{"required": ["reference"]}, {"required": ["references"]}]
    inputs = adapter(INPUTS).json_schema()
    schema["$defs"] |= inputs.pop("$defs")
    schema["properties"] |= {
        "reference": text,
        "references": several | {"uniqueItems": True},
        "inputs": inputs,
    }
    schema["allOf"] = []
    for subtask in SUBTASKS.values():
        names = [
            name for name, _ in subtask.inputs
        ]  # all of them and, as there are no more, no others
        found = {"properties": {"subtask": {"const": subtask.name}}, "required": ["subtask"]}
        own = {"inputs": {"required": names, "maxProperties": len(names)}}
        schema["allOf"].append({"if": found, "then": {"properties": own}})
    return schema


def case_schema() -> dict[str, Any]:
    """The schema of a case."""
    return _schema(Case)


def _schema(kind: Any) -> dict[str, Any]:
    title = {"title": f"h2htalk {kind.__name__.lower()}"}
    return (
        {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        | adapter(kind).json_schema()
        | title
    )
