"""The files in which people's labels of judged answers are read: a CSV file, or a closed round."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.judge.rubric import HIGHEST, PLAN_QUALITIES, QUALITIES, qualities_of
from h2htalk.benchmark.rating_rounds import read_round_ratings
from h2htalk.benchmark.run import Run
from h2htalk.data.imports.csv_rows import read_rows
from h2htalk.data.responses import Response, SampleKey
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.text.escaping import harmless_cell

# The columns of the file that people fill in. `subtask` and `scenario` are for them, and are not read.
COLUMNS = ("id", "sample", "subtask", "scenario", "reply", "rating")
_QUALITIES = (*QUALITIES, *PLAN_QUALITIES)
_ALLOWED_COLUMNS = (*COLUMNS, "annotator", *_QUALITIES)
# Each annotator's rating of each answer, 0 to 5. The annotator's name is empty where the file has no such column.
Labels = Mapping[SampleKey, Mapping[str, float]]


def read_labels(run: Run, path: Path) -> Labels:
    """Read people's ratings of a run's answers.

    `path` is a closed adjudication round, or a CSV file. The file has the column `id`, and either `rating` (0 to 5) or
    a column for each quality of the rubric. `sample` is needed where an item has several answers, `annotator` where
    several people rated one. A row without any rating is skipped.
    """
    if path.is_dir():
        return read_round_ratings(run, path)
    labels: dict[SampleKey, dict[str, float]] = {}
    lines: dict[tuple[Hashable, str], str] = {}
    subtasks = {}
    ids = {}
    for scenario in run.data.split.scenarios:
        subtasks[scenario.id] = scenario.subtask
        ids[scenario.id] = scenario.id
        ids[harmless_cell(scenario.id)] = scenario.id
    for where, row in read_rows(path):
        _check_columns(path, row)
        answer = _answer_of(run, ids, row, where)
        names = ("rating",) if "rating" in row else qualities_of(subtasks[answer.id])
        is_filled_in = any(row.get(name) for name in names)
        if not is_filled_in:
            continue
        key = answer.id, answer.sample
        annotator = row.get("annotator", "")
        require_first_rating(lines, key, annotator, where)
        ratings = [read_number(row.get(name, ""), f"{where}: {name}", 0, HIGHEST) for name in names]
        labels.setdefault(key, {})[annotator] = fmean(ratings)
    return labels


def _check_columns(path: Path, row: Mapping[str, str]) -> None:
    has_qualities = not row.keys().isdisjoint(_QUALITIES)
    rates_twice = "rating" in row and has_qualities
    has_other_columns = not row.keys() <= set(_ALLOWED_COLUMNS)
    if "id" not in row or has_other_columns or rates_twice:
        raise ConfigError(
            f"{path}: needs the columns id and rating, or id and the rubric's qualities in its place; it may have "
            f"{', '.join(_ALLOWED_COLUMNS)}, and no others"
        )


def _answer_of(run: Run, ids: Mapping[str, str], row: Mapping[str, str], where: str) -> Response:
    """Return the answer that a row is about. Raises DataError where the run has none, or another text.

    `ids` has the id of each item by the texts that a cell may hold for it.
    """
    item = ids.get(row["id"], "")
    cell = row.get("sample") or "0"
    sample = int(cell) if cell.isdecimal() else -1
    answer = run.answers.get((item, sample))
    if not isinstance(answer, Response):
        raise DataError(
            f"{where}: the run has no answer {quoted(cell)} to an item {quoted(row['id'])}"
        )
    # Words are compared, because spreadsheets change white space.
    words = row.get("reply", "").split()
    answer_words = answer.answer.split()
    exported_words = harmless_cell(answer.answer).split()
    if words and words not in (answer_words, exported_words):
        raise DataError(
            f"{where}: the reply is not the run's answer; name the run that was labelled"
        )
    return answer


def require_first_rating(
    lines: dict[tuple[Hashable, str], str], reply: Hashable, annotator: str, where: str
) -> None:
    """Note the line of an annotator's rating of a reply. Raises DataError for a second one, naming both lines.

    `lines` holds the line of each rating that was read before, by reply and annotator. Two names that differ only in
    capitals or in full-width characters are one person's.
    """
    name = unicodedata.normalize("NFKC", annotator).casefold()
    earlier = lines.setdefault((reply, name), where)
    if earlier == where:
        return
    advice = "keep the one that counts"
    if not annotator:
        advice += ", or name who gave each in a column `annotator`"
    raise DataError(
        f"{where}: a second rating of this reply by the same annotator, after {earlier}; {advice}"
    )


def read_number(cell: str, where: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Read a finite number of a table, within the ends. Raises DataError."""
    with suppress(ValueError):
        value = float(cell)
        if math.isfinite(value) and least <= value <= most:
            return value
    ends = f" from {least:g} to {most:g}" if math.isfinite(most) else ""
    raise DataError(f"{where} is {quoted(cell)}; write a number{ends}")
