"""Read a log of Inspect: `.eval`, a zip of JSON files, or one JSON file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from h2htalk.data.files import parse_object
from h2htalk.data.imports.harness_log import HarnessLog, ItemInput, LogRecord, number, read_object
from h2htalk.data.imports.zip_members import read_members
from h2htalk.errors import DataError, counted

_MARKS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def read_inspect(path: Path) -> HarnessLog:
    """Read a log; items that a run did not come to, because it was killed or cancelled, are failures.

    Raises:
        DataError: no whole log, or one that was marked as invalid.
    """
    parts = _members(path) if path.suffix == ".eval" else iter([log := read_object(path), *(log.get("samples") or [])])
    header = next(parts)
    if header.get("invalidated"):
        raise DataError(f"{path}: the log is marked as invalid")
    records, edited, about = [], 0, header["eval"]
    for sample in parts:  # one at a time: each holds everything that happened
        records.append(_record(sample))
        edited += sum(bool(score.get("history")) for score in (sample.get("scores") or {}).values())
    held, ids = {(record.item, record.epoch) for record in records}, about["dataset"].get("sample_ids") or []
    epochs = about["config"].get("epochs") or 1
    # One record an item is enough: an item that lacks one epoch has no value.
    first = ((name, next(k for k in count(1) if (str(name), k) not in held)) for name in ids)
    missing = [(name, epoch) for name, epoch in first if epoch <= epochs]
    notes, status = [], header.get("status", "started")  # a killed run has no header
    if status != "success" or missing:
        total = max(len(records), len(ids) * epochs)
        notes.append(f"the log is partial: status {status}, {len(records):,} of {total:,} samples")
    if edited:
        notes.append(f"{counted(edited, 'score was', 'scores were')} edited by hand")
    records += [LogRecord(str(n), isinstance(n, str), epoch, None, None, {}, "not in the log") for n, epoch in missing]
    harness = f"Inspect {about.get('packages', {}).get('inspect_ai', '')}".strip()
    return HarnessLog(path, harness, str(about["model"]), str(about["task"]), records, tuple(notes))


def _record(sample: Mapping[str, Any]) -> LogRecord:
    asked = [{"role": "user", "content": sample["input"]}] if isinstance(sample["input"], str) else sample["input"]
    values: dict[str, float | str] = {}
    for name, score in (sample.get("scores") or {}).items():
        values |= _values(name, score)
    return LogRecord(
        item=str(sample["id"]),
        own_id=isinstance(sample["id"], str),  # without ids Inspect numbers from 1
        epoch=int(sample["epoch"]),
        input=ItemInput.of([(m["role"], _text(m["content"])) for m in asked], sample.get("target")),
        answer=str((sample.get("output") or {}).get("completion", "")),
        values=values,
        failure="invalidated" if sample.get("invalidation") else "error" if sample.get("error") else None,
    )


def _values(name: str, score: Mapping[str, Any]) -> dict[str, float | str]:
    reason = str(score.get("reason") or (score.get("metadata") or {}).get("unscored_reason") or "NaN")
    value = score["value"]
    if isinstance(value, dict):
        return {f"{name}/{key}": number(one, reason) for key, one in value.items()}
    return {name: number(_MARKS.get(value, value) if isinstance(value, str) else value, reason)}


def _text(content: str | list[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _members(path: Path) -> Iterator[dict[str, Any]]:
    """The header, then each sample."""

    def choose(names: list[str]) -> list[str]:
        samples = [name for name in names if name.startswith("samples/")]
        return ["header.json" if "header.json" in names else "_journal/start.json", *samples]

    return (parse_object(text, where, nan=True) for where, text in read_members(path, choose))
