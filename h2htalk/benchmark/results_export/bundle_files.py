"""Read the files of a bundle: its head, and a line for each answer with the scores that it claims."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.benchmark.results_export.export import HEAD, SAMPLES, BundleHead
from h2htalk.data import files
from h2htalk.data.imports.zip_members import read_members
from h2htalk.data.records import read_record
from h2htalk.data.responses import SampleKey, read_response
from h2htalk.errors import DataError, counted, quoted

# The keys of a line that are no scores.
_ANSWER = {"text", "finish_reason", "failure"}
# The most bytes that are read of the two files: 4 and 256 MiB.
_MAX_HEAD = 1 << 22
_MAX_SAMPLES = 1 << 28
# Each line by item and sample.
Rows = Mapping[SampleKey, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle as it was read: `samples_text` is the text of the file whose lines are `rows`."""

    head: BundleHead
    samples_text: str
    rows: Rows

    @property
    def ids(self) -> set[str]:
        """The items that it holds."""
        return {item for item, _ in self.rows}


def read_bundle(path: Path) -> Bundle:
    """Read a bundle, a folder or .zip. Raises DataError where it is none, or an item lacks a sample."""
    head_text = _read(path, HEAD, _MAX_HEAD)
    samples_text = _read(path, SAMPLES, _MAX_SAMPLES)
    head = read_record(BundleHead, head_text, f"{path}: {HEAD}: not a bundle of this version")
    rows = _read_rows(samples_text, head.samples)
    bundle = Bundle(head=head, samples_text=samples_text, rows=rows)
    lines = len(bundle.rows)
    if not lines or lines != len(bundle.ids) * head.samples:
        raise DataError(
            f"{path}: {counted(lines, 'line')} of {quoted(head.samples)} samples an item"
        )
    return bundle


def _read(path: Path, name: str, max_bytes: int) -> str:
    try:
        if path.is_dir():
            return files.read_bounded(path / name, max_bytes).decode()
        members = read_members(path, lambda _: [name], max_bytes)
        return next(content for _, content in members).decode()
    except (OSError, ValueError, DataError) as error:
        raise DataError(f"{path}: not a bundle: {name} cannot be read: {error}") from error


def _read_rows(text: str, samples: int) -> dict[SampleKey, dict[str, Any]]:
    """Read the lines by item and sample, each with its `answer`. Raises DataError, also for a second line."""
    rows: dict[SampleKey, dict[str, Any]] = {}
    for number, line in enumerate(io.StringIO(text), 1):
        where = f"{SAMPLES}:{number}"
        record = files.parse_object(line.encode(), where, unique_keys=True)
        names = record.keys() & {"id", "sample", *_ANSWER}
        answer = read_response({name: record[name] for name in names}, where)
        key = answer.id, answer.sample
        if answer.sample >= samples:
            raise DataError(
                f"{where}: sample {answer.sample}, but the bundle has {samples:,} an item, from 0 on"
            )
        if key in rows:
            raise DataError(
                f"{where}: a second line of {quoted(answer.id)}, sample {answer.sample}"
            )
        row = {name: value for name, value in record.items() if name not in _ANSWER}
        row["answer"] = answer
        rows[key] = row
    return rows
