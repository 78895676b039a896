"""Calibrate the judges of a run against people's labels: agreement, bias, corrected means.

The corrected cells of levels I to III go into the run's tables. People's ratings of an adjudication never count as a
judge's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.calibration.agreement import (
    ALL_LABELLED,
    POINTS,
    Agreement,
    Correction,
    Effect,
    LabelSample,
    agreements,
    correct,
    error_effects,
)
from h2htalk.benchmark.calibration.judged_items import JudgedItem, JudgedRun, Label, load_judged, read_labels
from h2htalk.benchmark.calibration.label_plan import LabelPlan, read_plan
from h2htalk.benchmark.judge.judged_summary import ALL_LEVELS, CorrectedCells, hash_of, write_corrected_cells
from h2htalk.benchmark.judge.judgements import answer_id, read_judge
from h2htalk.benchmark.metrics.composite import ALPHA
from h2htalk.benchmark.score_run import judge_again
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import ConfigError, counted
from h2htalk.text.tables import Table

Labels = Mapping[SampleKey, Label]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What people's labels say about the judges of a run.

    Attributes:
        run: its model in tables. judges: their labels.
        labelled: items with ratings, of `items` with a score. annotators: how many are named.
        drawn: how the labels came: `by the plan`, `at random` (the user's word) or `in an unknown way`.
        notes: what the reader must know.
    """

    run: str
    judges: tuple[str, ...]
    items: int
    labelled: int
    annotators: int
    drawn: str
    agreement: tuple[Agreement, ...]
    bias: tuple[Effect, ...]
    corrections: tuple[Correction, ...]
    notes: tuple[str, ...]


def calibrate_judge(path: Path, human: Path, *, random: bool = False) -> Calibration:
    """Calibrate the judges of a run, store the corrected cells, and put them into its summary.

    Args:
        path: the judged run.
        human: people's labels: a CSV file, or a closed adjudication round.
        random: the labels are a simple random sample of the judged items.
    """
    run = load_judged(path)
    labels, plan, left_out = read_labels(run.run, human), None if random else read_plan(path), 0
    if plan is not None:
        planned = {key: one for key, one in labels.items() if key in _drawn(run, plan)}
        everything = {key[0] for key, one in labels.items() if one.ratings} >= run.items.keys()
        if planned and (len(planned) == len(labels) or not everything):  # others were chosen in another way
            left_out, labels = len(labels) - len(planned), planned
        else:
            plan = None
    own = run.labelled(labels)
    if not own:
        raise ConfigError(f"{human}: holds no rating of an item that has a judge's score")
    if plan is not None:
        own = _weighted(own, plan)
    found = Calibration(
        run=run.run.summary.model,
        judges=tuple(read_judge(run.path, name).label for name in run.judging.judges),
        items=len(run.items),
        labelled=len(own),
        annotators=len({name for one in labels.values() for name in one.ratings if name}),
        drawn="at random" if random else "in an unknown way" if plan is None else "by the plan",
        agreement=tuple(agreements(own)),
        bias=tuple(error_effects(own)),
        corrections=tuple(_corrections(run, own, labels, plan, random)),
        notes=tuple(_notes(run, own, labels, plan, left_out)),
    )
    write_corrected_cells(run.path, _cells(run, found))
    judge_again(run.path)
    return found


def _drawn(judged: JudgedRun, plan: LabelPlan) -> set[SampleKey]:
    """The answers that a plan drew and that are unchanged."""
    answers = set(plan.answers)
    return {key for key, one in judged.run.answers.items() if isinstance(one, Response) and answer_id(one) in answers}


def _weighted(labelled: Sequence[JudgedItem], plan: LabelPlan) -> list[JudgedItem]:
    """Labelled items with the number of items that each stands for: its stratum's, by the labels there."""
    sizes, labels = Counter(plan.strata.values()), Counter(plan.strata[one.id] for one in labelled)
    return [replace(one, weight=sizes[plan.strata[one.id]] / labels[plan.strata[one.id]]) for one in labelled]


def _corrections(
    judged: JudgedRun, labelled: Sequence[JudgedItem], labels: Labels, plan: LabelPlan | None, random: bool
) -> Iterator[Correction]:
    """R and J of levels I to III, together and each; R of the dimensions' other subtasks; yes-or-no points."""
    rated = {one.id: one for one in labelled}
    items = [rated.get(item, one) for item, one in judged.items.items()]
    levels = [name for name in SUBTASKS if SUBTASKS[name].level]
    groups = {ALL_LEVELS: levels, **{name: [name] for name in levels}}
    groups |= {name: [s for s in SUBTASKS if SUBTASKS[s].dimension == name and s not in levels] for name in DIMENSIONS}
    if plan is not None:  # other groups would have too few labels in some stratum
        groups = {name: subtasks for name, subtasks in groups.items() if name in plan.serves}
        items = [one for one in items if one.id in plan.strata]

    def sample(own: list[JudgedItem], scores: list[float], errors: dict[int, float], known: list[float]) -> LabelSample:
        strata = [] if plan is None else [plan.strata[one.id] for one in own]
        names = sorted(set(strata))
        numbers = None if plan is None else [names.index(name) for name in strata]
        return LabelSample(own, scores, errors, known, numbers, random)

    for group, subtasks in groups.items():
        within = [one for one in items if one.subtask in subtasks]
        for figure, own in (("R", within), ("J", [one for one in within if one.s is not None])):
            errors = {at: one.error for at, one in enumerate(own) if one.people is not None}
            if own and (errors or group == ALL_LEVELS) and (figure == "R" or group in (ALL_LEVELS, *levels)):
                # J is (1 - ALPHA) times the sum of R and this multiple of S.
                known = [5 * ALPHA / (1 - ALPHA) * (one.s or 0.0) * (figure == "J") for one in own]
                scale = 1 - ALPHA if figure == "J" else 1.0
                yield correct(group, figure, sample(own, [one.score for one in own], errors, known), scale)
    for point in sorted({name for label in labels.values() for name in label.points}):
        own = [one for one in items if point in one.points]
        said: dict[str, list[float]] = {}  # by item, judges minus people of the same answers
        for key, label in labels.items():
            if point in label.points and key[0] in judged.items:
                share = judged.ratings[key].points[point]
                said.setdefault(key[0], []).append(share - fmean(label.points[point].values()))
        errors = {at: fmean(said[one.id]) for at, one in enumerate(own) if one.id in said}
        if errors:
            yield correct(POINTS, point, sample(own, [one.points[point] for one in own], errors, [0.0] * len(own)))


def _late(judged: JudgedRun, plan: LabelPlan | None) -> set[str]:
    """The items that got a score after the labels were drawn, in subtasks of the plan."""
    if plan is None:
        return set()
    subtasks = {judged.items[item].subtask for item in plan.strata if item in judged.items}
    return {one.id for one in judged.items.values() if one.subtask in subtasks and one.id not in plan.strata}


def _cells(judged: JudgedRun, found: Calibration) -> CorrectedCells:
    cells, correction = {}, "no item of levels I to III has S and a judge's rating"
    for one in found.corrections:
        if one.figure == "J" and one.mean is not None:
            ends = (one.mean.value, one.mean.low or 0.0, one.mean.high or 0.0)
            value, low, high = (min(100.0, max(0.0, 20 * end)) for end in ends)
            cells[one.group] = Cell(value, low, high, one.labels, one.items)
        if (one.group, one.figure) == (ALL_LEVELS, "J"):
            refused = "refused: " if one.mean is None else ""
            correction = f"{refused}{one.estimator}, {counted(one.labels, 'label')} of {counted(one.items, 'item')}"
    return CorrectedCells(hash_of(judged.judging, judged.ratings), correction, cells, calibration=asdict(found))


def _notes(
    judged: JudgedRun, labelled: Sequence[JudgedItem], labels: Labels, plan: LabelPlan | None, unplanned: int
) -> Iterator[str]:
    if unplanned:
        yield f"{counted(unplanned, 'label')} of answers that the plan did not draw: left out"
    if late := len(_late(judged, plan)):
        yield f"{counted(late, 'item')} scored after the labels were drawn: left out of the corrected means"
    if left_out := len({item for item, _ in labels} - judged.items.keys()):
        yield f"{counted(left_out, 'labelled item')} without a judge's score: left out"
    if plan is not None and (missing := len(plan.answers) - len(labelled)):
        yield f"{counted(missing, 'drawn item')} without a label: taken as missing by chance"
    yield "intervals are of the mean of these annotators, except those over annotators (2 to 10 with names)"


def to_json(found: Calibration) -> str:
    """Everything, figures in full."""
    return json.dumps(asdict(found), ensure_ascii=False, indent=2)


def to_terminal(found: Calibration) -> str:
    """The calibration for the terminal: three tables, and notes."""
    raters = f" by {counted(found.annotators, 'annotator')}" if found.annotators else ""
    labelled = f"{found.labelled} of {counted(found.items, 'judged item')} labelled{raters}; drawn {found.drawn}"
    agreement = [(one.measure, number(one.value), interval(one.low, one.high), one.n) for one in found.agreement]
    bias = [
        (one.name, number(one.value, "+"), interval(one.low, one.high, "+"), one.n, one.method) for one in found.bias
    ]
    corrected = ("corrected mean", "judge", "corrected", "these items", "such items", "labels", "estimator")
    notes = (
        "Intervals: agreement by 1,000 seeded draws of items; corrected means of these items alone, and of items",
        "of this kind, which the run's tables show (20 J).",
        *found.notes,
    )
    tables = (
        Table("", ("agreement", "value", "95 % interval", "n"), agreement),
        Table("", ("judge minus people", "value", "95 % interval", "n", "method"), bias),
        Table("", corrected, [row for one in found.corrections for row in _correction(one)], notes),
    )
    head = f"{found.run}, judged by {', '.join(found.judges)}\n{labelled}"
    return "\n\n".join([head, *(table.to_terminal() for table in tables)])


def _correction(one: Correction) -> Iterator[tuple[str, ...]]:
    title = SUBTASKS[one.group].title if one.group in SUBTASKS else one.group.title()
    title = "Levels I to III" if one.group == ALL_LEVELS else title
    name = one.figure if one.group == POINTS else f"{title}, {one.figure}"
    labels, most = f"{one.labels}/{one.items}", 1.0 if one.group == POINTS else 5.0
    if (m := one.mean) is None:
        yield name, number(one.own), "refused", "", "", labels, one.estimator
        return
    here, over = interval(m.low_here, m.high_here, most=most), interval(m.low, m.high, most=most)
    here = "exact" if one.estimator == ALL_LABELLED and m.low_here is not None else here
    yield name, number(one.own), number(m.value), here, over, labels, one.estimator
    if one.raters is not None:
        yield "", "", "", "", interval(*one.raters), "", "over annotators of this kind too"


def number(value: float | None, sign: str = "") -> str:
    """Format a figure."""
    return "none" if value is None else f"{value:{sign}.2f}"


def interval(low: float | None, high: float | None, sign: str = "", most: float | None = None) -> str:
    """Format an interval; `most`: of values from 0 to so much."""
    if low is None or high is None:
        return "none"
    low, high = (low, high) if most is None else (max(0.0, low), min(most, high))
    return f"[{low:{sign}.2f}, {high:{sign}.2f}]"
