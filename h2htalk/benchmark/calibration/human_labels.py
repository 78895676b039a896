"""People's labels of a run's answers, from a CSV file or a closed adjudication round."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.adjudication.rating_rounds import read_round_ratings
from h2htalk.benchmark.judge.rubric import HIGHEST, PLAN_QUALITIES, POINTS, QUALITIES, points_of, qualities_of
from h2htalk.benchmark.load_run import Run
from h2htalk.data.imports.score_files import read_rows
from h2htalk.data.responses import Response, SampleKey
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.text.escaping import harmless_cell

COLUMNS = ("id", "sample", "subtask", "scenario", "reply", "rating")  # to fill in; `subtask`, `scenario` are not read
_SCORES = ("rating", *QUALITIES, *PLAN_QUALITIES)
_POINTS = tuple(name for names in POINTS.values() for name in names)
_KNOWN = dict.fromkeys((*COLUMNS, "annotator", *_SCORES, *_POINTS))
_YES_NO = {"yes": 1.0, "true": 1.0, "1": 1.0, "no": 0.0, "false": 0.0, "0": 0.0}


@dataclass(frozen=True, slots=True)
class Label:
    """What people said of one answer: annotator -> 0 to 5, and yes-or-no point -> annotator -> 1 or 0.

    Without a column `annotator` the name is empty.
    """

    ratings: dict[str, float] = field(default_factory=dict)
    points: dict[str, dict[str, float]] = field(default_factory=dict)


def read_labels(run: Run, path: Path) -> dict[SampleKey, Label]:
    """Read people's labels of a run's answers.

    Args:
        run: the run.
        path: a closed adjudication round, or a CSV file with `id` and `rating` (0 to 5), or a column for each quality
            of the rubric in its place; where needed `sample`, `annotator` and yes-or-no points. Empty cells are
            skipped.

    Raises:
        ConfigError: the columns are others.
        DataError, RoundError: no CSV, an answer that the run does not hold, a value that cannot be, two of one
            annotator (names file and line); a round that is open or another run's.
    """
    if path.is_dir():
        return {key: Label({k: float(v) for k, v in own.items()}) for key, own in read_round_ratings(run, path).items()}
    labels: dict[SampleKey, Label] = {}
    ids = {shown: s for s in run.data.split.scenarios for shown in (s.id, harmless_cell(s.id))}
    for where, row in read_rows(path):
        if "id" not in row or not row.keys() <= _KNOWN.keys() or ("rating" in row and row.keys() & set(_SCORES[1:])):
            raise ConfigError(
                f"{path}: needs the columns id and rating, or id and the rubric's qualities in its place; it may have "
                f"{', '.join(_KNOWN)}, and no others"
            )
        scenario, sample = ids.get(row["id"]), row.get("sample") or "0"
        key = ("" if scenario is None else scenario.id, int(sample) if sample.isdecimal() else -1)
        if scenario is None or not isinstance(answer := run.answers.get(key), Response):
            raise DataError(f"{where}: the run has no answer {quoted(sample)} to an item {quoted(row['id'])}")
        given = (answer.answer.split(), harmless_cell(answer.answer).split())  # spreadsheets change white space
        if (shown := row.get("reply", "").split()) and shown not in given:
            raise DataError(f"{where}: the reply is not the run's answer; name the run that was labelled")
        label, annotator = labels.get(key) or Label(), row.get("annotator", "")
        for name in _POINTS:
            if row.get(name):
                if name not in points_of(scenario.subtask):
                    raise DataError(f"{where}: judges answer no {name} of {scenario.subtask}; empty the cell")
                _add(label.points.setdefault(name, {}), annotator, _yes(row[name], f"{where}: {name}"), where)
        cells: dict[str, str] = {
            name: row.get(name, "") for name in (_SCORES[:1] if "rating" in row else qualities_of(scenario.subtask))
        }
        if any(cells.values()):
            rating = fmean(_number(cell, f"{where}: {name}") for name, cell in cells.items())
            _add(label.ratings, annotator, rating, where)
        if label.ratings or label.points:  # rows that were not filled in are none
            labels[key] = label
    return labels


def _add(own: dict[str, float], annotator: str, value: float, where: str) -> None:
    if annotator in own:
        raise DataError(f"{where}: a second label of this answer by the same annotator; see the column `annotator`")
    own[annotator] = value


def _number(cell: str, where: str) -> float:
    try:
        if 0 <= (value := float(cell)) <= HIGHEST:
            return value
    except ValueError:
        pass
    raise DataError(f"{where} is {quoted(cell)}; write a number from 0 to {HIGHEST}")


def _yes(cell: str, where: str) -> float:
    if (answer := _YES_NO.get(cell.lower())) is None:
        raise DataError(f"{where} is {quoted(cell)}; write yes or no")
    return answer
