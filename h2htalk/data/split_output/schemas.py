"""JSON Schemas (draft 2020-12) of scenarios and cases, made from the records that read them.

They ship as files (`bundled/schemas`, written by `tools/make_schemas.py`) for editors and validators. The readers check
more: ids that occur twice, the order of times, points that name facts.
"""

from __future__ import annotations

from typing import Any

from h2htalk.data.case import Case
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.records import adapter
from h2htalk.data.scenario import Scenario, inputs_adapter
from h2htalk.data.subtasks import SUBTASKS


def scenario_schema() -> dict[str, Any]:
    """The schema of a scenario; the fields of `inputs` depend on the subtask."""
    schema = _schema(Scenario)
    text, several = {"type": "string", "pattern": r"\S"}, schema["properties"]["references"]
    schema["properties"] |= {"reference": text, "references": several | {"uniqueItems": True}}
    schema["required"].remove("references")
    schema["oneOf"] = [{"required": ["reference"]}, {"required": ["references"]}]
    inputs = inputs_adapter().json_schema()
    schema["$defs"] |= inputs.pop("$defs")
    schema["properties"]["inputs"] = inputs
    schema["allOf"] = []
    for subtask in SUBTASKS.values():
        names = [name for name, _ in subtask.inputs]  # all of them and, as there are no more, no others
        found = {"properties": {"subtask": {"const": subtask.name}}, "required": ["subtask"]}
        own = {"inputs": {"required": names, "maxProperties": len(names)}}
        schema["allOf"].append({"if": found, "then": {"properties": own}})
    return schema


def case_schema() -> dict[str, Any]:
    """The schema of a case."""
    return _schema(Case)


def _schema(kind: Any) -> dict[str, Any]:
    schema = adapter(kind).json_schema()
    schema["properties"]["language"] = {"enum": list(LANGUAGES)}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect} | schema | {"title": f"h2htalk {kind.__name__.lower()}"}
