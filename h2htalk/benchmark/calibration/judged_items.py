"""The items of a judged run, each with the judges' score, and people's labels beside it.

Answers and judgements of one item are averaged first: k answers to an item are not k items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.adjudicate import read_round_ratings
from h2htalk.benchmark.judge.ratings import AnswerRating, Judging, rate_answers, require_judging
from h2htalk.benchmark.judge.rubric import HIGHEST, PLAN_QUALITIES, POINTS, QUALITIES, points_of, qualities_of
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.intervals import clusters_of
from h2htalk.data.imports.harness_log import read_rows
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
            rating = fmean(read_number(cell, f"{where}: {name}", 0, HIGHEST) for name, cell in cells.items())
            _add(label.ratings, annotator, rating, where)
        if label.ratings or label.points:  # rows that were not filled in are none
            labels[key] = label
    return labels


def _add(own: dict[str, float], annotator: str, value: float, where: str) -> None:
    if annotator in own:
        raise DataError(f"{where}: a second label of this answer by the same annotator; see the column `annotator`")
    own[annotator] = value


def read_number(cell: str, where: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Read a finite number of a table, within the ends. Raises DataError."""
    with suppress(ValueError):
        if math.isfinite(value := float(cell)) and least <= value <= most:
            return value
    raise DataError(f"{where} is {quoted(cell)}; write a number" + f" from {least:g} to {most:g}" * math.isfinite(most))


def _yes(cell: str, where: str) -> float:
    if (answer := _YES_NO.get(cell.lower())) is None:
        raise DataError(f"{where} is {quoted(cell)}; write yes or no")
    return answer


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """An item of which the judges rated every answer, and what people said of some or all of its answers.

    Attributes:
        cluster: of items that are not independent of each other.
        score: the judges' mean, 0 to 5; `points` their share of yes of each point. s: S, None where it has none.
        length: the mean log of its replies' length in characters.
        whole: whether people rated all of its answers. weight: how many items it stands for, where a plan drew it.
        people: their mean over answers and annotators, None where nobody rated it; `panel` is each judge's mean of the
            same answers.
    """

    id: str
    subtask: str
    cluster: str
    score: float
    s: float | None
    length: float
    points: Mapping[str, float]
    people: float | None = None
    panel: tuple[float, ...] = ()
    whole: bool = True
    weight: float = 1.0

    @property
    def error(self) -> float:
        """The judges' mean minus people's, of the same answers; 0 where nobody rated it."""
        return 0.0 if self.people is None else fmean(self.panel) - self.people


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run, whose judgements count in it, its ratings, and its items with a score, in its order."""

    run: Run
    judging: Judging
    ratings: Mapping[SampleKey, AnswerRating]
    items: Mapping[str, JudgedItem]

    @property
    def path(self) -> Path:
        return self.run.data.folder.path

    def labelled(self, labels: Mapping[SampleKey, Label]) -> list[JudgedItem]:
        """The items that people rated, with their ratings."""
        rated: dict[str, dict[SampleKey, Label]] = {}
        for key, label in labels.items():
            if label.ratings and key[0] in self.items:
                rated.setdefault(key[0], {})[key] = label
        return [self._with_labels(self.items[item], rated[item]) for item in self.items if item in rated]

    def _with_labels(self, item: JudgedItem, own: Mapping[SampleKey, Label]) -> JudgedItem:
        return replace(
            item,
            people=fmean(fmean(label.ratings.values()) for label in own.values()),
            panel=tuple(map(fmean, zip(*(self.ratings[key].known for key in own), strict=True))),
            whole=len(own) == sum(key[0] == item.id for key in self.ratings),
        )


def load_judged(path: Path) -> JudgedRun:
    """Load a judged run. Raises ConfigError where it was not judged."""
    run = load_run(path)
    judging = require_judging(run.data.folder)
    ratings = rate_answers(run.data.folder, judging, run.answers, run.data.split.scenarios)
    items, clusters = {}, clusters_of(run.data.split.scenarios)
    for s in judging.judged(run.data.split.scenarios):
        keys = [(s.id, sample) for sample in range(run.data.spec.samples)]
        own = [one for key in keys if (one := ratings.get(key)) and None not in one.judges]
        if len(own) == len(keys):
            score, composite = fmean(fmean(one.known) for one in own), run.item_scores[s.id].s
            lengths = [len(answer.answer) for key in keys if isinstance(answer := run.answers[key], Response)]
            length = fmean(math.log(1 + characters) for characters in lengths)
            points = {name: fmean(one.points[name] for one in own) for name in own[0].points}
            items[s.id] = JudgedItem(s.id, s.subtask, clusters[s.id], score, composite, length, points)
    return JudgedRun(run, judging, ratings, items)
