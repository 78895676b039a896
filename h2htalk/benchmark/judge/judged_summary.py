"""The judged figures of a run: ratings beside the scores, and levels I to III as J in the main row (Eq. 3 and 4)."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.judge.judgements import (
    TOO_LONG,
    AnswerRating,
    Judging,
    rate_answers,
    read_judge,
    read_judging,
    whole_mean,
)
from h2htalk.benchmark.judge.rubric import points_of
from h2htalk.benchmark.metrics.composite import THRESHOLD, ItemScore, SampleScore, item_score, judged_score
from h2htalk.benchmark.statistics import Cell, ItemValue, aggregate, aggregate_slices
from h2htalk.benchmark.summary import JUDGE_WARNING, JudgeFigures, Summary, by_sample, slices_of
from h2htalk.data.files import json_line, read_sealed
from h2htalk.data.records import read_record
from h2htalk.data.responses import Answers, SampleKey
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted

ALL_LEVELS = "levels"  # beside the names of the subtasks
CORRECTED = Path("judgements") / "calibration.json"  # of a run
_AGAIN = "run `h2htalk judge calibrate` again"


@dataclass(frozen=True, slots=True)
class CorrectedCells:
    """J corrected by people's labels.

    Attributes:
        ratings: the hash of judges and ratings that were corrected (`hash_of`).
        correction: the estimator and the number of labels, or why there is no cell.
        cells: `levels` or a level's subtask -> 20 J; n of `total` items were labelled.
    """

    ratings: str
    correction: str
    cells: Mapping[str, Cell] = field(default_factory=dict)


def hash_of(judging: Judging, ratings: Mapping[SampleKey, AnswerRating]) -> str:
    """The hash of judges and their ratings of a run, people's ratings left out."""
    listed = [[*key, *one.judges] for key, one in sorted(ratings.items(), key=lambda pair: pair[0])]
    return hashlib.sha256(json_line([judging.judges, judging.judgements, listed]).encode()).hexdigest()


def read_corrected_cells(run: Path, judging: Judging, ratings: Mapping[SampleKey, AnswerRating]) -> CorrectedCells:
    """Read the corrected cells of a run; of a run without them, or with others' ratings by now, there are none."""
    path = run / CORRECTED
    try:
        found = read_record(CorrectedCells, read_sealed(path, _AGAIN), str(path), advice=f"; {_AGAIN}")
    except FileNotFoundError:
        return CorrectedCells("", "")
    return found if found.ratings == hash_of(judging, ratings) else CorrectedCells("", f"of other judgements: {_AGAIN}")


def with_judgements(
    folder: RunFolder,
    scenarios: Sequence[Scenario],
    summary: Summary,
    answers: Answers,
    scores: Mapping[str, ItemScore],
) -> tuple[Summary, Mapping[str, ItemScore]]:
    """Add ratings to the scores of a run, and J to its summary; both unchanged where it was never judged."""
    judging = read_judging(folder)
    if judging is None:
        return summary, scores
    own, ratings = judging.judged(scenarios), rate_answers(folder, judging, answers, scenarios)
    scores = {item: with_ratings(score, ratings) for item, score in scores.items()}
    figures = _figures(folder, judging, own, ratings, scores)
    judge = f"{'+'.join(figures.judges)}, {judging.judgements} each"
    if figures.people:
        judge += f", people rated {_rated_part(own, ratings, scores)}"
    protocol = {**summary.signature.protocol, "judge": judge}
    warnings = (*summary.warnings, *(f"{JUDGE_WARNING}{one}" for one in _warnings(summary, figures)))
    signature = replace(summary.signature, protocol=protocol)
    summary = replace(summary, signature=signature, judging=figures, warnings=warnings)
    if summary.measure != "s":
        return summary, scores
    with_s = [s for s in scenarios if s.language in summary.s_languages]
    row = aggregate(ItemValue(s.id, s.subtask, judged_value(s, scores[s.id])) for s in with_s)
    slices, samples = slices_of(with_s, scores, judged_value), tuple(by_sample(with_s, scores, judged_value))
    rows = replace(summary.rows, judged=row)
    return replace(summary, judged=True, rows=rows, slices=slices, by_sample=samples), scores


def with_ratings(score: ItemScore, ratings: Mapping[SampleKey, AnswerRating]) -> ItemScore:
    """Put the ratings of an item's answers into its score."""
    found = [(one, ratings.get((one.id, one.sample), AnswerRating(None))) for one in score.samples]
    return item_score(
        score.id, [replace(one, rating=r.rating, people=r.people, unjudged=r.unjudged) for one, r in found]
    )


def judged_value(scenario: Scenario, score: ItemScore | SampleScore) -> float | None:
    """J / 5 for levels I to III, S for others."""
    if not SUBTASKS[scenario.subtask].level:
        return score.s
    return None if score.j is None else score.j / 5


def _figures(
    folder: RunFolder,
    judging: Judging,
    scenarios: Sequence[Scenario],
    ratings: Mapping[SampleKey, AnswerRating],
    scores: Mapping[str, ItemScore],
) -> JudgeFigures:
    panel = [read_judge(folder.path, name) for name in judging.judges]
    corrected = read_corrected_cells(folder.path, judging, ratings)
    spreads = [max(one.known) - min(one.known) for one in ratings.values() if len(one.known) > 1]
    levels = [scores[s.id] for s in scenarios if SUBTASKS[s.subtask].level]
    by_judges = [(s, r) for one in levels if (s := one.s) is not None and (r := _by_judges(one, ratings)) is not None]
    values = [ItemValue(s.id, s.subtask, None if (r := scores[s.id].rating) is None else r / 5) for s in scenarios]
    return JudgeFigures(
        judges=tuple(judge.label for judge in panel),
        judgements=judging.judgements,
        scope=judging.scope,
        scored=sum(one.rating is not None for one in ratings.values()),
        total=len(ratings),
        people=sum(one.people for one in ratings.values()),
        failed=sum(one.failed is not None for one in ratings.values()),
        unscored=dict(sorted(Counter(one.unjudged for one in ratings.values() if one.unjudged).items())),
        unread={one.unjudged: one.unread for one in [*ratings.values()][::-1] if one.unjudged and one.unread},
        ratings=aggregate(values),
        points=_points(scenarios, ratings),
        queue={
            "J": sum(judged_score(s, r) < THRESHOLD for s, r in by_judges),
            "judge": sum(r < THRESHOLD for _, r in by_judges),
        },
        items=len(by_judges),
        disagreement=fmean(spreads) if spreads else None,
        corrected=corrected.cells,
        correction=corrected.correction,
    )


def _by_judges(score: ItemScore, ratings: Mapping[SampleKey, AnswerRating]) -> float | None:
    """An item's mean R by the judges, whatever people gave; None where an answer has none."""
    return whole_mean([ratings.get((score.id, one.sample), AnswerRating(None)).by_judges for one in score.samples])


def _rated_part(
    scenarios: Sequence[Scenario], ratings: Mapping[SampleKey, AnswerRating], scores: Mapping[str, ItemScore]
) -> str:
    """Which answers people rated: those that a trigger sends, all of them, make two runs comparable."""
    people = {item for (item, _), one in ratings.items() if one.people}
    found = {s.id: _by_judges(scores[s.id], ratings) for s in scenarios if SUBTASKS[s.subtask].level}
    r = {item: rating for item, rating in found.items() if rating is not None}
    j = {item: judged_score(s, rating) for item, rating in r.items() if (s := scores[item].s) is not None}
    for name, values in (("J", j), ("R", r)):
        if people == {item for item, value in values.items() if value < THRESHOLD}:
            return f"all items of {name} < {THRESHOLD}"
    digest = hashlib.sha256(json_line(sorted(people)).encode()).hexdigest()[:8]
    return f"{counted(len(people), 'item')} ({digest})"


def _points(scenarios: Sequence[Scenario], ratings: Mapping[SampleKey, AnswerRating]) -> dict[str, Cell]:
    """The share of yes of each point, over items; one with an unscored judgement has no value."""
    subtasks, said = {s.id: s.subtask for s in scenarios}, defaultdict[tuple[str, str], list[float | None]](list)
    for (item, _), rating in ratings.items():
        for name in points_of(subtasks[item]):
            said[name, item].append(rating.points.get(name))
    return aggregate_slices(ItemValue(item, name, whole_mean(yes)) for (name, item), yes in said.items())


def _warnings(summary: Summary, figures: JudgeFigures) -> list[str]:
    found = []
    if figures.failed:
        found.append(
            f"{counted(figures.failed, 'answer')} with judgements that failed or were not made: `h2htalk judge run` "
            "with the same judges repeats them; where --max-cost stopped it, raise that"
        )
    elif figures.unscored:
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in figures.unscored.items())
        again = "; `h2htalk judge run --repeat-unscored` with the same judges asks again for replies that were not read"
        advice = "" if set(figures.unscored) == {TOO_LONG} else again
        found.append(
            f"answers without a rating ({reasons}) leave the judged row incomplete, which is not ranked{advice}"
        )
        found += [f"the first reply of a judge that is {why}: {message}" for why, message in figures.unread.items()]
    if summary.measure != "s":
        found.append("without S there is no J: the ratings of levels I to III stand apart; score with an --embedder")
    return found
