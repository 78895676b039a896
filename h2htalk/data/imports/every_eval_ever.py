"""Samples in the form of Every Eval Ever: JSONL, a line for each sample and evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl
from h2htalk.data.imports.log_records import HarnessLog, ItemInput, LogRecord, number
from h2htalk.errors import DataError, listed


def read_every_eval_ever(path: Path) -> HarnessLog:
    """Read samples; the metric is `score`, or the evaluation's name where items have several."""
    rows = [row for _, row in read_jsonl(path, nan=True)]
    models = list(dict.fromkeys(row["model_id"] for row in rows))
    tasks = list(dict.fromkeys(row["evaluation_name"] for row in rows))
    if len(models) > 1:
        raise DataError(f"{path}: holds several models, {listed(models)}; keep one")
    # A result that has an id may be one of several of an evaluation.
    metrics = [row.get("evaluation_result_id") or row["evaluation_name"] for row in rows]
    items = [row["sample_id"] for row in rows]
    keys = list(zip(items, metrics, strict=True))
    several = len(set(keys)) > len(set(items))
    samples = Counter[tuple[str, str]]()
    records: list[LogRecord] = []
    for row, key in zip(rows, keys, strict=True):
        item, metric = key
        samples[key] += 1
        record = LogRecord(
            item=item,
            own_id=not item.isdecimal(),  # digits alone are the position that converters write
            epoch=samples[key],
            input=_input_of(row),
            values={metric if several else "score": number(row["evaluation"].get("score"))},
            failure="error" if row.get("error") else None,
        )
        records.append(record)
    return HarnessLog(
        path=path,
        harness="Every Eval Ever",
        model=listed(models),
        task=listed(tasks, 1),
        records=records,
    )


def _input_of(row: Mapping[str, Any]) -> ItemInput:
    """What was asked: the messages up to the last one of the user, or the text where there are none."""
    turns: list[tuple[str, str]] = []
    count = 0
    for message in row.get("messages") or []:
        turns.append((message["role"], message.get("content") or ""))
        if message["role"] == "user":
            count = len(turns)
    texts = turns[:count] or [("user", row["input"]["raw"])]
    return ItemInput.of(texts, row["input"].get("reference"))
