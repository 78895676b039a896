"""Read the tables that a user brings to `correlate`: people's ratings of replies, and scores of other benchmarks."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from h2htalk.benchmark.load_run import Run
from h2htalk.errors import ConfigError, DataError, listed, quoted

# Of a reply by (item, sample), one for each annotator; the sample is None where a table does not tell them apart.
Ratings = dict[tuple[str, int | None], list[float]]


def read_benchmarks(path: Path, runs: Sequence[Run]) -> tuple[list[dict[str, float]], list[str]]:
    """Return each run's scores by benchmark, and the names of rows that are no run's.

    Raises:
        DataError: no CSV, no row of a run, two of one, or a cell that is no number; names file and line.
    """
    found: list[dict[str, float]] = [{} for _ in runs]
    others = []
    for where, row in _rows(path):
        (_, name), *cells = row.items()
        if (at := _run_named(name, runs, where)) is None:
            others.append(name)
        elif found[at]:
            raise DataError(f"{where}: a second row of {quoted(name)}; keep one")
        else:
            found[at] = {key: _number(cell, f"{where}: {key}") for key, cell in cells if cell}
    if not any(found):
        raise DataError(f"{path}: has no row named like one of {listed([run.summary.model for run in runs])}")
    return found, others


def read_ratings(path: Path, runs: Sequence[Run]) -> list[Ratings]:
    """Return each run's ratings.

    Raises:
        ConfigError: a column is missing: `id`, `rating` or, with several runs, `run`.
        DataError: no CSV, or a rating of nothing that a run answered; names file and line.
    """
    found: list[Ratings] = [{} for _ in runs]
    for where, row in _rows(path):
        if missing := {"id", "rating", *(["run"] if len(runs) > 1 else [])} - row.keys():
            raise ConfigError(f"{path}: lacks the column {listed(sorted(missing))}; it has {listed(list(row))}")
        at = _run_named(row["run"], runs, where) if "run" in row else 0
        item = None if at is None else runs[at].item_scores.get(row["id"])
        samples = {} if item is None else {"": None, **{str(one.sample): one.sample for one in item.samples}}
        if at is None or (sample := row.get("sample", "")) not in samples:
            raise DataError(f"{where}: no run that is named here has such an item or sample: {quoted(row)}")
        found[at].setdefault((row["id"], samples[sample]), []).append(_number(row["rating"], f"{where}: rating"))
    return found


def _run_named(name: str, runs: Sequence[Run], where: str) -> int | None:
    """The run of a name: as in tables, of its folder, or of the model alone."""
    own = [(r.summary.model, r.data.folder.path.name, r.summary.signature.subject["model"]) for r in runs]
    found = [at for at, names in enumerate(own) if name in names]
    if len(found) > 1:
        raise DataError(f"{where}: {quoted(name)} names {len(found)} runs; write the name of a run's folder")
    return found[0] if found else None


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file in UTF-8 by heading, as `file:line`; the first line determines the separator."""
    if not path.is_file():
        raise DataError(f"{path}: not a file")
    try:
        text = path.read_text(encoding="utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=text.partition("\n")[0].count))
        lines = [(f"{path}:{reader.line_num}", [cell.strip() for cell in row]) for row in reader if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV in UTF-8: {error}") from error
    for where, row in lines[1:]:
        if len(row) != len(set(lines[0][1])):
            raise DataError(f"{where}: {len(row)} cells, but {len(set(lines[0][1]))} different headings")
        yield where, dict(zip(lines[0][1], row, strict=True))


def _number(cell: str, where: str) -> float:
    try:
        if math.isfinite(value := float(cell)):
            return value
    except ValueError:
        pass
    raise DataError(f"{where} is {quoted(cell)}; write a number")
