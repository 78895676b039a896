"""Read a folder of OpenCompass: `predictions/MODEL/DATASET.json` with `results/MODEL/DATASET.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from h2htalk.data.imports.harness_log import HarnessLog, ItemInput, LogRecord, number, read_object
from h2htalk.errors import DataError, counted, listed


def is_opencompass(folder: Path) -> bool:
    return (folder / "predictions").is_dir() or folder.parent.name == "predictions"


def read_opencompass(folder: Path) -> HarnessLog:
    """Read the data sets of one model; replicas are epochs.

    Args:
        folder: `WORK/TIME` where it holds one model, else `WORK/TIME/predictions/MODEL`.

    Raises:
        DataError: several models or none, or an evaluator that wrote no details.
    """
    if (folder / "predictions").is_dir():
        models = sorted(path for path in (folder / "predictions").iterdir() if path.is_dir())
        if len(models) != 1:
            raise DataError(f"{folder}: name one model, as predictions/MODEL: {listed([m.name for m in models])}")
        folder = models[0]
    results = folder.parents[1] / "results" / folder.name
    scored = {path.stem for path in results.glob("*.json")}
    parts: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: (len(path.stem), path.stem)):
        base = re.sub(r"_\d+$", "", path.stem)  # large data sets are split
        parts.setdefault(base if path.stem not in scored and base in scored else path.stem, []).append(path)
    records = [r for name, paths in parts.items() for r in _records(name, paths, results / f"{name}.json")]
    unfinished = len(list(folder.glob("tmp_*.jsonl")))
    notes = (f"{counted(unfinished, 'data set')} did not end (tmp_*.jsonl) and cannot be read",) if unfinished else ()
    return HarnessLog(folder, "OpenCompass", folder.name, listed(list(parts)), records, notes)


def _records(name: str, paths: list[Path], results: Path) -> Iterator[LogRecord]:
    predictions: dict[int, dict[str, Any]] = {}
    for path in paths:
        start = len(predictions)
        predictions |= {start + int(key): one for key, one in read_object(path).items()}
    rows = read_object(results).get("details") if results.is_file() else []
    if not isinstance(rows, list):
        raise DataError(f"{results}: its evaluator wrote no details of items, so there are no scores to compare")
    details = {int(row["example_abbr"].rpartition("_")[2]): row for row in rows}
    replicas = max((len(v) for row in rows for v in row.values() if isinstance(v, list)), default=1)
    items = len(predictions) // replicas
    for place, one in sorted(predictions.items()):
        replica, item = divmod(place, items)
        found = {key: v[replica] if isinstance(v, list) else v for key, v in details.get(item, {}).items()}
        own = found.pop("id", None)
        prompt = one["origin_prompt"]
        turns = [{"role": "user", "prompt": prompt}] if isinstance(prompt, str) else prompt
        asked = ItemInput.of([(t["role"], t.get("prompt") or t.get("content", "")) for t in turns], one.get("gold"))
        values = {key: number(v) for key, v in found.items() if not isinstance(v, str)}
        label = f"{name}_{item}" if own is None else str(own)
        yield LogRecord(label, own is not None, replica, asked, str(one["prediction"]), values)
