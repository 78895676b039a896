"""The items of a judged run with the judges' scores, to which people's labels are joined."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.calibration.corrected_mean import JudgedItem
from h2htalk.benchmark.calibration.labels import Labels
from h2htalk.benchmark.judge.judgements import (
    AnswerRating,
    Judging,
    Ratings,
    rate_answers,
    require_judging,
)
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.averages import clusters_of
from h2htalk.data.responses import Response, SampleKey


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run, whose judgements count in it, its ratings, and its items with a score, in its order."""

    run: Run
    judging: Judging
    ratings: Ratings
    items: Mapping[str, JudgedItem]

    def labelled(self, labels: Labels) -> list[JudgedItem]:
        """The items that people rated, with their ratings."""
        answers = defaultdict[str, list[SampleKey]](list)
        for key in labels:
            answers[key[0]].append(key)
        items = []
        for name, item in self.items.items():
            if name not in answers:
                continue
            keys = answers[name]
            people = fmean(fmean(labels[key].values()) for key in keys)
            by_answer = [self.ratings[key].known for key in keys]
            panel = tuple(fmean(means) for means in zip(*by_answer, strict=True))
            all_rated = len(keys) == self.run.data.spec.samples
            items.append(replace(item, people=people, panel=panel, whole=all_rated))
        return items


def load_judged(path: Path) -> JudgedRun:
    """Load a judged run. Raises ConfigError where it was not judged."""
    run = load_run(path)
    judging = require_judging(run.data.folder)
    ratings = rate_answers(run.data.folder, judging, run.counted, run.data.split.scenarios)
    items = {}
    clusters = clusters_of(run.data.split.scenarios)
    for scenario in judging.judged(run.data.split.scenarios):
        keys = [(scenario.id, sample) for sample in range(run.data.spec.samples)]
        answer_ratings = [ratings.get(key) for key in keys]
        complete = [rating for rating in answer_ratings if rating and _is_complete(rating)]
        if len(complete) < len(keys):
            continue
        replies = [run.answers[key] for key in keys]
        texts = [reply.answer for reply in replies if isinstance(reply, Response)]
        judge_means = [fmean(rating.known) for rating in complete]
        log_lengths = [math.log(1 + len(text)) for text in texts]
        items[scenario.id] = JudgedItem(
            id=scenario.id,
            subtask=scenario.subtask,
            cluster=clusters[scenario.id],
            score=fmean(judge_means),
            s=run.item_scores[scenario.id].s,
            length=fmean(log_lengths),
        )
    return JudgedRun(run, judging, ratings, items)


def _is_complete(rating: AnswerRating) -> bool:
    """Whether each judge gave one."""
    return None not in rating.judges
