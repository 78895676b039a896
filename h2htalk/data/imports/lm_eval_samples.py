"""Read the samples that lm-eval logs: `samples_TASK_TIME.jsonl`, with `results_TIME.json` beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl
from h2htalk.data.imports.harness_log import HarnessLog, ItemInput, LogRecord, number, read_object


def read_lm_eval(path: Path) -> HarnessLog:
    """Read the samples of a task; metrics are named `METRIC,FILTER` if there are several filters. Raises DataError."""
    lines = [line for _, line in read_jsonl(path, nan=True)]
    several = len({line.get("filter") for line in lines}) > 1
    values: dict[int, dict[str, float | str]] = {}
    for line in lines:
        for name in line["metrics"]:
            key = f"{name},{line['filter']}" if several else name
            values.setdefault(line["doc_id"], {})[key] = number(line.get(name))
    firsts = {line["doc_id"]: line for line in reversed(lines)}
    records = [_record(firsts[place], values.get(place, {})) for place in sorted(firsts)]
    task, _, time = path.stem.removeprefix("samples_").rpartition("_")
    results = path.with_name(f"results_{time}.json")
    head = read_object(results) if results.is_file() else {}
    notes = () if head else (f"no {results.name} beside it: the model is unknown",)
    harness = f"lm-eval {head.get('lm_eval_version', '')}".strip()
    return HarnessLog(path, harness, str(head.get("model_name", "unknown")), task, records, notes)


def _record(line: dict[str, Any], values: dict[str, float | str]) -> LogRecord:
    name, prompt = line["doc"].get("id"), line["arguments"]["gen_args_0"]["arg_0"]
    # For chat models a list of one text, the messages as JSON.
    turns = json.loads(prompt[0]) if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    asked = ItemInput.of([(turn["role"], turn["content"]) for turn in turns], line["target"])
    item = str(line["doc_id"] if name is None else name)
    return LogRecord(item, name is not None, 0, asked, str(line["filtered_resps"][0]), values)
