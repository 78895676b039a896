"""Read scores of single items from another harness's log, whichever of its forms it has.

Inspect (`inspect_log`), lm-eval (`lm_eval_samples`), OpenCompass (`opencompass_folder`), Every Eval Ever
(`every_eval_ever`), and tables with the columns `id,score`. What is read is in `log_records`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl, reading
from h2htalk.data.imports.csv_rows import read_rows
from h2htalk.data.imports.every_eval_ever import read_every_eval_ever
from h2htalk.data.imports.inspect_log import read_inspect
from h2htalk.data.imports.lm_eval_samples import holds_a_list, read_lm_eval, read_lm_eval_lines
from h2htalk.data.imports.log_records import HarnessLog, LogRecord, number
from h2htalk.data.imports.opencompass_folder import read_opencompass
from h2htalk.errors import DataError, quoted


def read_score_table(path: Path) -> HarnessLog:
    """Read a CSV with `id`, `score` (empty: unscored) and, for several answers an item, `sample`."""
    records = []
    for where, row in read_rows(path):
        if not {"id", "score"} <= row.keys():
            raise DataError(
                f"{path}: its first line must name the columns, id and score among them"
            )
        if not row["id"]:
            raise DataError(f"{where}: has no id")
        try:
            value = number(float(row["score"]) if row["score"] else None)
            sample = int(row.get("sample") or 0)
        except ValueError:
            raise DataError(f"{where}: score and sample must be numbers: {quoted(row)}") from None
        record = LogRecord(
            item=row["id"],
            own_id=True,
            epoch=sample,
            values={"score": value},
        )
        records.append(record)
    return HarnessLog(path=path, harness="CSV", model=path.stem, task=path.name, records=records)


@contextmanager
def reading_log(path: Path) -> Iterator[None]:
    """Raise DataError where a log cannot be read, or lacks what its form has."""
    with reading(path):
        try:
            yield
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            if isinstance(error, KeyError):
                problem = f"without {quoted(error.args[0])}"
            else:
                problem = "a value is of another kind than the form has"
            raise DataError(
                f"{path}: is not in the form that its name promises ({problem})"
            ) from error


def read_harness_log(path: Path) -> HarnessLog:
    """Read a log. Raises DataError: it has none of the forms, is damaged, or holds an answer twice."""
    with reading_log(path):
        log = _reader(path)(path)
    records: dict[tuple[str, int], LogRecord] = {}
    for record in log.records:
        key = record.item, record.epoch
        first = records.get(key)
        if first is None:
            records[key] = record
            continue
        # Some harnesses write a line for each metric of an answer.
        repeated = first.values.keys() & record.values.keys()
        if repeated or not record.values:
            raise DataError(
                f"{path}: {quoted(record.item)} has two answers with the number {record.epoch}; "
                "keep one"
            )
        records[key] = replace(
            first,
            values={**first.values, **record.values},
            failure=first.failure or record.failure,
        )
    return replace(log, records=list(records.values()))


def _reader(path: Path) -> Callable[[Path], HarnessLog]:
    """The reader of the form that a file has by its name, and a JSONL file by its first line."""
    if path.is_dir():
        return read_opencompass
    if path.suffix in (".eval", ".json"):
        return read_inspect
    if path.suffix == ".csv":
        return read_score_table
    first: Mapping[str, Any] = {}
    if path.suffix == ".jsonl" and path.is_file():
        if holds_a_list(path):
            first = next(iter(read_lm_eval_lines(path)), {})
        else:
            _, first = next(read_jsonl(path, nan=True), ("", {}))
    if "doc_id" in first:
        return read_lm_eval
    if "evaluation" in first:
        return read_every_eval_ever
    raise DataError(
        f"{path}: is neither a run folder nor an Inspect log (.eval, .json), lm-eval or Every Eval Ever samples "
        "(.jsonl), an OpenCompass folder or a CSV"
    )
