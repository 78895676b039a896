"""Hold a judge against its successor on the same answers and people's labels, and show what each table would see."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from h2htalk.benchmark.calibration.human_labels import read_labels
from h2htalk.benchmark.calibration.label_plan import read_plan
from h2htalk.benchmark.compare.formats import p_text
from h2htalk.benchmark.judge.judged_summary import judged_value, with_ratings
from h2htalk.benchmark.judge.judgements import Judge, Judgements, item_of, stored_judges
from h2htalk.benchmark.judge.ratings import AnswerRating, Judging, rate_answers
from h2htalk.benchmark.load_run import Run, load_run
from h2htalk.benchmark.metrics.composite import THRESHOLD, ItemScore
from h2htalk.benchmark.statistics.clusters import clusters_of
from h2htalk.benchmark.statistics.corrected_mean import design_effect, stratified
from h2htalk.benchmark.statistics.paired import Difference, PairedResult, paired_figures, paired_result
from h2htalk.benchmark.statistics.rank_correlation import Values, rank_correlation
from h2htalk.benchmark.statistics.table2_averages import ItemValue, aggregate
from h2htalk.data.arguments import as_path
from h2htalk.data.responses import SampleKey
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, listed, quoted

Ratings = Mapping[SampleKey, AnswerRating]
Items = tuple[Sequence[str], Values]  # of each item its cluster, and its ratings by A, B and people in three rows
Drawn = tuple[Sequence[int], Sequence[int]]  # of labelled items their place among those of a plan, of these the stratum


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with each judge, and `value` with its 95 % interval: B - A or a correlation."""

    name: str
    a: float | None
    b: float | None
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    items: int


@dataclass(frozen=True, slots=True)
class Succession:
    """Two judges, by label, on the same `answers`; `unpaired` answers only one of them judged.

    `mean_over` says of which items the mean squared distance is. `moved`: `J` and `R` -> items that are below the
    threshold with A alone, and with B alone.
    """

    a: str
    b: str
    answers: int
    unpaired: int
    mean_over: str
    figures: Sequence[Figure]
    moved: Mapping[str, tuple[Sequence[str], Sequence[str]]]

    def lines(self) -> Iterator[str]:
        """The succession for the terminal."""
        yield f"A: {self.a}; B: {self.b}; answers judged by both {self.answers:,}, by one of them {self.unpaired:,}"
        yield f"{'':30} items       A       B   B - A  95 % interval        p"
        for one in self.figures:
            sides = "".join("       -" if x is None else f"{x:8.2f}" for x in (one.a, one.b, one.value))
            ends = "" if one.low is None or one.high is None else f"{one.low:+.2f} to {one.high:+.2f}"
            yield f"{one.name:30}{one.items:6,}{sides}  {ends:<16}{'' if one.p is None else p_text(one.p):>6}".rstrip()
        for what, (a, b) in self.moved.items():
            yield f"{what} below {THRESHOLD} with A alone: {listed(a) or 'none'}; with B alone: {listed(b) or 'none'}"
        yield f"p: sign-flip test by cluster. Squared distance: mean {self.mean_over}. Cells: 100 times J / 5 or S."


def judge_succession(path: str | os.PathLike[str], a: str, b: str, human: str | os.PathLike[str]) -> Succession:
    """Compare two judges of a run: each a fingerprint or label, or a model that no other judge has.

    Raises:
        ConfigError: there is no such judge, or no answer that both judged and people rated.
        DataError: as `load_run`, or a file of judgements or labels is damaged.
    """
    run = load_run(as_path(path, "run"))
    judges = [_find_judge(run, name) for name in (a, b)]
    sides = [_rate(run, judge) for judge in judges]
    known = [{key for key, one in side.items() if one.judges[0] is not None} for side in sides]
    both, found = known[0] & known[1], read_labels(run, as_path(human, "human"))
    labels = {key: fmean(one.ratings.values()) for key, one in found.items() if key in both and one.ratings}
    if judges[0] == judges[1] or not labels:
        raise ConfigError(f"{path}: holds no answer that two judges, {quoted(a)} and {quoted(b)}, and people rated")
    common = [{key: side[key] for key in both} for side in sides]
    scores = [{item: with_ratings(one, side) for item, one in run.item_scores.items()} for side in common]
    drawn = _drawn(run, labels)
    planned = f"over the {len(drawn[1]):,} planned items, from two labels a stratum" if drawn else "over labelled items"
    figures = rating_figures(_items(run, sides, dict.fromkeys(both, 0.0)), _items(run, sides, labels), drawn)
    moved = {name: _moved(scores, measure) for name, measure in (("J", "j"), ("R", "rating"))}
    a, b = (judge.label for judge in judges)
    return Succession(a, b, len(both), len(known[0] ^ known[1]), planned, (*figures, *_cells(run, scores)), moved)


def rating_figures(items: Items, labelled: Items, drawn: Drawn | None = None) -> Iterator[Figure]:
    """R over all items, and against people over the labelled ones, or those of the plan that drew them."""
    clusters, (a, b, _) = items
    yield _mean("R, mean", clusters, b - a, a, b)
    yield Figure("R, Spearman", None, None, *rank_correlation([(clusters, np.array((a, b)))]), None, len(a))
    clusters, (a, b, people) = labelled
    squares = (a - people) ** 2, (b - people) ** 2
    name, values = "squared distance from people", (*squares, squares[1] - squares[0])
    if drawn is None:
        yield _mean(name, clusters, values[2], *squares)
    else:
        labels, zeros = [dict(zip(drawn[0], one.tolist(), strict=True)) for one in values], [0.0] * len(drawn[1])
        try:
            first, second, found = (
                stratified(zeros, one, drawn[1], design_effect(list(one.values()), clusters)) for one in labels
            )
            yield Figure(name, first.value, second.value, found.value, found.low, found.high, None, len(a))
        except ValueError:  # a stratum has too few
            yield Figure(name, None, None, None, None, None, None, len(a))


def _mean(name: str, clusters: Sequence[str], values: Values, *sides: Values) -> Figure:
    found = paired_result([Difference("", *pair) for pair in zip(clusters, values.tolist(), strict=True)])
    return _figure(name, found, *(fmean(side.tolist()) for side in sides))


def _figure(name: str, found: PairedResult, a: float | None = None, b: float | None = None) -> Figure:
    return Figure(name, a, b, found.mean, found.low, found.high, found.p(), found.items)


def _cells(run: Run, scores: Sequence[Mapping[str, ItemScore]]) -> Iterator[Figure]:
    """The levels' cells and the overall of Table 2, over items that have J with both; none without S."""
    clusters, languages = clusters_of(run.data.split.scenarios), run.summary.main.languages
    own = [s for s in run.data.split.scenarios if s.language in languages]
    sides = [[ItemValue(s.id, s.subtask, judged_value(s, side[s.id])) for s in own] for side in scores]
    rows, pairs = [aggregate(side) for side in sides], [(x, x.value, y.value) for x, y in zip(*sides, strict=True)]
    both = [(one, 100 * (y - x)) for one, x, y in pairs if x is not None and y is not None]
    found = paired_figures([Difference(one.group, clusters[one.id], shift) for one, shift in both])
    for key in (*(name for name in SUBTASKS if SUBTASKS[name].level), "overall"):
        if key in found:
            yield _figure(key, found[key], *(row.cells.get(key, row.overall).value for row in rows))


def _find_judge(run: Run, name: str) -> Judge:
    judges = stored_judges(run.data.folder.path)
    found = [one for one in judges if name in (one.fingerprint, one.label, one.model)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(one.label for one in judges) or "none"
    raise ConfigError(f"--judge {quoted(name)}: the run has {len(found)} judges of this name; choose from {names}")


def _rate(run: Run, judge: Judge) -> Ratings:
    """Rate every answer by all judgements of one judge; people's stay in their place in `rating`."""
    judging = Judging((judge.fingerprint,), Judgements(run.data.folder.path, judge).number)
    return rate_answers(run.data.folder, judging, run.answers, {s.id: s.subtask for s in run.data.split.scenarios})


def _drawn(run: Run, labels: Mapping[SampleKey, float]) -> Drawn | None:
    """The places and strata of labelled items, in their order; None unless the run's plan drew all of them."""
    plan, own = read_plan(run.data.folder.path), sorted({item for item, _ in labels})
    if plan is None or not {item_of(answer) for answer in plan.answers}.issuperset(own):
        return None
    planned, names = list(plan.strata), list(dict.fromkeys(plan.strata.values()))
    return [planned.index(item) for item in own], [names.index(name) for name in plan.strata.values()]


def _items(run: Run, sides: Sequence[Ratings], labels: Mapping[SampleKey, float]) -> Items:
    """The items, each the mean over its answers that have a label."""
    clusters, own = clusters_of(run.data.split.scenarios), dict[str, list[SampleKey]]()
    for key in sorted(labels):
        own.setdefault(key[0], []).append(key)
    ratings = [*({key: side[key].judges[0] or 0.0 for key in labels} for side in sides), labels]
    return [clusters[item] for item in own], np.array(
        [[fmean(map(one.__getitem__, keys)) for keys in own.values()] for one in ratings]
    )


def _moved(scores: Sequence[Mapping[str, ItemScore]], measure: str) -> tuple[Sequence[str], Sequence[str]]:
    pairs = [(item, *(getattr(side[item], measure) for side in scores)) for item in scores[0]]
    below = [(item, a < THRESHOLD, b < THRESHOLD) for item, a, b in pairs if a is not None and b is not None]
    return [item for item, a, b in below if a and not b], [item for item, a, b in below if b and not a]
