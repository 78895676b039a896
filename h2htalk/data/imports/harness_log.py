"""Scores of single items from another harness's log, in one form.

Inspect writes `.eval`, a zip of JSON files, or one JSON file. lm-eval writes `samples_TASK_TIME.jsonl` with
`results_TIME.json` beside it, OpenCompass `predictions/MODEL/DATASET.json` with `results/MODEL/DATASET.json`, Every
Eval Ever JSONL. A table has the columns `id,score`. `read_harness_log` at the end reads any of them.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import math
import re
import struct
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.data.files import MAX_LINE, parse_object, read_bounded, read_jsonl, reading, require_file
from h2htalk.errors import ConfigError, DataError, counted, listed, quoted, suggest

ZSTD = 93  # Python's zipfile reads it from 3.14 on
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, KeyError, ValueError, RuntimeError)
_MARKS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # Inspect's
_ROLES = {"human": "user", "bot": "assistant", "companion": "assistant"}


@dataclass(frozen=True, slots=True)
class ItemInput:
    """What an item asked: (role, text) with roles user, assistant and system, and references; texts normalised."""

    messages: tuple[tuple[str, str], ...]
    references: tuple[str, ...]

    @classmethod
    def of(cls, messages: Iterable[tuple[str, str]], references: object) -> ItemInput:
        texts = references if isinstance(references, list | tuple) else [references or ""]
        turns = tuple((_ROLES.get(role.lower(), role.lower()), _plain(text)) for role, text in messages)
        return cls(turns, tuple(filter(None, map(_plain, map(str, texts)))))

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        return tuple(turn for turn in self.messages if turn[0] != "system")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One answer (None in a log without texts) to an item, by its id (`own_id`) or position; its values by metric."""

    item: str
    own_id: bool
    epoch: int
    input: ItemInput | None
    answer: str | None
    values: Mapping[str, float | str]
    failure: str | None = None  # why there is no answer

    def value(self, metric: str) -> float | str:
        """The value, or why there is none: a scorer with several values has one reason for all of them."""
        return self.failure or self.values.get(metric, self.values.get(metric.rpartition("/")[0], "no score"))


@dataclass(frozen=True, slots=True)
class HarnessLog:
    """A log; `notes`: what a reader of its figures must know."""

    path: Path
    harness: str
    model: str
    task: str
    records: Sequence[LogRecord]
    notes: tuple[str, ...] = ()

    def metric(self, name: str | None) -> str:
        """The metric that was named, or the only one. Raises ConfigError, which lists the names, and DataError."""
        names = sorted({key for r in self.records for key, value in r.values.items() if not isinstance(value, str)})
        if name in names or (name is None and len(names) == 1):
            return name or names[0]
        if not names:
            raise DataError(f"{self.path}: no item has a score")
        wrong = "name a metric with --metric: " if name is None else f"no metric {quoted(name)}: {suggest(name, names)}"
        raise ConfigError(f"{self.path}: {wrong}choose from {', '.join(map(quoted, names))}")


def number(value: object, reason: str = "NaN") -> float | str:
    """A value as a number, or why it has none."""
    if not isinstance(value, bool | int | float):
        return "no score" if value is None else "not a number"
    return reason if math.isnan(value) else float(value)


def _read_object(path: Path) -> dict[str, Any]:
    return parse_object(read_bounded(path), str(path), nan=True)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n").strip()


def read_inspect(path: Path) -> HarnessLog:
    """Read a log; items that a run did not come to, because it was killed or cancelled, are failures."""
    header = next(parts := inspect_parts(path))
    if header.get("invalidated"):
        raise DataError(f"{path}: the log is marked as invalid")
    records, edited, about = [], 0, header["eval"]
    for sample in parts:
        records.append(_inspect_record(sample))
        edited += sum(bool(score.get("history")) for score in (sample.get("scores") or {}).values())
    held, ids = Counter(record.item for record in records), about["dataset"].get("sample_ids") or []
    epochs = about["config"].get("epochs") or 1
    # One record an item is enough: an item that lacks one epoch has no value.
    missing = [name for name in ids if held[str(name)] < epochs]
    notes, status = [], header.get("status", "started")  # a killed run has no header
    if status != "success" or missing:
        total = max(len(records), len(ids) * epochs)
        notes.append(f"the log is partial: status {status}, {len(records):,} of {total:,} samples")
    if edited:
        notes.append(f"{counted(edited, 'score was', 'scores were')} edited by hand")
    records += [LogRecord(str(name), isinstance(name, str), 0, None, None, {}, "not in the log") for name in missing]
    harness = f"Inspect {about.get('packages', {}).get('inspect_ai', '')}".strip()
    return HarnessLog(path, harness, str(about["model"]), str(about["task"]), records, tuple(notes))


def inspect_parts(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the header of a log, then its samples, one at a time: each holds everything that happened."""
    if path.suffix == ".eval":
        yield from (parse_object(text, where, nan=True) for where, text in read_members(path, _inspect_members))
    else:
        yield (header := _read_object(path))
        yield from header.get("samples") or ()


def _inspect_members(names: list[str]) -> list[str]:
    header = "header.json" if "header.json" in names else "_journal/start.json"
    return [header, *(name for name in names if name.startswith("samples/"))]


def _inspect_record(sample: Mapping[str, Any]) -> LogRecord:
    asked = [{"role": "user", "content": sample["input"]}] if isinstance(sample["input"], str) else sample["input"]
    values: dict[str, float | str] = {}
    for name, score in (sample.get("scores") or {}).items():
        reason = str(score.get("reason") or (score.get("metadata") or {}).get("unscored_reason") or "NaN")
        several = isinstance(value := score["value"], dict)
        for key, one in {f"{name}/{key}": one for key, one in value.items()}.items() if several else [(name, value)]:
            values[key] = number(_MARKS.get(one, one) if isinstance(one, str) else one, reason)
    return LogRecord(
        item=str(sample["id"]),
        own_id=isinstance(sample["id"], str),  # without ids Inspect numbers from 1
        epoch=int(sample["epoch"]),
        input=ItemInput.of([(m["role"], content_text(m["content"])) for m in asked], sample.get("target")),
        answer=str((sample.get("output") or {}).get("completion", "")),
        values=values,
        failure="invalidated" if sample.get("invalidation") else "error" if sample.get("error") else None,
    )


def content_text(content: str | list[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def read_lm_eval(path: Path) -> HarnessLog:
    """Read the samples of a task; metrics are named `METRIC,FILTER` if there are several filters."""
    lines = [line for _, line in read_jsonl(path, nan=True)]
    several, records = len({line.get("filter") for line in lines}) > 1, []
    for line in lines:
        name, prompt = line["doc"].get("id"), line["arguments"]["gen_args_0"]["arg_0"]
        # For chat models a list of one text, the messages as JSON.
        turns = json.loads(prompt[0]) if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
        asked = ItemInput.of([(turn["role"], turn["content"]) for turn in turns], line["target"])
        values = {f"{key},{line['filter']}" if several else key: number(line.get(key)) for key in line["metrics"]}
        item, answer = str(line["doc_id"] if name is None else name), str(line["filtered_resps"][0])
        records.append(LogRecord(item, name is not None, 0, asked, answer, values))
    task, _, time = path.stem.removeprefix("samples_").rpartition("_")
    results = path.with_name(f"results_{time}.json")
    head = _read_object(results) if results.is_file() else {}
    notes = () if head else (f"no {results.name} beside it: the model is unknown",)
    harness = f"lm-eval {head.get('lm_eval_version', '')}".strip()
    return HarnessLog(path, harness, str(head.get("model_name", "unknown")), task, records, notes)


def is_opencompass(folder: Path) -> bool:
    return (folder / "predictions").is_dir() or folder.parent.name == "predictions"


def read_opencompass(folder: Path) -> HarnessLog:
    """Read the data sets of one model, `WORK/TIME` or `WORK/TIME/predictions/MODEL`; replicas are epochs."""
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
    records = [r for name, paths in parts.items() for r in _opencompass_records(name, paths, results / f"{name}.json")]
    unfinished = len(list(folder.glob("tmp_*.jsonl")))
    notes = (f"{counted(unfinished, 'data set')} did not end (tmp_*.jsonl) and cannot be read",) if unfinished else ()
    return HarnessLog(folder, "OpenCompass", folder.name, listed(list(parts)), records, notes)


def _opencompass_records(name: str, paths: list[Path], results: Path) -> Iterator[LogRecord]:
    predictions = [one for path in paths for _, one in sorted((int(k), v) for k, v in _read_object(path).items())]
    rows = _read_object(results).get("details") if results.is_file() else []
    if not isinstance(rows, list):
        raise DataError(f"{results}: its evaluator wrote no details of items, so there are no scores to compare")
    details = {int(row["example_abbr"].rpartition("_")[2]): row for row in rows}
    replicas = max((len(v) for row in rows for v in row.values() if isinstance(v, list)), default=1)
    for place, one in enumerate(predictions):
        replica, item = divmod(place, len(predictions) // replicas)
        found = {key: v[replica] if isinstance(v, list) else v for key, v in details.get(item, {}).items()}
        own = found.pop("id", None)
        turns = [{"role": "user", "prompt": prompt}] if isinstance(prompt := one["origin_prompt"], str) else prompt
        asked = ItemInput.of([(t["role"], t.get("prompt") or t.get("content", "")) for t in turns], one.get("gold"))
        values = {key: number(v) for key, v in found.items() if not isinstance(v, str)}
        label = f"{name}_{item}" if own is None else str(own)
        answer = "" if one["prediction"] is None else str(one["prediction"])
        yield LogRecord(label, own is not None, replica, asked, answer, values)


def read_every_eval_ever(path: Path) -> HarnessLog:
    """Read samples; the metric is `score`, or the evaluation's name where items have several."""
    rows = [row for _, row in read_jsonl(path, nan=True)]
    models, tasks = (list({row[key]: 1 for row in rows}) for key in ("model_id", "evaluation_name"))
    if len(models) > 1:
        raise DataError(f"{path}: holds several models, {listed(models)}; keep one")
    keys = [(row["sample_id"], row.get("evaluation_result_id") or row["evaluation_name"]) for row in rows]
    several = len(set(keys)) > len({item for item, _ in keys})
    records, seen = [], Counter[tuple[str, str]]()
    for row, (item, name) in zip(rows, keys, strict=True):
        seen[item, name] += 1
        turns = [(turn["role"], turn.get("content") or "") for turn in row.get("messages") or []]
        last = max((place for place, (role, _) in enumerate(turns, 1) if role == "user"), default=0)
        asked = ItemInput.of(turns[:last] or [("user", row["input"]["raw"])], row["input"].get("reference"))
        values = {name if several else "score": number(row["evaluation"].get("score"))}
        failure = "error" if row.get("error") else None
        # Digits alone are the position that converters write.
        records.append(LogRecord(item, not item.isdecimal(), seen[item, name], asked, None, values, failure))
    return HarnessLog(path, "Every Eval Ever", listed(models), listed(tasks, 1), records)


def read_score_table(path: Path) -> HarnessLog:
    """Read a CSV with `id`, `score` (empty: unscored) and, for several answers an item, `sample`."""
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
    """The rows of a CSV file by heading, as `file:line`; the first line determines the separator. Raises DataError."""
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


@contextmanager
def reading_log(path: Path) -> Iterator[None]:
    """Raise DataError where a log cannot be read, or lacks what its form has."""
    with reading(path):
        try:
            yield
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            missing = isinstance(error, KeyError)
            problem = f"without {quoted(error.args[0])}" if missing else f"{type(error).__name__}: {quoted(str(error))}"
            raise DataError(f"{path}: is not in the form that its name promises ({problem})") from error


def read_harness_log(path: Path) -> HarnessLog:
    """Read a log. Raises DataError: it has none of the forms, is damaged, or holds an answer twice."""
    with reading_log(path):
        log = _reader(path)(path)
    records: dict[tuple[str, int], LogRecord] = {}
    for record in log.records:  # some harnesses write a line for each metric of an answer
        first = records.setdefault((record.item, record.epoch), record)
        if first is not record and (first.values.keys() & record.values.keys() or not record.values):
            raise DataError(f"{path}: {quoted(record.item)} has two answers with the number {record.epoch}; keep one")
        merged = replace(first, values={**first.values, **record.values}, failure=first.failure or record.failure)
        records[record.item, record.epoch] = merged
    return replace(log, records=list(records.values()))


def _reader(path: Path) -> Callable[[Path], HarnessLog]:
    first = next(read_jsonl(path, nan=True), ("", {}))[1] if path.suffix == ".jsonl" and path.is_file() else {}
    forms: dict[Callable[[Path], HarnessLog], bool] = {
        read_opencompass: path.is_dir(),
        read_inspect: path.suffix in (".eval", ".json"),
        read_score_table: path.suffix == ".csv",
        read_lm_eval: "doc_id" in first,
        read_every_eval_ever: "evaluation" in first,
    }
    if reader := next((one for one, fits in forms.items() if fits), None):
        return reader
    known = "an Inspect log (.eval, .json), lm-eval or Every Eval Ever samples (.jsonl), an OpenCompass folder or a CSV"
    raise DataError(f"{path}: is neither a run folder nor {known}")


def read_members(
    path: Path, choose: Callable[[list[str]], Iterable[str]], most: int = MAX_LINE
) -> Iterator[tuple[str, bytes]]:
    """Yield place and content of the members that `choose` takes from all names. Raises DataError."""
    try:
        with zipfile.ZipFile(require_file(path)) as archive:
            for name in choose(list(dict.fromkeys(archive.namelist()))):
                info, where = archive.getinfo(name), f"{path}: {quoted(name)}"
                if info.file_size > most:
                    raise DataError(f"{where}: larger than {most >> 20} MiB")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTD):
                    raise DataError(f"{where}: compressed in a way that is not read here")
                yield where, _read_zstd(archive, info) if info.compress_type == ZSTD else archive.read(info)
    except _DAMAGED as error:
        raise DataError(f"{path}: no whole zip file (damaged, cut off or something else): {error}") from error


def _read_zstd(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    import pyarrow as pa

    # zipfile hands over what it takes for stored as it is; the checksum is that of the content.
    stored = copy.copy(info)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, info.compress_size
    del stored.CRC
    with pa.CompressedInputStream(archive.open(stored), "zstd") as stream:
        content: bytes = stream.read(info.file_size + 1)
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{quoted(info.filename)} is not what the archive says of it")
    return content
