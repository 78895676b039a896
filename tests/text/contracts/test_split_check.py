"""`split check`: every error of every line, and references against their contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.splits import load_split
from h2htalk.errors import DataError
from h2htalk.text.contracts.split_check import check_split
from support.releases import case
from support.releases import scenario as made_scenario


def write(folder: Path, *records: dict[str, Any]) -> str:
    (folder / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    return str(folder)


def raw() -> dict[str, Any]:
    record = made_scenario(1).to_dict()
    references = record.pop("references")
    return {**json.loads(json.dumps(record)), "reference": references[0]}


def test_all_errors_of_all_lines_are_listed(tmp_path: Path) -> None:
    broken = raw() | {"id": "b", "subtask": "dialogue_bass", "licence": "", "extra": 1}
    broken["tags"] = raw()["tags"] | {"risk": "some", "emotion": "Sad"}
    history = [
        {"role": "user", "content": ""},
        {"role": "friend", "content": "x"},
        {"role": "user", "content": "y"},
    ]
    number, errors = check_split(
        write(tmp_path, raw(), broken, raw() | {"id": "c", "inputs": {"history": history}})
    )
    assert number == 3
    assert [error.split(": ", 2)[2].split(",")[0].split(";")[0] for error in errors] == [
        "subtask: unknown subtask 'dialogue_bass'",
        "tags.emotion: must be one lower-case word",
        "tags.risk: must be 'none'",
        "licence: must be text that is not empty",
        "extra: no such field",
        "inputs.history.1.content: must be text that is not empty",
        "inputs.history.2.role: must be 'user' or 'companion'",
    ]
    assert all(error.startswith(f"{tmp_path}/items.jsonl:") for error in errors)


def test_a_line_that_is_no_json_does_not_hide_the_errors_after_it(tmp_path: Path) -> None:
    source = (
        Path(write(tmp_path, raw(), raw() | {"id": "b", "licence": "", "persona": " "}))
        / "items.jsonl"
    )
    with pytest.raises(DataError) as error:
        load_split(str(tmp_path))
    assert len(str(error.value).splitlines()) == 2  # all errors of the first broken line
    source.write_text("{broken\n" + source.read_text())
    number, errors = check_split(str(tmp_path))
    assert (number, [error.split(":")[1] for error in errors]) == (2, ["1", "3", "3"])


def test_references_are_held_against_contracts_and_checks(tmp_path: Path) -> None:
    long = raw() | {"id": "a", "reference": "word " * 30}
    number, errors = check_split(
        write(tmp_path, long, raw() | {"persona": "nobody", "id": "b"}, raw(), raw())
    )
    assert number == 4
    assert "reference: too_long" in errors[0]
    assert "persona 'nobody' has no en description" in errors[1]
    assert "duplicate id" in errors[2]
    point = {"id": "stays", "kind": "must", "text": "x", "check": "length:words:90-"}
    unused = {"id": "unused", "kind": "must", "text": "x"}
    folder = tmp_path / "cases"
    folder.mkdir()
    _, errors = check_split(write(folder, case(1, points=[point, unused]).to_dict()))
    assert len(errors) == 2
    assert "no turn names the point unused" in errors[0]
    assert "does not meet the point stays (length:words:90-)" in errors[1]


def test_what_load_split_refuses_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no scenario"):
        check_split(write(tmp_path))
    assert "this file has both" in check_split(write(tmp_path, raw(), case(1).to_dict()))[1][0]
