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
from dataclasses import asdict, astuple, dataclass, replace
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
from h2htalk.benchmark.calibration.labels import (
    LEAST,
    LEAST_DRAWN,
    JudgedRun,
    LabelPlan,
    Labels,
    load_judged,
    read_labels,
    read_plan,
)
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
from h2htalk.benchmark.statistics.averages import (
    cluster_bootstrap,
    design_effect,
    rank_correlation,
)
from h2htalk.benchmark.statistics.estimates import Estimate, stored_fields
from h2htalk.benchmark.statistics.sign_flips import Values
from h2htalk.data.files import write_sealed
from h2htalk.data.responses import Response
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.distributions import t_quantile
from h2htalk.errors import ConfigError, counted
from h2htalk.text.tables import Table

LEVELS = tuple(name for name, subtask in SUBTASKS.items() if subtask.level)
# The subtasks of each corrected mean.
GROUPS = {ALL_LEVELS: LEVELS, **{name: (name,) for name in LEVELS}}
GROUPS |= {
    d: tuple(s for s in SUBTASKS if SUBTASKS[s].dimension == d and s not in LEVELS)
    for d in DIMENSIONS
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A measure of agreement, the judges' mean error, or what it changes by with a unit of log length, over n items.
    The value is None where it cannot be computed; `method` is that of the 95 % interval, or says why there is none."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str


def agreements(items: Sequence[JudgedItem]) -> list[Finding]:
    """Compare the judges' mean with people's mean of labelled items."""
    clusters = [one.cluster for one in items]
    sides = np.array([[fmean(one.panel) for one in items], [one.people for one in items]], float)
    whole = np.floor(sides + 0.5)
    names, at = np.unique(np.array(clusters), return_inverse=True)
    found = {
        "weighted kappa": cluster_bootstrap(
            len(names), lambda weights: weighted_kappa(whole, weights[:, at]), len(items)
        ),
        "Spearman": rank_correlation([(clusters, sides)]),
    }
    return [Finding(name, *one.fields[:4], "draws of items") for name, one in found.items()]


def weighted_kappa(sides: Values, weights: Values) -> Values:
    """Cohen's kappa with quadratic weights (Lin's concordance) of two rows of categories, a column an item, by row of
    weights, which say how often each item was drawn."""
    a, b, aa, bb, ab = (
        weights @ part / weights.sum(1) for part in (*sides, *sides**2, sides[0] * sides[1])
    )
    return np.asarray(2 * (ab - a * b) / (aa + bb - 2 * a * b))


def error_effects(items: Sequence[JudgedItem]) -> list[Finding]:
    """Regress the error of labelled items on length: the mean error, and the slope.

    Items count by the number of items that they stand for. The variance is the sum of squared changes of an estimate as
    each cluster is left out, so that noise may be uneven; t has the clusters less two as degrees of freedom.
    """
    names = ("mean error", "error by log length")
    weights = np.array([one.weight for one in items])
    length = np.array([one.length for one in items])
    root = np.sqrt(weights / weights.mean())
    x = root[:, None] * np.column_stack(
        [np.ones(len(items)), length - np.average(length, weights=weights)]
    )
    y = root * np.array([one.error for one in items])
    clusters, cluster = np.unique(np.array([one.cluster for one in items]), return_inverse=True)
    fits = [
        np.linalg.lstsq(x[own], y[own])
        for own in (cluster != left for left in range(-1, len(clusters)))
    ]
    df = len(clusters) - len(names)
    if df < 1 or min(fit[2] for fit in fits) < len(names):
        return [
            Finding(name, None, None, None, len(items), "too few items decide it") for name in names
        ]
    whole, *others = (fit[0] for fit in fits)
    half = t_quantile(df) * np.sqrt(((np.array(others) - whole) ** 2).sum(0))
    found = zip(names, whole.tolist(), half.tolist(), strict=True)
    return [
        Finding(name, b, b - h, b + h, len(items), f"jackknife, t({df})") for name, b, h in found
    ]


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected mean of R or J (0 to 5) of `levels`, a subtask or a dimension; `own` is the judges' mean.

    `estimator` is its name, or says why the correction is refused.
    """

    group: str
    figure: str
    own: float
    labels: int
    items: int
    estimator: str
    mean: CorrectedEstimates | None = None

    def ends(self) -> list[float | None]:
        """The corrected mean, its interval over these items and that over such items, from 0 to 5."""
        if self.mean is None:
            return [None] * 5
        found = (*self.mean.sample.fields[:3], *self.mean.population.fields[1:3])
        return [None if end is None else min(5.0, max(0.0, end)) for end in found]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        if self.mean is None:
            return asdict(self)
        population, sample = self.mean
        mean = {
            "value": population.value,
            "low": population.low,
            "high": population.high,
            "low_here": sample.low,
            "high_here": sample.high,
            "labels": self.labels,
            "items": self.items,
        }
        return asdict(self) | {"mean": mean}


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
    is_j = figure == "J"
    scale = 1 - ALPHA if figure == "J" else 1.0
    scores = [one.score for one in items]
    known = [5 * ALPHA / (1 - ALPHA) * (one.s or 0.0) * is_j for one in items]
    errors = {at: one.error for at, one in enumerate(items) if one.people is not None}
    own = scale * (fmean(scores) + fmean(known))
    n = (len(errors), len(items))
    least = LEAST if strata is None else LEAST_DRAWN
    if len(errors) < min(least, max(2, len(items))):
        return Correction(
            group, figure, own, *n, f"{counted(len(errors), 'label')}, and {least} are needed"
        )
    whole = [score + more for score, more in zip(scores, known, strict=True)]
    labels = {at: whole[at] - error for at, error in errors.items()}
    effect = design_effect(whole, [item.cluster for item in items])
    try:
        if len(errors) == len(items):
            estimator = "all labelled"
            mean = stratified(whole, labels, [0] * len(items), effect)
        elif strata is not None:
            estimator = "stratified"
            mean = stratified(whole, labels, strata, effect)
        elif random:
            ratings = {at: scores[at] - error for at, error in errors.items()}
            estimator = "regression"
            mean = regression(scores, ratings, known, effect)
        else:
            raise ValueError(
                "nobody knows which items the labels leave out: draw them with `plan-labels`, or --random-sample"
            )
        if mean.population.interval is None:
            raise ValueError(
                "the judges' error is the same on all labelled items, so its spread is not known"
            )
    except ValueError as error:
        return Correction(group, figure, own, *n, str(error))
    sample = _scaled(mean.sample, scale)
    if not all(items[at].whole for at in errors):  # answers that nobody rated vary within an item
        sample = replace(sample, low=None, high=None)
    mean = CorrectedEstimates(_scaled(mean.population, scale), sample)
    return Correction(group, figure, own, *n, estimator, mean)


def _scaled(estimate: Estimate, scale: float) -> Estimate:
    value, low, high = (None if x is None else scale * x for x in estimate.fields[:3])
    return replace(estimate, value=value, low=low, high=high)


def _corrections(
    judged: JudgedRun, labelled: Sequence[JudgedItem], plan: LabelPlan | None, random: bool
) -> Iterator[Correction]:
    """R and J of levels I to III, together and each; R of the dimensions' other subtasks."""
    rated = {one.id: one for one in labelled}
    items = [
        rated.get(item, one)
        for item, one in judged.items.items()
        if plan is None or item in plan.strata
    ]
    for group in [
        name for name in GROUPS if plan is None or name in plan.serves
    ]:  # others have too few labels
        within = [one for one in items if one.subtask in GROUPS[group]]
        for figure, own in (("R", within), ("J", [one for one in within if one.s is not None])):
            labels = any(one.people is not None for one in own)
            strata = None if plan is None else [plan.strata[one.id] for one in own]
            if (
                own
                and (labels or group == ALL_LEVELS)
                and (figure == "R" or group in (ALL_LEVELS, *LEVELS))
            ):
                yield correct(group, figure, own, strata, random)


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
            corrections = [correction.to_dict() for correction in self.corrections]
            record = asdict(self) | {"corrections": corrections}
            return json.dumps(record, ensure_ascii=False, indent=2)
        raters = f" by {counted(self.annotators, 'annotator')}" if self.annotators else ""
        labelled = f"{self.labelled} of {counted(self.items, 'judged item')} labelled{raters}; drawn {self.drawn}"
        rows: list[tuple[str | float | None, ...]] = []
        for one in self.corrections:
            group = SUBTASKS[one.group].title if one.group in SUBTASKS else one.group.title()
            name = f"{'Levels I to III' if one.group == ALL_LEVELS else group}, {one.figure}"
            value, *ends = one.ends()
            refused = "refused" if value is None else value
            rows.append((name, one.own, refused, *ends, f"{one.labels}/{one.items}", one.estimator))
        corrected = (
            "corrected mean",
            "judge",
            "corrected",
            "these: low",
            "high",
            "such: low",
            "high",
            "labels",
        )
        title = f"{self.run}, judged by {', '.join(self.judges)}"
        head = ("judge and people", "value", "low", "high", "n", "interval")
        agreement = Table(title, head, list(map(astuple, self.findings)), (labelled,))
        means = Table("", (*corrected, "estimator"), rows, self.notes)
        return f"{agreement.to_terminal()}\n\n{means.to_terminal()}"


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
        answers = [one for one in run.run.answers.values() if isinstance(one, Response)]
        drawn = {(one.id, one.sample) for one in answers if answer_id(one) in plan.answers}
        planned = {key: one for key, one in labels.items() if key in drawn}
        everything = {key[0] for key in labels} >= run.items.keys()
        if planned and (
            len(planned) == len(labels) or not everything
        ):  # others were chosen in another way
            unplanned, labels = len(labels) - len(planned), planned
        else:
            plan = None
    own = run.labelled(labels)
    if not own:
        raise ConfigError(f"{human}: holds no rating of an item that has a judge's score")
    if plan is not None:  # a labelled item stands for its share of its stratum
        sizes = Counter(plan.strata.values())
        counts = Counter(plan.strata[one.id] for one in own)
        own = [
            replace(one, weight=sizes[plan.strata[one.id]] / counts[plan.strata[one.id]])
            for one in own
        ]
    found = Calibration(
        run=run.run.summary.model,
        judges=tuple(read_judge(path, name).label for name in run.judging.judges),
        items=len(run.items),
        labelled=len(own),
        annotators=len({name for own in labels.values() for name in own if name}),
        drawn="at random"
        if random_sample
        else "in an unknown way"
        if plan is None
        else "by the plan",
        findings=(*agreements(own), *error_effects(own)),
        corrections=tuple(_corrections(run, own, plan, random_sample)),
        notes=tuple(_notes(run, len(own), labels, plan, unplanned)),
    )
    cells = {}
    correction = "no item of levels I to III has S and a judge's rating"
    for one in found.corrections:
        value, _, _, low, high = one.ends()
        if one.figure == "J" and value is not None:
            cells[one.group] = _scaled(Estimate(value, low, high, one.labels, one.items), 20)
        if (one.group, one.figure) == (ALL_LEVELS, "J"):
            refused = "refused: " if one.mean is None else ""
            correction = f"{refused}{one.estimator}, {counted(one.labels, 'label')} of {counted(one.items, 'item')}"
    write_sealed(
        path / CORRECTED,
        asdict(
            CorrectedCells(hash_of(run.judging, run.ratings), correction, cells),
            dict_factory=stored_fields,
        ),
    )
    apply_judgements(path)
    return found


def _notes(
    judged: JudgedRun, labelled: int, labels: Labels, plan: LabelPlan | None, unplanned: int
) -> Iterator[str]:
    if unplanned:
        yield f"{counted(unplanned, 'label')} of answers that the plan did not draw: left out"
    if plan is not None:
        subtasks = {judged.items[item].subtask for item in plan.strata if item in judged.items}
        if late := sum(
            one.subtask in subtasks and one.id not in plan.strata for one in judged.items.values()
        ):
            yield f"{counted(late, 'item')} scored after the labels were drawn: left out of the corrected means"
        if missing := len(plan.answers) - labelled:
            yield f"{counted(missing, 'drawn item')} without a label: taken as missing by chance"
    if left_out := len({item for item, _ in labels} - judged.items.keys()):
        yield f"{counted(left_out, 'labelled item')} without a judge's score: left out"
    yield "95 % intervals of the mean of these annotators: of these items alone, and of such items (20 J in tables)"
