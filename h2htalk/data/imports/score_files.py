"""Read samples in the form of Every Eval Ever, and tables of `id,score`."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from h2htalk.data.files import read_bounded, read_jsonl
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
    records = []
    for where, row in read_rows(path):
        if not {"id", "score"} <= row.keys():
            raise DataError(f"{path}: its first line must name the columns, id and score among them")
        if not row["id"]:
            raise DataError(f"{where}: has no id")
        try:
            value = number(float(row["score"]) if row["score"] else None)
            sample = int(row.get("sample") or 0)
        except ValueError:
            raise DataError(f"{where}: score and sample must be numbers: {quoted(row)}") from None
        records.append(LogRecord(row["id"], True, sample, None, None, {"score": value}))
    return HarnessLog(path, "CSV", path.stem, path.name, records)


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file in UTF-8 by heading, as `file:line`; the first line determines the separator.

    Raises:
        DataError: no such table, larger than 64 MiB, or a row without a cell for each heading.
    """
    try:
        text = read_bounded(path).decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=text.partition("\n")[0].count))
        lines = [(f"{path}:{reader.line_num}", [cell.strip() for cell in row]) for row in reader if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV in UTF-8: {error}") from error
    for where, row in lines[1:]:
        if len(row) != len(set(lines[0][1])):
            raise DataError(f"{where}: {len(row)} cells, but {len(set(lines[0][1]))} different headings")
        yield where, dict(zip(lines[0][1], row, strict=True))
