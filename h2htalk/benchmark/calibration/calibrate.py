"""Calibrate the judges of a run against people's labels: agreement, what their error depends on, corrected means.

The error is the judge's score minus people's mean of the same answers, never the score alone: people may prefer long
replies too. Intervals of agreement come from 1,000 seeded draws of items (of clusters, where items share a dialogue),
those of errors from a jackknife. Coverage and false alarms: docs/measurements.md, "Judge calibration".
The corrected cells of levels I to III go into the run's tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from h2htalk.benchmark.calibration.corrected_mean import (
    CorrectedEstimates,
    JudgedItem,
    regression,
    stratified,
)
from h2htalk.benchmark.calibration.judged_items import JudgedRun, load_judged
from h2htalk.benchmark.calibration.label_plan import LEAST, LEAST_DRAWN, LabelPlan, read_plan
from h2htalk.benchmark.calibration.labels import Labels, read_labels
from h2htalk.benchmark.judge.judgements import (
    ALL_LEVELS,
    CORRECTED,
    CorrectedCells,
    answer_id,
    hash_of,
    read_judge,
)
from h2htalk.benchmark.metrics.composite import ALPHA
from h2htalk.benchmark.score_run import apply_judgements
from h2htalk.benchmark.statistics.averages import design_effect
from h2htalk.benchmark.statistics.estimates import Estimate, stored_fields, without_value
from h2htalk.benchmark.statistics.rank_correlation import cluster_bootstrap, rank_correlation
from h2htalk.benchmark.statistics.sign_flips import Values
from h2htalk.data.files import write_sealed
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.distributions import t_quantile
from h2htalk.errors import ConfigError, counted
from h2htalk.text.tables import Table

LEVELS = tuple(name for name, subtask in SUBTASKS.items() if subtask.level)
# The subtasks of each corrected mean.
GROUPS = {ALL_LEVELS: LEVELS, **{name: (name,) for name in LEVELS}}
for _dimension in DIMENSIONS:
    GROUPS[_dimension] = tuple(
        name
        for name, subtask in SUBTASKS.items()
        if subtask.dimension == _dimension and not subtask.level
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """A measure of agreement, the judges' mean error, or what it changes by with a unit of log length.

    The value is None where it cannot be computed; `method` is that of the 95 % interval, or says why there is none.
    """

    name: str
    estimate: Estimate
    method: str

    def row(self) -> tuple[str | float | None, ...]:
        """Return the values of `_FINDING`."""
        value, low, high, n, _ = self.estimate.fields
        return (self.name, value, low, high, n, self.method)


_FINDING = ("name", "value", "low", "high", "n", "method")  # its columns in files


def agreements(items: Sequence[JudgedItem]) -> list[Finding]:
    """Compare the judges' mean with people's mean of labelled items."""
    clusters = [item.cluster for item in items]
    judges = [fmean(item.panel) for item in items]
    sides = np.array([judges, [item.people for item in items]], float)
    categories = np.floor(sides + 0.5)
    names, numbers = np.unique(np.array(clusters), return_inverse=True)

    def kappa(weights: Values) -> Values:
        return weighted_kappa(categories, weights[:, numbers])

    method = "draws of items"
    return [
        Finding("weighted kappa", cluster_bootstrap(len(names), kappa, len(items)), method),
        Finding("Spearman", rank_correlation([(clusters, sides)]), method),
    ]


def weighted_kappa(sides: Values, weights: Values) -> Values:
    """Cohen's kappa with quadratic weights (Lin's concordance) of two rows of categories, a column an item, by row of
    weights, which say how often each item was drawn."""
    draws = weights.sum(1)
    first, second = sides
    squares = weights @ first**2 / draws + weights @ second**2 / draws
    chance = (weights @ first / draws) * (weights @ second / draws)
    covariance = weights @ (first * second) / draws - chance
    return np.asarray(2 * covariance / (squares - 2 * chance))


def error_effects(items: Sequence[JudgedItem]) -> list[Finding]:
    """Regress the error of labelled items on length: the mean error, and the slope.

    Items count by the number of items that they stand for. The variance is the sum of squared changes of an estimate as
    each cluster is left out, so that noise may be uneven; t has the clusters less two as degrees of freedom.
    """
    names = ("mean error", "error by log length")
    n = len(items)
    weights = np.array([item.weight for item in items])
    length = np.array([item.length for item in items])
    root = np.sqrt(weights / weights.mean())
    centred = length - np.average(length, weights=weights)
    x = root[:, None] * np.column_stack([np.ones(n), centred])
    y = root * np.array([item.error for item in items])
    clusters, numbers = np.unique(np.array([item.cluster for item in items]), return_inverse=True)
    fits = []
    for left_out in range(-1, len(clusters)):  # at -1 none of them
        used = numbers != left_out
        fits.append(np.linalg.lstsq(x[used], y[used]))
    df = len(clusters) - len(names)
    if df < 1 or min(fit[2] for fit in fits) < len(names):
        return [Finding(name, without_value(n, n), "too few items decide it") for name in names]
    estimates, *jackknifed = (fit[0] for fit in fits)
    changes = np.array(jackknifed) - estimates
    half_widths = t_quantile(df) * np.sqrt((changes**2).sum(0))
    findings = []
    for name, value, half in zip(names, estimates.tolist(), half_widths.tolist(), strict=True):
        estimate = Estimate(value, value - half, value + half, n, n)
        findings.append(Finding(name, estimate, f"jackknife, t({df})"))
    return findings


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected mean of R or J (0 to 5) of `levels`, a subtask or a dimension, with the judges' own mean.

    `estimator` is its name, or says why the correction is refused.
    """

    group: str
    figure: str
    judge_mean: float
    labels: int
    items: int
    estimator: str
    mean: CorrectedEstimates | None = None

    def clamped(self) -> list[float | None]:
        """The corrected mean, its interval over these items and that over such items, from 0 to 5."""
        if self.mean is None:
            return [None] * 5
        values = (*self.mean.sample.fields[:3], *self.mean.population.fields[1:3])
        return [None if value is None else min(5.0, max(0.0, value)) for value in values]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        mean = None
        if self.mean is not None:
            value, low, high, labels, items = self.mean.population.fields
            _, low_here, high_here, *_ = self.mean.sample.fields
            values = (value, low, high, low_here, high_here, labels, items)
            mean = dict(zip(_MEAN, values, strict=True))
        return {
            "group": self.group,
            "figure": self.figure,
            "own": self.judge_mean,
            "labels": self.labels,
            "items": self.items,
            "estimator": self.estimator,
            "mean": mean,
        }


_MEAN = ("value", "low", "high", "low_here", "high_here", "labels", "items")  # in files


def correct(
    group: str,
    figure: str,
    items: Sequence[JudgedItem],
    strata: Sequence[object] | None = None,
    random: bool = False,
) -> Correction:
    """Correct the judges' mean of R, or of J of items with S, by the labels of those that people rated; or say why not.

    `strata`: where the plan drew each item; `random`: the user calls the labels a simple random sample.
    """
    # J is (1 - ALPHA) times the sum of R and a multiple of S, which needs no correction.
    scale = 1.0
    multiple = 0.0
    if figure == "J":
        scale = 1 - ALPHA
        multiple = 5 * ALPHA / (1 - ALPHA)
    # What is added to each rating.
    certain = [0.0 if item.s is None else multiple * item.s for item in items]
    scores = [item.score for item in items]
    errors = {n: item.error for n, item in enumerate(items) if item.people is not None}
    correction = Correction(
        group=group,
        figure=figure,
        judge_mean=scale * (fmean(scores) + fmean(certain)),
        labels=len(errors),
        items=len(items),
        estimator="",
    )
    least = LEAST if strata is None else LEAST_DRAWN
    if len(errors) < min(least, max(2, len(items))):
        refused = f"{counted(len(errors), 'label')}, and {least} are needed"
        return replace(correction, estimator=refused)
    sums = [score + addend for score, addend in zip(scores, certain, strict=True)]
    labels = {position: sums[position] - error for position, error in errors.items()}
    effect = design_effect(sums, [item.cluster for item in items])
    try:
        if len(errors) == len(items):
            estimator = "all labelled"
            mean = stratified(sums, labels, [None for _ in items], effect)
        elif strata is not None:
            estimator = "stratified"
            mean = stratified(sums, labels, strata, effect)
        elif random:
            ratings = {position: scores[position] - error for position, error in errors.items()}
            estimator = "regression"
            mean = regression(scores, ratings, certain, effect)
        else:
            return replace(correction, estimator=_NOT_DRAWN)
    except ValueError as error:
        return replace(correction, estimator=str(error))
    if mean.population.interval is None:
        return replace(correction, estimator=_EQUAL_ERRORS)
    sample = _scaled(mean.sample, scale)
    if not all(items[position].whole for position in errors):
        # Answers that nobody rated vary within an item.
        sample = replace(sample, low=None, high=None)
    scaled = CorrectedEstimates(population=_scaled(mean.population, scale), sample=sample)
    return replace(correction, estimator=estimator, mean=scaled)


_NOT_DRAWN = "nobody knows which items the labels leave out: draw them with `plan-labels`, or --random-sample"
_EQUAL_ERRORS = "the judges' error is the same on all labelled items, so its spread is not known"


def _scaled(estimate: Estimate, scale: float) -> Estimate:
    """An estimate with a value and an interval, in another unit."""
    value, low, high = (None if x is None else scale * x for x in estimate.fields[:3])
    return replace(estimate, value=value, low=low, high=high)


def _corrections(
    judged: JudgedRun, labelled: Sequence[JudgedItem], plan: LabelPlan | None, random: bool
) -> Iterator[Correction]:
    """R and J of levels I to III, together and each; R of the dimensions' other subtasks."""
    rated = {item.id: item for item in labelled}
    items = []
    for name, item in judged.items.items():
        if plan is None or name in plan.strata:
            items.append(rated.get(name, item))
    for group, subtasks in GROUPS.items():
        if plan is not None and group not in plan.serves:  # it has too few labels
            continue
        members = [item for item in items if item.subtask in subtasks]
        figures = {"R": members}
        if group in (ALL_LEVELS, *LEVELS):
            figures["J"] = [item for item in members if item.s is not None]
        for figure, chosen in figures.items():
            has_labels = any(item.people is not None for item in chosen)
            if chosen and (has_labels or group == ALL_LEVELS):
                strata = None if plan is None else [plan.strata[item.id] for item in chosen]
                yield correct(group, figure, chosen, strata, random)


_MEANS = (
    "corrected mean",
    "judge",
    "corrected",
    "these: low",
    "high",
    "such: low",
    "high",
    "labels",
    "estimator",
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What people's labels say about the judges of a run: `labelled` items have ratings, of `items` with a score.

    `drawn`: how the labels came: `by the plan`, `at random` (the user's word) or `in an unknown way`.
    """

    run: str
    judges: tuple[str, ...]
    items: int
    labelled: int
    annotators: int
    drawn: str
    findings: tuple[Finding, ...]
    corrections: tuple[Correction, ...]
    notes: tuple[str, ...]

    def to(self, format: str) -> str:
        """Return it as `json`, or for the terminal: agreement and error, then the means that people would give."""
        if format == "json":
            record = {field.name: getattr(self, field.name) for field in fields(self)}
            rows = [finding.row() for finding in self.findings]
            record["findings"] = [dict(zip(_FINDING, row, strict=True)) for row in rows]
            record["corrections"] = [correction.to_dict() for correction in self.corrections]
            return json.dumps(record, ensure_ascii=False, indent=2)
        raters = f" by {counted(self.annotators, 'annotator')}" if self.annotators else ""
        labelled = f"{self.labelled} of {counted(self.items, 'judged item')} labelled{raters}; drawn {self.drawn}"
        title = f"{self.run}, judged by {', '.join(self.judges)}"
        header = ("judge and people", "value", "low", "high", "n", "interval")
        lines = [finding.row() for finding in self.findings]
        agreement = Table(title, header, lines, (labelled,))
        means = Table("", _MEANS, [_mean_row(mean) for mean in self.corrections], self.notes)
        return f"{agreement.to_terminal()}\n\n{means.to_terminal()}"


def _mean_row(correction: Correction) -> tuple[str | float | None, ...]:
    group = correction.group
    title = group.title()
    if group in SUBTASKS:
        title = SUBTASKS[group].title
    if group == ALL_LEVELS:
        title = "Levels I to III"
    value, *intervals = correction.clamped()
    return (
        f"{title}, {correction.figure}",
        correction.judge_mean,
        "refused" if value is None else value,
        *intervals,
        f"{correction.labels}/{correction.items}",
        correction.estimator,
    )


def calibrate_judge(path: Path, human: Path, *, random_sample: bool = False) -> Calibration:
    """Calibrate the judges of a judged run, store the corrected cells, and put them into its summary.

    People's ratings of an adjudication never count as a judge's. `human`: their labels, a CSV file or a closed
    adjudication round; `random_sample`: the labels are a simple random sample of the judged items.
    """
    run = load_judged(path)
    labels = read_labels(run.run, human)
    plan = None if random_sample else read_plan(path)
    unplanned = 0
    if plan is not None:
        planned = _planned_labels(run, plan, labels)
        if planned:
            unplanned = len(labels) - len(planned)
            labels = planned
        else:  # the labels were chosen in another way
            plan = None
    labelled = run.labelled(labels)
    if not labelled:
        raise ConfigError(f"{human}: holds no rating of an item that has a judge's score")
    method = "at random" if random_sample else "in an unknown way"
    if plan is not None:
        method = "by the plan"
        labelled = _weighted(labelled, plan)
    annotators = set[str]()
    for names in labels.values():
        annotators.update(filter(None, names))
    calibration = Calibration(
        run=run.run.summary.model,
        judges=tuple(read_judge(path, name).label for name in run.judging.judges),
        items=len(run.items),
        labelled=len(labelled),
        annotators=len(annotators),
        drawn=method,
        findings=(*agreements(labelled), *error_effects(labelled)),
        corrections=tuple(_corrections(run, labelled, plan, random_sample)),
        notes=tuple(_notes(run, len(labelled), labels, plan, unplanned)),
    )
    cells = _corrected_cells(run, calibration.corrections)
    write_sealed(path / CORRECTED, asdict(cells, dict_factory=stored_fields))
    apply_judgements(path)
    return calibration


def _planned_labels(run: JudgedRun, plan: LabelPlan, labels: Labels) -> Labels:
    """The labels of answers that the plan drew; none where others beside them were chosen in another way."""
    keys = set[SampleKey]()
    for answer in run.run.answers.values():
        if isinstance(answer, Response) and answer_id(answer) in plan.answers:
            keys.add((answer.id, answer.sample))
    planned = {key: ratings for key, ratings in labels.items() if key in keys}
    is_everything = {item for item, _ in labels} >= run.items.keys()
    return {} if len(planned) < len(labels) and is_everything else planned


def _weighted(labelled: Sequence[JudgedItem], plan: LabelPlan) -> list[JudgedItem]:
    """Labelled items, of which each stands for its share of its stratum."""
    sizes = Counter(plan.strata.values())
    counts = Counter(plan.strata[item.id] for item in labelled)
    weighted = []
    for item in labelled:
        stratum = plan.strata[item.id]
        weighted.append(replace(item, weight=sizes[stratum] / counts[stratum]))
    return weighted


def _corrected_cells(run: JudgedRun, corrections: Sequence[Correction]) -> CorrectedCells:
    """The corrected means of J for the run's tables."""
    cells = {}
    text = "no item of levels I to III has S and a judge's rating"
    for correction in corrections:
        if correction.figure != "J":
            continue
        labels = correction.labels
        value, _, _, low, high = correction.clamped()
        if correction.mean is not None:
            mean = Estimate(value, low, high, labels, correction.items)
            cells[correction.group] = _scaled(mean, 20)
        if correction.group == ALL_LEVELS:
            refused = "refused: " if correction.mean is None else ""
            shares = f"{counted(labels, 'label')} of {counted(correction.items, 'item')}"
            text = f"{refused}{correction.estimator}, {shares}"
    return CorrectedCells(hash_of(run.judging, run.ratings), text, cells)


def _notes(
    judged: JudgedRun, labelled: int, labels: Labels, plan: LabelPlan | None, unplanned: int
) -> Iterator[str]:
    if unplanned:
        yield f"{counted(unplanned, 'label')} of answers that the plan did not draw: left out"
    if plan is not None:
        subtasks = {judged.items[item].subtask for item in plan.strata if item in judged.items}
        late = 0
        for item in judged.items.values():
            late += item.subtask in subtasks and item.id not in plan.strata
        if late:
            yield f"{counted(late, 'item')} scored after the labels were drawn: left out of the corrected means"
        missing = len(plan.answers) - labelled
        if missing:
            yield f"{counted(missing, 'drawn item')} without a label: taken as missing by chance"
    left_out = len({item for item, _ in labels} - judged.items.keys())
    if left_out:
        yield f"{counted(left_out, 'labelled item')} without a judge's score: left out"
    yield "95 % intervals of the mean of these annotators: of these items alone, and of such items (20 J in tables)"
