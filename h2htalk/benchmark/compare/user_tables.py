"""Read the tables that a user brings to `correlate`: people's ratings of replies, and scores of other benchmarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from h2htalk.benchmark.load_run import Run
from h2htalk.data.imports.score_files import read_rows
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
    for where, row in read_rows(path):
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
    for where, row in read_rows(path):
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


def _number(cell: str, where: str) -> float:
    try:
        if math.isfinite(value := float(cell)):
            return value
    except ValueError:
        pass
    raise DataError(f"{where} is {quoted(cell)}; write a number")
