"""Read samples in the form of Every Eval Ever, and tables of `id,score`."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from h2htalk.data.files import MAX_LINE, read_jsonl
from h2htalk.data.imports.harness_log import HarnessLog, ItemInput, LogRecord, number
from h2htalk.errors import DataError, listed, quoted


def read_every_eval_ever(path: Path) -> HarnessLog:
    """Read samples; the metric is `score`, or the evaluation's name where items have several. Raises DataError."""
    rows = [row for _, row in read_jsonl(path, nan=True)]
    models, tasks = ({row[key]: 1 for row in rows} for key in ("model_id", "evaluation_name"))
    if len(models) > 1:
        raise DataError(f"{path}: holds several models, {listed(list(models))}; keep one")
    keys = [(row["sample_id"], row.get("evaluation_result_id") or row["evaluation_name"]) for row in rows]
    several = len(set(keys)) > len({item for item, _ in keys})
    values: dict[tuple[str, int], dict[str, float | str]] = {}
    records, seen = {}, Counter[tuple[str, str]]()
    for row, (item, name) in zip(rows, keys, strict=True):
        seen[item, name] += 1
        key = (item, seen[item, name])
        values.setdefault(key, {})[name if several else "score"] = number(row["evaluation"].get("score"))
        turns = [(turn["role"], turn.get("content") or "") for turn in row.get("messages") or []]
        last = max((place for place, (role, _) in enumerate(turns, 1) if role == "user"), default=0)
        asked = ItemInput.of(turns[:last] or [("user", row["input"]["raw"])], row["input"].get("reference"))
        failure = "error" if row.get("error") else None
        # Digits alone are the position that converters write.
        records[key] = LogRecord(item, not item.isdecimal(), key[1], asked, None, values[key], failure)
    return HarnessLog(path, "Every Eval Ever", listed(list(models)), listed(list(tasks), 1), list(records.values()))


def read_score_table(path: Path) -> HarnessLog:
    """Read a CSV with `id`, `score` (empty: unscored) and, for several answers an item, `sample`. Raises DataError."""
    if path.stat().st_size > MAX_LINE:
        raise DataError(f"{path}: larger than {MAX_LINE >> 20} MiB; is it a table of id and score?")
    records = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter=max(",;\t", key=file.readline().count))
        file.seek(0)
        if not {"id", "score"} <= set(reader.fieldnames or ()):
            raise DataError(f"{path}: its first line must name the columns, id and score among them")
        for row in reader:
            try:
                value = number(float(row["score"]) if row["score"] else None)
                sample = int(row.get("sample") or 0)
            except (ValueError, TypeError):
                raise DataError(f"{path}:{reader.line_num}: score and sample must be numbers: {quoted(row)}") from None
            if not row["id"]:
                raise DataError(f"{path}:{reader.line_num}: has no id")
            records.append(LogRecord(row["id"], True, sample, None, None, {"score": value}))
    return HarnessLog(path, "CSV", path.stem, path.name, records)
