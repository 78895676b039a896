"""Logs of Inspect: `.eval`, a zip of JSON files, or one JSON file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from h2htalk.data.files import parse_object
from h2htalk.data.imports.log_records import (
    HarnessLog,
    ItemInput,
    LogRecord,
    number,
    read_log_object,
)
from h2htalk.data.imports.zip_members import read_members
from h2htalk.errors import DataError, counted

# Texts that Inspect counts as numbers (`value_to_float` of inspect_ai.scorer): grades as they are, words in any case.
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_MEAN = "mean"
_OF_ONE = (_MEAN, "median", "mode", "max")  # reducers that leave a single epoch as it is
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def read_inspect(path: Path) -> HarnessLog:
    """Read a log; items that a run did not come to, because it was killed or cancelled, are failures."""
    samples = inspect_parts(path)
    header = next(samples)
    if header.get("invalidated"):
        raise DataError(f"{path}: the log is marked as invalid")
    about = header["eval"]
    records: list[LogRecord] = []
    edited = 0
    for sample in samples:
        records.append(_read_sample(sample))
        for score in (sample.get("scores") or {}).values():
            if score.get("history"):
                edited += 1
    ids = about["dataset"].get("sample_ids") or []
    epochs = about["config"].get("epochs") or 1
    # One record an item is enough: an item that lacks one epoch has no value.
    counts = Counter(record.item for record in records)
    missing = [name for name in ids if counts[str(name)] < epochs]
    notes = []
    status = header.get("status", "started")  # a killed run has no header
    if status != "success" or missing:
        total = max(len(records), len(ids) * epochs)
        notes.append(f"the log is partial: status {status}, {len(records):,} of {total:,} samples")
    reducer = _read_reducer(header, epochs)
    if reducer:
        notes.append(f"its own figures are of each item's {reducer} of {epochs} epochs")
    if edited:
        notes.append(f"{counted(edited, 'score was', 'scores were')} edited by hand")
    for name in missing:
        failed = LogRecord(
            item=str(name), own_id=isinstance(name, str), values={}, failure="not in the log"
        )
        records.append(failed)
    return HarnessLog(
        path=path,
        harness=f"Inspect {about.get('packages', {}).get('inspect_ai', '')}".strip(),
        model=str(about["model"]),
        task=str(about["task"]),
        records=records,
        notes=tuple(notes),
        reducer=reducer,
    )


def _read_reducer(header: Mapping[str, Any], epochs: int) -> str:
    """Read how the log's figures make one value of an item's epochs; empty where the mean is among the ways, and where
    the way changes nothing, of one epoch."""
    names = header["eval"]["config"].get("epochs_reducer") or []
    if not names:
        results = header.get("results") or {}
        scores = results.get("scores") or []
        names = [score.get("reducer") or _MEAN for score in scores]
    names = list(dict.fromkeys(map(str, names)))
    if epochs == 1:
        names = [name for name in names if name not in _OF_ONE]
    if _MEAN in names:
        return ""
    return ", ".join(names)


def inspect_parts(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the header of a log, then its samples, one at a time: each holds everything that happened."""
    if path.suffix == ".eval":
        for where, text in read_members(path, _choose_members):
            yield parse_object(text, where, nan=True)
    else:
        header = read_log_object(path)
        yield header
        yield from header.get("samples") or ()


def _choose_members(names: list[str]) -> list[str]:
    header = "header.json" if "header.json" in names else "_journal/start.json"
    return [header, *(name for name in names if name.startswith("samples/"))]


def _read_sample(sample: Mapping[str, Any]) -> LogRecord:
    sample_input = sample["input"]
    if isinstance(sample_input, str):
        messages = [("user", sample_input)]
    else:
        messages = [(turn["role"], content_text(turn["content"])) for turn in sample_input]
    failure = None
    if sample.get("invalidation"):
        failure = "invalidated"
    elif sample.get("error"):
        failure = "error"
    return LogRecord(
        item=str(sample["id"]),
        own_id=isinstance(sample["id"], str),  # without ids Inspect numbers from 1
        epoch=int(sample["epoch"]),
        input=ItemInput.of(messages, sample.get("target")),
        answer=str((sample.get("output") or {}).get("completion", "")),
        values=_read_scores(_scores_of(sample)),
        failure=failure,
    )


def _scores_of(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scores by scorer; logs of early 2024 hold a single one, without a name."""
    if sample.get("score") and not sample.get("scores"):
        return {"score": sample["score"]}
    return sample.get("scores") or {}


def _read_scores(scores: Mapping[str, Any]) -> dict[str, float | str]:
    """The values by `SCORER`, or by `SCORER/NAME` where a scorer has several."""
    values: dict[str, float | str] = {}
    for name, score in scores.items():
        metadata = score.get("metadata") or {}
        reason = str(score.get("reason") or metadata.get("unscored_reason") or "NaN")
        value = score["value"]
        if isinstance(value, dict):
            for key, part in value.items():
                values[f"{name}/{key}"] = inspect_number(part, reason)
        else:
            values[name] = inspect_number(value, reason)
    return values


def inspect_number(value: object, reason: str) -> float | str:
    """A value as Inspect counts it: grades, yes and no, true and false, and numbers that are written as texts.

    Inspect counts any other text as 0, with a warning in its log; here it is no score.
    """
    if not isinstance(value, str):
        return number(value, reason)
    if value in _GRADES:
        return _GRADES[value]
    word = value.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return number(float(word), reason)
    except ValueError:
        return number(value, reason)


def content_text(content: str | list[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)
