"""The items of a judged run, each with the judges' score, and people's labels beside it.

Answers and judgements of one item are averaged first: k answers to an item are not k items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.calibration.human_labels import Label
from h2htalk.benchmark.judge.ratings import AnswerRating, Judging, rate_answers, read_judging
from h2htalk.benchmark.load_run import Run, load_run
from h2htalk.benchmark.statistics.clusters import clusters_of
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """An item of which the judges rated every answer, and what people said of some or all of its answers.

    Attributes:
        cluster: of items that are not independent of each other.
        score: the judges' mean, 0 to 5; `points` their share of yes of each point. s: S, None where it has none.
        length: the mean log of its replies' length in characters.
        whole: whether people rated all of its answers. weight: how many items it stands for, where a plan drew it.
        people: their mean over answers and annotators, None where nobody rated it; `panel` is each judge's mean of the
            same answers, `raters` each annotator's mean difference from the judges.
    """

    id: str
    subtask: str
    language: str
    cluster: str
    score: float
    s: float | None
    length: float
    points: Mapping[str, float]
    people: float | None = None
    panel: tuple[float, ...] = ()
    raters: Mapping[str, float] | None = None
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

    def judged_by(self, judges: tuple[str, ...]) -> JudgedRun:
        """The same run with the judgements of others, by their fingerprints."""
        return _judged(self.run, replace(self.judging, judges=judges))

    def labelled(self, labels: Mapping[SampleKey, Label]) -> list[JudgedItem]:
        """The items that people rated, with their ratings."""
        rated: dict[str, dict[SampleKey, Label]] = {}
        for key, label in labels.items():
            if label.ratings and key[0] in self.items:
                rated.setdefault(key[0], {})[key] = label
        return [self._with_labels(self.items[item], rated[item]) for item in self.items if item in rated]

    def _with_labels(self, item: JudgedItem, own: Mapping[SampleKey, Label]) -> JudgedItem:
        panel = {key: _known(self.ratings[key]) for key in own}
        errors: dict[str, list[float]] = {}
        for key, label in own.items():
            for annotator, rating in label.ratings.items():
                errors.setdefault(annotator, []).append(rating - fmean(panel[key]))
        return replace(
            item,
            people=fmean(fmean(label.ratings.values()) for label in own.values()),
            panel=tuple(map(fmean, zip(*panel.values(), strict=True))),
            raters={annotator: fmean(each) for annotator, each in errors.items()},
            whole=len(own) == sum(key[0] == item.id for key in self.ratings),
        )


def load_judged(path: Path) -> JudgedRun:
    """Load a judged run. Raises ConfigError where it was not judged."""
    run = load_run(path)
    if (judging := read_judging(run.data.folder)) is None:
        raise ConfigError(f"{path}: was not judged; run `h2htalk judge run` first")
    return _judged(run, judging)


def _judged(run: Run, judging: Judging) -> JudgedRun:
    scope = [s for s in run.data.split.scenarios if judging.scope == "all" or SUBTASKS[s.subtask].level]
    ratings = rate_answers(run.data.folder, judging, run.answers, {s.id: s.subtask for s in scope})
    items, clusters = {}, clusters_of(run.data.split.scenarios)
    for s in scope:
        keys = [(s.id, sample) for sample in range(run.data.spec.samples)]
        own = [one for key in keys if (one := ratings.get(key)) and None not in one.judges]
        if len(own) == len(keys):
            score, composite = fmean(fmean(_known(one)) for one in own), run.item_scores[s.id].s
            lengths = [len(answer.answer) for key in keys if isinstance(answer := run.answers[key], Response)]
            length = fmean(math.log(1 + characters) for characters in lengths)
            points = {name: fmean(one.points[name] for one in own) for name in own[0].points}
            items[s.id] = JudgedItem(s.id, s.subtask, s.language, clusters[s.id], score, composite, length, points)
    return JudgedRun(run, judging, ratings, items)


def _known(rating: AnswerRating) -> list[float]:
    return [judge for judge in rating.judges if judge is not None]
