"""Samples of the LM Evaluation Harness: `samples_TASK_TIME.jsonl` with `results_TIME.json` beside it."""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.data.files import parse_object, read_bounded, read_jsonl, require_file
from h2htalk.data.imports.log_records import (
    HarnessLog,
    ItemInput,
    LogRecord,
    number,
    read_log_object,
)
from h2htalk.errors import DataError

# What a line holds besides its metrics; until version 0.4.4 (2024) no key names those.
_OTHER_KEYS = frozenset(
    """
    doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash
    """.split()  # noqa: SIM905
)


def read_lm_eval(path: Path) -> HarnessLog:
    """Read the samples of a task; metrics are named `METRIC,FILTER` if there are several filters.

    Versions of 2024 name neither the filter nor the metrics: a filter is numbered by the lines that an item has had
    before, and every other key that holds a value is a metric. Version 0.4.2 and older write one JSON list.
    """
    lines = read_lm_eval_lines(path)
    filters = _filters_of(lines)
    several_filters = len(set(filters)) > 1
    records: list[LogRecord] = []
    for line, filter_name in zip(lines, filters, strict=True):
        document = line["doc"]
        document_id = document.get("id") if isinstance(document, dict) else None
        item = line["doc_id"] if document_id is None else document_id
        values: dict[str, float | str] = {}
        for key in line.get("metrics", [key for key in line if key not in _OTHER_KEYS]):
            name = f"{key},{filter_name}" if several_filters else key
            values[name] = number(line.get(key))
        # Of a reply without content, as a provider's filter leaves it, it writes null.
        answer = line["filtered_resps"][0]
        record = LogRecord(
            item=str(item),
            own_id=document_id is not None,
            input=ItemInput.of(_turns_of(line["arguments"]), line["target"]),
            answer="" if answer is None else str(answer),
            values=values,
        )
        records.append(record)
    task, _, time = path.stem.removeprefix("samples_").rpartition("_")
    results = path.with_name(f"results_{time}.json")
    header = read_log_object(results) if results.is_file() else {}
    return HarnessLog(
        path=path,
        harness=f"lm-eval {header.get('lm_eval_version', '')}".strip(),
        model=str(header.get("model_name", "unknown")),
        task=task or path.stem,
        records=records,
        notes=() if header else (f"no {results.name} beside it: the model is unknown",),
    )


def read_lm_eval_lines(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a file of samples, or the one JSON list that versions up to 0.4.2 write."""
    if not holds_a_list(path):
        return [line for _, line in read_jsonl(path, nan=True)]
    content = read_bounded(path).removeprefix(codecs.BOM_UTF8)
    lines = parse_object(b'{"samples": ' + content + b"}", str(path), nan=True)["samples"]
    if not all(isinstance(line, dict) for line in lines):
        raise DataError(f"{path}: a sample is no JSON object")
    return list(lines)


def holds_a_list(path: Path) -> bool:
    """Whether a file begins as a JSON list does."""
    with require_file(path).open("rb") as file:
        start = file.read(64)
    return start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def _filters_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the filter of each line by name, or by its number where the version names none."""
    earlier = Counter[str]()
    filters: list[str] = []
    for line in lines:
        item = str(line["doc_id"])
        earlier[item] += 1
        filters.append(str(line.get("filter", f"filter {earlier[item]}")))
    return filters


def _turns_of(arguments: Any) -> list[tuple[str, str]]:
    """Return the messages of a line's first request: (role, text)."""
    # Up to 0.4.2 the arguments are lists, later objects.
    first = arguments[0] if isinstance(arguments, list) else arguments["gen_args_0"]
    prompt = first[0] if isinstance(first, list) else first["arg_0"]
    if isinstance(prompt, list):
        # For chat models a list of one text, the messages as JSON.
        return [(turn["role"], turn["content"]) for turn in json.loads(prompt[0])]
    return [("user", prompt)]
