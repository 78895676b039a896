"""The answers of a run as the item browser loads them, with their metrics, and what judges and people said of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from h2htalk.benchmark.judge import judgements
from h2htalk.benchmark.judge.rubric import PLAN_QUALITIES, POINTS, QUALITIES
from h2htalk.benchmark.metrics.composite import SampleScore, all_columns
from h2htalk.benchmark.run import Run
from h2htalk.data.replies.reasoning import split_reasoning
from h2htalk.data.responses import Response
from h2htalk.data.scenario import Scenario

# The parts of a rubric.
PARTS = (*QUALITIES, *PLAN_QUALITIES, *chain.from_iterable(POINTS.values()))


def pack_answers(run: Run, scenarios: Mapping[str, Scenario]) -> list[Any]:
    """Return metrics, judges, parts of the rubric, and the samples of each item; null where a run was not asked it."""
    folder = run.data.folder
    metrics = all_columns(item.metrics for item in run.item_scores.values())
    judging = judgements.read_judging(folder)
    judges = []
    judged: set[str] = set()
    count = 0
    if judging:
        judges = [judgements.read_judge(folder.path, name) for name in judging.judges]
        judged = {item.id for item in judging.judged(scenarios.values())}
        count = judging.judgements
    panel = [judgements.Judgements(folder.path, judge) for judge in judges]
    people = {rating.answer: rating for rating in judgements.list_people_ratings(folder)}

    def pack(score: SampleScore) -> list[Any]:
        answer = run.answers.get((score.id, score.sample))
        rating = None
        verdicts: list[Any] = []
        if isinstance(answer, Response):
            thinking = answer.thinking or split_reasoning(answer.text)[1]
            texts = [answer.answer, thinking, answer.finish_reason, None]
            if score.people:
                rating = people.get(judgements.answer_id(answer))
            for number, judge in enumerate(panel if score.id in judged else ()):
                for verdict in judge.of(answer, scenarios[score.id].subtask, count):
                    points = {**verdict.scores, **verdict.points}
                    evidence = []
                    for name, quote in verdict.evidence.items():
                        evidence.append([PARTS.index(name), int(points[name]), quote])
                    verdicts.append([number, reason_kind(verdict.unscored), evidence])
        else:
            reason = "missing" if answer is None else answer.failure.reason
            texts = [None, None, None, reason]
        values = list(map(ten_thousandths, map(score.values.get, metrics)))
        figures = map(ten_thousandths, (score.s, score.rating, score.j))
        broken = None if score.violations is None else " ".join(score.violations)
        reasons = map(reason_kind, (score.unscored, score.unjudged))
        people_note = rating and [rating.annotators, rating.round]
        return [*texts, values, *figures, broken, *reasons, people_note, verdicts]

    samples = []
    for name in scenarios:
        item = run.item_scores.get(name)
        samples.append(item and list(map(pack, item.samples)))
    return [metrics, [judge.label for judge in judges], PARTS, samples]


def ten_thousandths(value: float | None) -> int | None:
    """Return a score as a whole number of ten-thousandths."""
    return None if value is None else round(10_000 * value)


def reason_kind(reason: str | None) -> str | None:
    """Return a reason without the message of an exception, which may name paths and addresses."""
    return reason and reason.partition(":")[0]
