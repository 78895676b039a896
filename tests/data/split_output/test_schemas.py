"""The JSON Schemas that ship: made from the records, and of one mind with their readers."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from releases_made import case

from h2htalk.data.split_output import case_schema, scenario_schema
from h2htalk.data.splits import load_split, read_item
from h2htalk.errors import DataError

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from make_schemas import FOLDER, SCHEMAS, text_of


def records() -> list[dict[str, Any]]:
    """A scenario of each subtask, and a case with facts and points."""
    first = {one.subtask: one.to_dict() for one in load_split("mini@1").scenarios}
    fact = {"id": "cat", "kind": "stated", "session": 1, "text": "The cat is Pip.", "forms": ["Pip"]}
    history = [{"role": "user", "content": "Hi."}, {"role": "companion", "content": "Hello."}]
    return [*first.values(), json.loads(json.dumps(case(1, facts=[fact], history=history).to_dict()))]


def schema_of(record: dict[str, Any]) -> dict[str, Any]:
    return case_schema() if "study" in record else scenario_schema()


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_files_that_ship_are_those_of_the_records(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == text_of(name), "run tools/make_schemas.py"


def test_schema_and_reader_refuse_the_same_changes() -> None:
    for record in records():
        validator = Draft202012Validator(schema_of(record))
        validator.validate(record)
        changes = ((path, value) for path in paths(record) for value in ("", 7, None, []))
        for path, value in changes:
            changed = copy.deepcopy(record)
            inner: Any = changed
            for step in path[:-1]:
                inner = inner[step]
            if path[0] in ("provenance", "metadata") or inner[path[-1]] == value:
                continue
            inner[path[-1]] = value
            if not validator.is_valid(changed):
                with pytest.raises(DataError):
                    read_item(changed, "line 1")
            elif path[0] not in ("id", "points", "facts", "sessions", "history"):  # names of others are checked by code
                read_item(changed, "line 1")


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the values of a record stand."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [before] if before else []
    return found + [path for key, one in inner for path in paths(one, (*before, key))]
