"""Write the JSON Schemas that ship with the package: `python tools/make_schemas.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from h2htalk.data.case import Case
from h2htalk.data.records import adapter
from h2htalk.data.scenario import INPUTS, Scenario
from h2htalk.data.subtasks import SUBTASKS

FOLDER = Path(__file__).parents[1] / "h2htalk/data/bundled/schemas"


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


SCHEMAS = {"scenario.json": scenario_schema, "case.json": case_schema}


def text_of(name: str) -> str:
    return json.dumps(SCHEMAS[name](), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in SCHEMAS:
        (FOLDER / name).write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    main()
