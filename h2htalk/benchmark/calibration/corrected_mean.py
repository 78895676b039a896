"""The mean that people would give, from a judge's scores of all items and people's labels of some (in closed form).

A judge's own mean is biased, and its interval leaves the judge's error out. Here the mean error on the labelled items
is taken off: `stratified` where `draw_labels` chose the items, `regression` where they are a simple random sample
(Angelopoulos et al. 2023, arXiv 2301.09633, with t and, for the stratified form, Cochran's variance). Measured
coverage: docs/measurements.md, "Judge statistics".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import fmean, variance

from h2htalk.benchmark.adjudicate import read_round_ratings
from h2htalk.benchmark.judge.judgements import AnswerRating, Judging, rate_answers, require_judging
from h2htalk.benchmark.judge.rubric import HIGHEST, PLAN_QUALITIES, QUALITIES, qualities_of
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics import clusters_of
from h2htalk.data.imports.harness_log import read_rows
from h2htalk.data.responses import Response, SampleKey
from h2htalk.distributions import t_quantile
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.text.escaping import harmless_cell

CUTS = (0.12, 0.4, 0.7)  # ranks by judge score at which strata end: rare large errors lie among the low scores


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """A mean on the labels' scale with its 95 % interval.

    `low`, `high` are of the mean over items of this kind (the safe default), `low_here`, `high_here` of the mean that
    people would give to these very items; None where the labels' errors do not vary. `labels` of `items` were labelled.
    """

    value: float
    low: float | None
    high: float | None
    low_here: float | None
    high_here: float | None
    labels: int
    items: int


def strata_of(scores: Sequence[float], seed: int = 0) -> list[int]:
    """Number the stratum (0 to 3) of each item: cut by rank of the judge's score, ties in random order."""
    rng = Random(seed)
    order = sorted(range(len(scores)), key=lambda at: (scores[at], rng.random()))
    strata = [0] * len(scores)
    for rank, at in enumerate(order):
        strata[at] = sum(rank >= round(cut * len(scores)) for cut in CUTS)
    return strata


def draw_labels(scores: Sequence[float], labels: int, seed: int = 0) -> list[int]:
    """Draw the items that people should label: a quarter of the labels at random in each stratum.

    Args:
        scores: of the judge, one for each item.
        labels: how many, from 8 to the number of items; a stratum with fewer items gives the rest to others.

    Returns:
        Their positions, sorted.
    """
    rng, strata = Random(seed), strata_of(scores, seed)
    groups = [[at for at, number in enumerate(strata) if number == stratum] for stratum in range(len(CUTS) + 1)]
    counts: list[int] = []
    for own in groups:
        counts.append(min(len(own), round((labels - sum(counts)) / (len(groups) - len(counts)))))
    for stratum, own in enumerate(groups):  # what the last ones could not take
        counts[stratum] += min(len(own) - counts[stratum], labels - sum(counts))
    return sorted(at for own, count in zip(groups, counts, strict=True) for at in rng.sample(own, count))


def stratified(
    scores: Sequence[float], labels: Mapping[int, float], strata: Sequence[object], effect: float = 1.0
) -> CorrectedMean:
    """Correct the judge's mean by the mean error in each stratum.

    Args:
        scores: of the judge, one for each item.
        labels: position -> people's rating; at least two in each stratum, or all of it.
        strata: of each item, as `strata_of` gives them.
        effect: the `design_effect` of items that share a cluster, on the interval over items of this kind.
    """
    items, n = len(scores), len(labels)
    error, spread, df = 0.0, 0.0, 0
    weights: dict[int, float] = {}  # of a label: the share of items that it stands for
    for stratum in sorted(set(strata), key=str):
        own = [at for at in labels if strata[at] == stratum]
        size = strata.count(stratum)
        if len(own) < min(2, size):
            raise ValueError(f"a stratum of {size} items has {len(own)} labels, and two are needed")
        weight, errors = size / items, [labels[at] - scores[at] for at in own]
        error += weight * fmean(errors)
        if len(own) < size:
            spread += weight**2 * (1 - len(own) / size) * variance(errors) / len(own)
            df += len(own) - 1
        weights |= dict.fromkeys(own, weight / len(own))
    mean = math.fsum(weights[at] * labels[at] for at in labels)
    beyond = math.fsum(weights[at] * (labels[at] - mean) ** 2 for at in labels) * n / max(1, n - 1) / items
    return _corrected(fmean(scores) + error, spread, df, beyond * effect, n, items)


def regression(
    scores: Sequence[float], labels: Mapping[int, float], known: Sequence[float] | None = None, effect: float = 1.0
) -> CorrectedMean:
    """Correct by the regression of labels on the judge's scores, slope 0 to 1; residuals are those of a left-out label.

    Args:
        scores: of the judge, one for each item.
        labels: position -> people's rating, of a simple random sample; at least four.
        known: of each item, what is added to its rating and needs no correction, such as a multiple of S; `stratified`
            takes it as a part of scores and labels.
    """
    items, n = len(scores), len(labels)
    if n < 4:
        raise ValueError(f"{n} labels, and four are needed")
    own = [scores[at] for at in labels]
    centre, mean = fmean(own), fmean(labels.values())
    square = math.fsum((x - centre) ** 2 for x in own)
    if max((x - centre) ** 2 for x in own) >= (1 - 1 / n) * square * (1 - 1e-9):  # one score alone would say the slope
        square = 0.0
    pairs = [(x - centre, y - mean) for x, y in zip(own, labels.values(), strict=True)]
    slope = min(1.0, max(0.0, math.fsum(x * y for x, y in pairs) / square)) if square else 0.0
    residuals = [(y - slope * x) / (1 - 1 / n - (x**2 / square if square else 0.0)) for x, y in pairs]
    noise = (n - 1) / n * fmean(r * r for r in residuals)
    known = known or [0.0] * items
    value = mean + slope * (fmean(scores) - centre) + fmean(known)
    beyond = effect * variance([y + known[at] for at, y in labels.items()]) / items
    return _corrected(value, (1 - n / items) * noise / n, n - 2, beyond, n, items)


def _corrected(value: float, spread: float, df: int, beyond: float, labels: int, items: int) -> CorrectedMean:
    """The mean with the interval over items of this kind, and that over these items, which is never the wider one.

    `spread`, `df`: the variance of the correction and its degrees of freedom, pooled over strata; `beyond`: the
    variance of the mean of as many items of this kind. Where errors do not vary and labels are missing, nothing is
    known of the other items, so that there is no interval.
    """
    if labels < items and not spread:
        return CorrectedMean(value, None, None, None, None, labels, items)
    here = t_quantile(df) * math.sqrt(spread) if spread else 0.0
    parts = (spread**2 / df if spread else 0.0) + beyond**2 / (labels - 1)
    over = t_quantile((spread + beyond) ** 2 / parts) * math.sqrt(spread + beyond) if parts else 0.0
    over = max(here, over)
    return CorrectedMean(value, value - over, value + over, value - here, value + here, labels, items)


def design_effect(values: Sequence[float], clusters: Sequence[str]) -> float:
    """Return how much larger the variance of a mean is because items of a cluster resemble each other; 1 or more.

    Where all values are the same, a cluster counts for one.
    """
    mean, totals = fmean(values), dict.fromkeys(clusters, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        totals[cluster] += value - mean
    square, groups, n = math.fsum((value - mean) ** 2 for value in values), len(totals), len(values)
    if not square:
        return n / groups
    among = math.fsum(total**2 for total in totals.values()) * groups / max(1, groups - 1)
    return max(1.0, among / (square * n / (n - 1)))


COLUMNS = ("id", "sample", "subtask", "scenario", "reply", "rating")  # to fill in; `subtask`, `scenario` are not read
_QUALITIES = (*QUALITIES, *PLAN_QUALITIES)
_KNOWN = dict.fromkeys((*COLUMNS, "annotator", *_QUALITIES))
# Of an answer: annotator -> 0 to 5. Without a column `annotator` the name is empty.
Labels = Mapping[SampleKey, Mapping[str, float]]


def read_labels(run: Run, path: Path) -> Labels:
    """Read people's ratings of a run's answers.

    `path` is a closed adjudication round, or a CSV file with `id` and `rating` (0 to 5), or a column for each quality
    of the rubric in its place; where needed `sample` and `annotator`. Empty cells are skipped.
    """
    if path.is_dir():
        return read_round_ratings(run, path)
    labels: dict[SampleKey, dict[str, float]] = {}
    ids = {shown: s for s in run.data.split.scenarios for shown in (s.id, harmless_cell(s.id))}
    for where, row in read_rows(path):
        if "id" not in row or not row.keys() <= _KNOWN.keys() or ("rating" in row and row.keys() & {*_QUALITIES}):
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
        names = ("rating",) if "rating" in row else qualities_of(scenario.subtask)
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
        rated = defaultdict[str, list[SampleKey]](list)
        for key in labels:
            rated[key[0]].append(key)
        return [
            replace(
                item,
                people=fmean(fmean(labels[key].values()) for key in rated[name]),
                panel=tuple(map(fmean, zip(*(self.ratings[key].known for key in rated[name]), strict=True))),
                whole=len(rated[name]) == self.run.data.spec.samples,
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
