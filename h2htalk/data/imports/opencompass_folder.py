"""Folders of OpenCompass: `predictions/MODEL/DATASET.json` with `results/MODEL/DATASET.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.data.imports.log_records import (
    HarnessLog,
    ItemInput,
    LogRecord,
    number,
    read_log_object,
)
from h2htalk.errors import DataError, counted, listed


def is_opencompass(folder: Path) -> bool:
    return (folder / "predictions").is_dir() or folder.parent.name == "predictions"


def read_opencompass(folder: Path) -> HarnessLog:
    """Read the data sets of one model, `WORK/TIME` or `WORK/TIME/predictions/MODEL`; replicas are epochs."""
    predictions = folder / "predictions"
    if predictions.is_dir():
        models = sorted(path for path in predictions.iterdir() if path.is_dir())
        if len(models) != 1:
            names = listed([path.name for path in models])
            raise DataError(f"{folder}: name one model, as predictions/MODEL: {names}")
        folder = models[0]
    results = folder.parents[1] / "results" / folder.name
    files = _files_by_data_set(folder, results)
    records: list[LogRecord] = []
    for name, paths in files.items():
        records += _read_data_set(name, paths, results / f"{name}.json")
    notes = []
    unfinished = len(list(folder.glob("tmp_*.jsonl")))
    if unfinished:
        what = counted(unfinished, "data set")
        notes.append(f"{what} did not end (tmp_*.jsonl) and cannot be read")
    return HarnessLog(
        path=folder,
        harness="OpenCompass",
        model=folder.name,
        task=listed(list(files)),
        records=records,
        notes=tuple(notes),
    )


def _files_by_data_set(folder: Path, results: Path) -> dict[str, list[Path]]:
    """The files of predictions by data set: large ones are split into numbered parts, their results are not."""
    scored = {path.stem for path in results.glob("*.json")}
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: (len(path.stem), path.stem)):
        base = re.sub(r"_\d+$", "", path.stem)
        is_part = path.stem not in scored and base in scored
        files.setdefault(base if is_part else path.stem, []).append(path)
    return files


def _read_data_set(name: str, paths: Sequence[Path], results: Path) -> Iterator[LogRecord]:
    predictions: list[dict[str, Any]] = []
    for path in paths:
        by_position = read_log_object(path)
        predictions += [by_position[position] for position in sorted(by_position, key=int)]
    rows = read_log_object(results).get("details") if results.is_file() else []
    if not isinstance(rows, list):
        raise DataError(
            f"{results}: its evaluator wrote no details of items, so there are no scores to compare"
        )
    replicas = 1
    details: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        position = row["example_abbr"].rpartition("_")[2]
        details[int(position)] = row
        lengths = [len(value) for value in row.values() if isinstance(value, list)]
        replicas = max([replicas, *lengths])
    for index, prediction in enumerate(predictions):
        replica, item = divmod(index, len(predictions) // replicas)
        row = details.get(item, {})
        detail = {}
        for metric, value in row.items():
            detail[metric] = value[replica] if isinstance(value, list) else value
        item_id = detail.pop("id", None)
        turns = _turns_of(prediction["origin_prompt"])
        answer = prediction["prediction"]
        values = {
            metric: number(value) for metric, value in detail.items() if not isinstance(value, str)
        }
        label = f"{name}_{item}" if item_id is None else str(item_id)
        yield LogRecord(
            item=label,
            own_id=item_id is not None,
            epoch=replica,
            input=ItemInput.of(turns, prediction.get("gold")),
            answer="" if answer is None else str(answer),
            values=values,
        )


def _turns_of(prompt: Any) -> list[tuple[str, str]]:
    if isinstance(prompt, str):
        return [("user", prompt)]
    return [(turn["role"], turn.get("prompt") or turn.get("content", "")) for turn in prompt]
