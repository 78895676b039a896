"""Means and rates with their 95 % intervals, which items depend on each other, and the averages of Table 2."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from h2htalk.benchmark.statistics.estimates import Estimate, without_value
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.distributions import Interval, t_quantile, wilson_interval
from h2htalk.text.contracts.memory_blocks import is_null_memory

INTERVAL_RULE = "wilson-t-1"
_PRIOR = 2.0  # degrees of freedom of the pooled variance


@dataclass(frozen=True, slots=True)
class SampleMean:
    """The mean of `n` values in [0, 1], with its squared standard error and degrees of freedom.

    What an interval is computed from, and the weighted mean of several means.
    """

    value: float
    variance: float
    df: float
    n: int

    def interval(self) -> Interval:
        """Wilson's interval with effective n and t, in [0, 1]."""
        # A cosine may be below zero, and so may the mean of a few.
        mean = min(1.0, max(0.0, self.value))
        effective_n: float = self.n
        if self.variance > 0:
            effective_n = max(self.n, mean * (1 - mean) / self.variance)
        return wilson_interval(mean, effective_n, t_quantile(self.df))


def mean_of(values: Sequence[float]) -> SampleMean | None:
    """The mean of values; None for fewer than two, whose variance is not known."""
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    square = math.fsum((x - mean) ** 2 for x in values)
    return SampleMean(value=mean, variance=square / (n - 1) / n, df=n - 1, n=n)


def weighted_mean(means: Sequence[SampleMean], weights: Sequence[float]) -> SampleMean:
    """The weighted mean of independent means, with Satterthwaite's degrees of freedom; weights need not sum to 1.

    The variance of each mean's values is moved towards the pooled one, which counts for two values more (Smyth 2004):
    a cell whose seven items agree by chance would make an average that it dominates look certain.
    """
    total = math.fsum(weights)
    all_df = math.fsum(mean.df for mean in means)
    pooled = math.fsum(mean.variance * mean.n * mean.df for mean in means) / all_df
    variances = []
    for mean, weight in zip(means, weights, strict=True):
        moderated = mean.variance * mean.n * mean.df + _PRIOR * pooled
        variances.append((weight / total) ** 2 * moderated / (mean.df + _PRIOR) / mean.n)
    variance = math.fsum(variances)
    n = 1
    if variance > 0:
        terms = []
        for mean, part in zip(means, variances, strict=True):
            terms.append((part / variance) ** 2 / mean.df)
        df = 1 / math.fsum(terms)
    else:  # where nothing varies, the number of values alone says how sure the mean is
        df = sum(mean.df for mean in means)
        n = sum(mean.n for mean in means)
    weighted = (weight * mean.value for mean, weight in zip(means, weights, strict=True))
    return SampleMean(value=math.fsum(weighted) / total, variance=variance, df=df, n=n)


def rate_interval(hits: float, n: float) -> Interval:
    """Wilson's interval of a rate, in [0, 1]; `n` above 0, hits from 0 to n."""
    return wilson_interval(hits / n, n)


def clusters_of(scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Item -> the first id of its cluster. A reference that is the null line is shared by chance and ties nothing."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    ids = []
    for scenario in scenarios:
        ids.append(scenario.id)
        for kind, text in _shared_by(scenario):
            if text:
                # Ids sort before what is shared, and so become the roots.
                first, second = sorted((root(("", scenario.id)), root((kind, text))))
                parent[second] = first
    return {item: root(("", item))[1] for item in ids}


def _shared_by(scenario: Scenario) -> list[tuple[str, str]]:
    """What ties a scenario to others that have the same: its kind, and its text."""
    history = "\n".join(f"{turn.role}: {turn.content}" for turn in scenario.turns)
    shared = [("history", history)]
    for key in ("dialogue", "family"):
        shared.append((key, str(scenario.provenance.get(key) or "")))
    for text in scenario.references:
        if not is_null_memory(text, scenario.language):
            shared.append(("text", text))
    return shared


def design_effect(values: Sequence[float], clusters: Sequence[str]) -> float:
    """Return how much larger the variance of a mean is because items of a cluster resemble each other; 1 or more.

    Where all values are the same, a cluster counts for one.
    """
    mean = fmean(values)
    totals = dict.fromkeys(clusters, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        totals[cluster] += value - mean
    square = math.fsum((value - mean) ** 2 for value in values)
    number = len(values)
    groups = len(totals)
    if not square:
        return number / groups
    among = math.fsum(total**2 for total in totals.values()) * groups / max(1, groups - 1)
    within = square * number / (number - 1)
    return max(1.0, among / within)


# --- Table 2, whose cells are means times 100 ---------------------------------------------------

Row = Mapping[str, Estimate]  # of Table 2, by the figures of `figure_weights`


# Of an item: its group (a subtask or a tag), and a value in [0, 1] or None.
Value = tuple[str, float | None]


def figure_weights(items: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The figures of Table 2 as weights of subtasks; `items`: subtask -> number of scored items, of those asked.

    Returns subtask -> weight by subtask, `<dimension>_avg` (the plain mean of cells), `overall` (of all subtasks, with
    Table 1's counts), `items_mean` (over the scored items) and `plain_mean` (of the existing cells); each subtask must
    have a value, but for one of weight 0.
    """
    subtasks = [name for name in SUBTASKS if name in items]
    figures: dict[str, dict[str, float]] = {name: {name: 1.0} for name in subtasks}
    for dimension in DIMENSIONS:
        members = [name for name in SUBTASKS if SUBTASKS[name].dimension == dimension]
        if any(name in items for name in members):
            figures[f"{dimension}_avg"] = dict.fromkeys(members, 1.0)
    figures["overall"] = {name: float(SUBTASKS[name].count) for name in SUBTASKS}
    figures["items_mean"] = {name: float(items[name]) for name in subtasks}
    figures["plain_mean"] = dict.fromkeys(subtasks, 1.0)
    return figures


def present_figures(items: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Return those of `figure_weights` of which every subtask has items."""
    figures = figure_weights(items)
    return {
        key: weights
        for key, weights in figures.items()
        if weights and items.keys() >= weights.keys()
    }


def aggregate(values: Iterable[Value]) -> Row:
    """Average the values of one measure by subtask to a row of Table 2. Row order never matters."""
    by_group, means = _cells(values)
    cells = {name: by_group[name] for name in SUBTASKS if name in by_group}
    row = dict(cells)
    for key, weights in figure_weights({name: cell.n for name, cell in cells.items()}).items():
        if key not in cells:
            row[key] = _average(weights, cells, means)
    return row


def aggregate_slices(values: Iterable[Value]) -> dict[str, Estimate]:
    """Average the values of each group (an emotion, a complexity, an interaction), in alphabetical order."""
    cells, _ = _cells(values)
    return dict(sorted(cells.items()))


def _cells(values: Iterable[Value]) -> tuple[dict[str, Estimate], dict[str, SampleMean]]:
    """The cell of each group, and the mean behind it where at least two items are scored."""
    groups = defaultdict[str, list[float | None]](list)
    for group, value in values:
        groups[group].append(value)
    cells = {}
    means = {}
    for name, members in groups.items():
        scored = [value for value in members if value is not None]
        mean = mean_of(scored)
        if mean is not None:
            means[name] = mean
            cells[name] = _cell(mean, len(scored), len(members))
        else:
            alone = 100 * scored[0] if scored else None
            cells[name] = Estimate(alone, None, None, len(scored), len(members))
    return cells, means


def _cell(mean: SampleMean, n: int, total: int) -> Estimate:
    low, high = mean.interval()
    return Estimate(100 * mean.value, 100 * low, 100 * high, n, total)


def _average(
    weights: Mapping[str, float], cells: Mapping[str, Estimate], means: Mapping[str, SampleMean]
) -> Estimate:
    """Return the weighted mean of cells; it has no value, or no interval, when one of the cells has none (a cell of
    one item would otherwise count as certain)."""
    present = [cells[name] for name in weights if name in cells]
    n = sum(cell.n for cell in present)
    total = sum(cell.total for cell in present)
    positive = {name: weight for name, weight in weights.items() if weight > 0}
    if len(present) < len(weights) or not positive:
        return without_value(n, total)
    if means.keys() >= positive.keys():
        mean = weighted_mean([means[name] for name in positive], list(positive.values()))
        return _cell(mean, n, total)
    terms = []
    for name, weight in positive.items():
        value = cells[name].value
        if value is None:
            return without_value(n, total)
        terms.append(weight * value)
    return Estimate(math.fsum(terms) / math.fsum(positive.values()), None, None, n, total)


@dataclass(frozen=True, slots=True)
class NullClass:
    """Precision, recall and F1 of the null line, 0 to 100; None where nothing was (or should have been) null.

    `references`, `answers` and `hits` count items with a null reference, a null answer, and both; an item with several
    samples counts by their share.
    """

    precision: Estimate
    recall: Estimate
    f1: Estimate
    references: int
    answers: float
    hits: float


def null_class(pairs: Iterable[tuple[float, bool]], total: int) -> NullClass:
    """From `(share of null answers, the reference is null)` of each scored item of `total` asked, in any order.

    Precision and recall have Wilson's interval of a rate; F1 that of J, the share of items that are null in both
    among those that are in either, since F1 = 2J / (1 + J).
    """
    scored = list(pairs)
    answers = math.fsum(share for share, _ in scored)
    references = sum(null for _, null in scored)
    hits = math.fsum(share for share, null in scored if null)

    def cell(cases: float, change: Callable[[float], float] = float) -> Estimate:
        if not cases:
            return without_value(len(scored), total)
        value = 100 * change(hits / cases)
        if len(scored) < 2:
            return Estimate(value, None, None, 1, total)
        low, high = (100 * change(rate) for rate in rate_interval(hits, cases))
        return Estimate(value, low, high, len(scored), total)

    return NullClass(
        precision=cell(answers),
        recall=cell(references),
        f1=cell(answers + references - hits, lambda j: 2 * j / (1 + j)),
        references=references,
        answers=answers,
        hits=hits,
    )
