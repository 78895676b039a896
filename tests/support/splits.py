"""Splits made for a test: any number of small, valid scenarios of every subtask in both languages."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from h2htalk.data.files import write_jsonl
from h2htalk.data.languages import RECORDS
from h2htalk.data.splits import load_split


def scenario_records(count: int, subtasks: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """`count` records: mini's scenarios in turn, numbered, each with a word of its own in inputs and reference."""
    pool = [s for s in load_split("mini@1").scenarios if not subtasks or s.subtask in subtasks]
    records = []
    for number in range(count):
        record = pool[number % len(pool)].to_dict()
        record["id"] = f"made-{number:05}"
        record["inputs"] = _marked(record["inputs"], f"item{number}")
        if record["reference"] not in {record.null_memory for record in RECORDS.values()}:
            record["reference"] += f" item{number}"
        records.append(record)
    return records


def _marked(value: Any, word: str) -> Any:
    """Every text among the inputs with the word behind it, so that each prompt is its own."""
    if isinstance(value, dict):
        return {k: v if k in ("role", "time") else _marked(v, word) for k, v in value.items()}
    if isinstance(value, list):
        return [_marked(item, word) for item in value]
    return f"{value} {word}"


def write_split(folder: Path, count: int, subtasks: tuple[str, ...] = ()) -> Path:
    """A split folder of `count` scenarios; returns it."""
    write_jsonl(folder / "scenarios.jsonl", scenario_records(count, subtasks))
    return folder


def changed(record: Any, fields: dict[str, Any]) -> Any:
    """A copy of a record with fields set, each named like `inputs.history.0.role`; `...` removes one."""
    made = copy.deepcopy(record)
    for path, value in fields.items():
        *way, last = (
            int(step) if step.lstrip("-").isdecimal() else step for step in path.split(".")
        )
        place = made
        for step in way:
            place = place[step]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return made


def leaves(value: Any, before: str = "", inner: bool = False) -> list[str]:
    """The names of a record's fields that hold neither fields nor lists; `inner`: of those, too."""
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    below = [
        path
        for key, one in parts
        for path in leaves(one, f"{before}{'.' * bool(before)}{key}", inner)
    ]
    return [before] * bool(before and (inner or not isinstance(value, dict | list))) + below
