"""The items of a judged run, each with the judges' score, and people's labels beside it.

Answers and judgements of one item are averaged first: k answers to an item are not k items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.adjudicate import read_round_ratings
from h2htalk.benchmark.judge.ratings import AnswerRating, Judging, rate_answers, require_judging
from h2htalk.benchmark.judge.rubric import HIGHEST, PLAN_QUALITIES, QUALITIES, qualities_of
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.intervals import clusters_of
from h2htalk.data.imports.harness_log import read_rows
from h2htalk.data.responses import Response, SampleKey
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.text.escaping import harmless_cell

COLUMNS = ("id", "sample", "subtask", "scenario", "reply", "rating")  # to fill in; `subtask`, `scenario` are not read
_SCORES = ("rating", *QUALITIES, *PLAN_QUALITIES)
_KNOWN = dict.fromkeys((*COLUMNS, "annotator", *_SCORES))
# Of an answer: annotator -> 0 to 5. Without a column `annotator` the name is empty.
Labels = Mapping[SampleKey, Mapping[str, float]]


def read_labels(run: Run, path: Path) -> Labels:
    """Read people's ratings of a run's answers.

    Args:
        run: the run.
        path: a closed adjudication round, or a CSV file with `id` and `rating` (0 to 5), or a column for each quality
            of the rubric in its place; where needed `sample` and `annotator`. Empty cells are skipped.
    """
    if path.is_dir():
        return read_round_ratings(run, path)
    labels: dict[SampleKey, dict[str, float]] = {}
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
        names = _SCORES[:1] if "rating" in row else qualities_of(scenario.subtask)
        if any(row.get(name) for name in names):  # rows that were not filled in are none
            own, annotator = labels.setdefault(key, {}), row.get("annotator", "")
            if annotator in own:
                raise DataError(f"{where}: a second label of this answer by the same annotator; see `annotator`")
            own[annotator] = fmean(read_number(row.get(n, ""), f"{where}: {n}", 0, HIGHEST) for n in names)
    return labels


def read_number(cell: str, where: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Read a finite number of a table, within the ends. Raises DataError."""
    with suppress(ValueError):
        if math.isfinite(value := float(cell)) and least <= value <= most:
            return value
    raise DataError(f"{where} is {quoted(cell)}; write a number" + f" from {least:g} to {most:g}" * math.isfinite(most))


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """An item of which the judges rated every answer (`score`), and what people said of some or all of its answers.

    `people` is their mean over answers and annotators, None where nobody rated it, `panel` each judge's mean of the
    same answers; `whole`: people rated all of them. `length` is the mean log of the replies' characters, `weight` the
    number of items that it stands for, where a plan drew it.
    """

    id: str
    subtask: str
    cluster: str
    score: float
    s: float | None
    length: float
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

    def labelled(self, labels: Labels) -> list[JudgedItem]:
        """The items that people rated, with their ratings."""
        rated: dict[str, list[SampleKey]] = {}
        for key in labels:
            if key[0] in self.items:
                rated.setdefault(key[0], []).append(key)
        return [
            replace(
                item,
                people=fmean(fmean(labels[key].values()) for key in rated[name]),
                panel=tuple(map(fmean, zip(*(self.ratings[key].known for key in rated[name]), strict=True))),
                whole=len(rated[name]) == sum(key[0] == name for key in self.ratings),
            )
            for name, item in self.items.items()
            if name in rated
        ]


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
            items[s.id] = JudgedItem(s.id, s.subtask, clusters[s.id], score, composite, length)
    return JudgedRun(run, judging, ratings, items)
