"""Compare scored runs, studies and logs of other harnesses item by item; how many items a comparison needs."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import TypeVar

from h2htalk.benchmark.compare.scored_items import (
    ScoredItem,
    ScoredItems,
    align,
    metric_names,
    read_folder_items,
    read_log_items,
)
from h2htalk.benchmark.report.table2 import half_width
from h2htalk.benchmark.statistics import (
    Difference,
    PairedResult,
    detectable_difference,
    figure_weights,
    holm,
    items_needed,
    paired_figures,
    paired_result,
)
from h2htalk.data.imports.harness_log import is_opencompass
from h2htalk.data.records import as_path
from h2htalk.data.signature import differing_keys
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, listed
from h2htalk.text.tables import Table

Text = TypeVar("Text", str, str | None)
# Figures that are tested together, so that p is adjusted for their number and for that of the runs.
CELLS, AVERAGES, HEADLINE = "subtasks", "dimensions", "headline"


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of a comparison (`table2_averages.figure_weights`): the means of A and B, 0 to 100, over the items that
    both have a value for, the paired differences B minus A, and p of the sign-flip test, adjusted in its family."""

    key: str
    family: str
    a: float
    b: float
    result: PairedResult
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Moved:
    """An item in two runs."""

    id: str
    a: ScoredItem
    b: ScoredItem

    @property
    def difference(self) -> float:
        """B minus A."""
        return (self.b.value or 0.0) - (self.a.value or 0.0)


@dataclass(frozen=True, slots=True)
class Counts:
    """Items of one side of a pair: asked = answered + failed; unscored ones were answered; reasons are of both.

    unpaired: items with a value that the comparison leaves out.
    """

    asked: int
    answered: int
    failed: int
    unscored: int
    unpaired: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Pair:
    """A run B compared with the reference run A.

    `rows`: subtasks in Table 2's order, dimensions, then the headline figure (overall, else the mean over items).
    `moved`: the items that both have a value for, the largest difference first; `only_a`, `only_b`: those with a value
    in one run; `changed`: those with one id and another content, which are not compared.
    """

    b: ScoredItems
    rows: tuple[Row, ...]
    moved: tuple[Moved, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[str, ...]
    notes: tuple[str, ...]
    counts: tuple[Counts, Counts]

    @property
    def headline(self) -> Row:
        return self.rows[-1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared with the first of them.

    `metric` is what was compared; `spreads`: a run with several samples -> the headline figure of each sample, which
    say how much answers to the same items differ.
    """

    a: ScoredItems
    metric: str
    pairs: tuple[Pair, ...]
    spreads: Mapping[str, tuple[float, ...]]


def compare(
    reference: str | os.PathLike[str],
    *others: str | os.PathLike[str],
    metric: str | Sequence[str] | None = None,
    scale: str | Sequence[str] = "0-1",
) -> Comparison:
    """Compare runs with a reference run, on the items that both have a value for.

    Args:
        reference: the folder of a run or study, or a log of another harness (docs/comparing.md lists the forms).
        others: one or more of them.
        metric: `s`, `lexical`, a column of the scores or `compliance`; None for what the main tables show. Of a log:
            the name of its metric, None for the only one; of a study `FIGURE` or `ARM/FIGURE`. A list has one for each.
        scale: `LOW-HIGH` of logs' values, which are compared on 0-100. A list has one for each log.

    Examples:
        >>> import h2htalk
        >>> comparison = h2htalk.compare("runs/constant", "runs/constant")
        >>> row = comparison.pairs[0].headline
        >>> row.key, row.result.mean, row.p
        ('overall', 0.0, 1.0)

    Raises:
        ConfigError: protocols differ (the keys are named) and no metric is, or what the metric means differs; two
            metrics; the runs have no item in common; a log's value is outside its scale.
        DataError: a path is neither a scored run nor a log.
    """
    if not others:
        raise ConfigError("name at least two runs: the reference, and those to compare with it")
    paths = [as_path(path, "runs") for path in [reference, *others]]
    metrics = _for_each(metric, len(paths), "--metric")
    logs = [path for path in paths if not path.is_dir() or is_opencompass(path)]
    scales = dict(zip(logs, _for_each(scale, len(logs), "--scale"), strict=True))
    if not logs and scale != "0-1":
        raise ConfigError("--scale is of logs of other harnesses; the scores of runs have one scale")
    runs = [
        read_log_items(path, name, scales[path]) if path in scales else read_folder_items(path, name)
        for path, name in zip(paths, metrics, strict=True)
    ]
    if len({run.label for run in runs}) < len(runs):
        runs = [replace(run, label=f"{run.label} in {path.name}") for run, path in zip(runs, paths, strict=True)]
    return compare_items(runs, by_metric=metric is not None)


def _for_each(given: Text | Sequence[Text], number: int, option: str) -> Sequence[Text]:
    """One value for each: a single one is of all."""
    values = [given] if given is None or isinstance(given, str) else given
    if len(values) not in (1, number):
        raise ConfigError(f"{option} is given {len(values)} times; name one for all, or one for each of {number}")
    return [values[0]] * number if len(values) == 1 else values


def compare_items(runs: Sequence[ScoredItems], by_metric: bool) -> Comparison:
    """Compare runs that were read; `by_metric`: their protocols may differ where the metric's meaning does not."""
    a, *others = runs
    for b in others:
        one, other = (run.metric.rpartition("/")[2].partition(",")[0] for run in (a, b))
        foreign = bool(a.harness or b.harness)
        unlike = one != other and not (by_metric and foreign and not {one, other} <= {*metric_names()})
        if not foreign and not (unlike and by_metric):
            given = (a.meaning(), b.meaning()) if by_metric else (a.signature.protocol, b.signature.protocol)
            different = differing_keys(*given) if by_metric else a.signature.differing(b.signature)
            if different:
                runs_alone = not any("study" in run.signature.protocol for run in (a, b))
                common = "; --metric compares what is common, such as --metric s or lexical"
                advice = common if runs_alone and not by_metric else ""
                differ = f"they differ in {', '.join(different)}{advice}"
                raise ConfigError(f"{a.label} and {b.label} cannot be compared; {differ}")
        if unlike:
            raise ConfigError(
                f"{a.label} is scored by {a.metric}, {b.label} by {b.metric}: a difference of two metrics says "
                "nothing; name the same metric of both, once for each run and log: --metric A --metric B"
            )
    spreads = {run.label: figures for run in runs if (figures := _by_sample(run))}
    return Comparison(a, a.metric, tuple(_adjusted([_pair(a, b) for b in others])), spreads)


def _pair(a: ScoredItems, b: ScoredItems) -> Pair:
    notes: list[str] = []
    if a.harness or b.harness:
        a, b, notes = align(a, b)
    elif different := differing_keys(a.signature.protocol, b.signature.protocol):
        notes.append(f"the protocols differ in {', '.join(different)}")
    common = [Moved(name, a.items[name], b.items[name]) for name in a.items if name in b.items]
    same = [one for one in common if one.a.content == one.b.content]
    changed = tuple(sorted({one.id for one in common} - {one.id for one in same}))
    moved = [one for one in same if one.a.values and one.b.values]
    if not moved:
        also = f"; those that ask something else under one id: {listed(changed)}" if changed else ""
        raise ConfigError(f"{a.label} and {b.label} have no item in common that both have a value for{also}")
    moved.sort(key=lambda one: (-abs(one.difference), one.id))
    shared = {one.id for one in moved} | {*changed}
    only_a, only_b = (
        tuple(sorted(name for name, item in run.items.items() if item.values and name not in shared)) for run in (a, b)
    )
    if len(same) > len(moved):
        low, high = (
            fmean(
                (worst if one.b.value is None else one.b.value) - (100 - worst if one.a.value is None else one.a.value)
                for one in same
            )
            for worst in (0.0, 100.0)
        )
        notes.append(f"with the unscored at 0 or 100, the mean of {len(same):,} items is {low:+.2f} to {high:+.2f}")
    notes += _corrected(a, b)
    counts = (_counts(a, len(moved)), _counts(b, len(moved)))
    return Pair(b, tuple(_rows(moved)), tuple(moved), only_a, only_b, changed, tuple(notes), counts)


def _corrected(a: ScoredItems, b: ScoredItems) -> Iterator[str]:
    """The difference of levels I to III by people's labels, where both runs were calibrated; judges may err otherwise
    on one model than on the other. Labels of the two are taken as independent, which makes the interval wider."""
    x, y = a.corrected, b.corrected
    if x is None or y is None or x.value is None or y.value is None:
        return
    if (half_x := half_width(x)) is not None and (half_y := half_width(y)) is not None:
        mean, half = y.value - x.value, math.hypot(half_x, half_y)
        yield (
            f"levels I to III corrected by people's labels: A {x.value:.2f}, B {y.value:.2f}, B - A {mean:+.2f} "
            f"[{mean - half:+.2f}, {mean + half:+.2f}]; the table above is by the judge alone"
        )


def _counts(run: ScoredItems, paired: int) -> Counts:
    items = run.items.values()
    failed = sum(item.failed for item in items)
    scored = sum(bool(item.values) for item in items)
    reasons = Counter(item.unscored for item in items if item.unscored)
    answered = len(items) - failed
    return Counts(len(items), answered, failed, answered - scored, scored - paired, dict(reasons.most_common()))


def _rows(moved: Sequence[Moved]) -> Iterator[Row]:
    """The figures with their tests, p not adjusted yet."""
    items = [one.a for one in moved]
    results = _figures(items, [one.difference for one in moved])
    a, b = (_figures(items, [one.value or 0.0 for one in own]) for own in (items, [one.b for one in moved]))
    headline = "overall" if "overall" in results else "items_mean"
    for key, result in results.items():
        family = CELLS if key in SUBTASKS else HEADLINE if key == headline else AVERAGES
        if family != AVERAGES or key.endswith("_avg"):
            p = result.p()
            yield Row(key, family, a[key].mean, b[key].mean, result, p, p)


def _figures(items: Sequence[ScoredItem], values: Iterable[float]) -> dict[str, PairedResult]:
    """The figures of Table 2 of one value an item; logs of other harnesses know no subtasks, and have one figure."""
    own = [Difference(item.subtask, item.cluster, value) for item, value in zip(items, values, strict=True)]
    return paired_figures(own) if items[0].subtask else {"items_mean": paired_result(own)}


def _adjusted(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """The same with p adjusted for all figures of a family in all pairs."""
    adjusted: dict[tuple[int, str], float] = {}
    for family in (CELLS, AVERAGES, HEADLINE):
        adjusted |= holm({(n, r.key): r.p for n, pair in enumerate(pairs) for r in pair.rows if r.family == family})
    for n, pair in enumerate(pairs):
        yield replace(pair, rows=tuple(replace(row, p_holm=adjusted[n, row.key]) for row in pair.rows))


def _by_sample(run: ScoredItems) -> tuple[float, ...]:
    """The headline figure of each sample; empty for a single sample."""
    scored = [item for item in run.items.values() if item.values]
    samples = min(len(item.values) for item in scored)
    figures = [_figures(scored, [item.values[k] for item in scored]) for k in range(samples if samples > 1 else 0)]
    return tuple((one.get("overall") or one["items_mean"]).mean for one in figures)


SAMPLES = (1, 2, 3, 5, 10)
# Standard deviations of paired differences, in points: two similar models, and two that differ much.
ASSUMED = (10.0, 15.0, 20.0, 25.0, 30.0)
LIMITS = (50, 100, 154, 350, 1000, 4650)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a difference, in points (0-100), needs.

    `needed`: (standard deviation of the items' differences, samples an item) -> items for 80 % power at 5 %.
    `detectable`: (standard deviation, items) -> the difference that as many items find. `seen`: what two runs showed.
    """

    difference: float
    needed: dict[tuple[float, int], int]
    detectable: dict[tuple[float, int], float]
    seen: str = ""


def plan(
    difference: float,
    runs: Sequence[str | os.PathLike[str]] = (),
    limits: Sequence[int] = LIMITS,
    metric: str | None = None,
) -> Plan:
    """Plan a comparison.

    Args:
        difference: that should be found four times in five, in points (0-100).
        runs: two scored runs, whose differences an item vary as those to come will; none: a range is shown.
        limits: numbers of items whose detectable difference is told.
        metric: as of `compare`.

    Examples:
        >>> import h2htalk
        >>> h2htalk.plan(3).needed[20.0, 1]
        351

    Raises:
        ConfigError: the difference is not between 0 and 100, or there are not two runs; also as `compare`.
        DataError: as `compare`.
    """
    if not 0.01 <= difference <= 100:
        raise ConfigError(f"--difference {difference:g}: must be 0.01 to 100 points")
    if not runs:
        needed = {(sd, 1): items_needed(difference, sd) for sd in ASSUMED}
        return Plan(difference, needed, {(sd, n): detectable_difference(sd, n) for sd in ASSUMED for n in limits})
    if len(runs) != 2:
        raise ConfigError(f"--runs takes two runs, not {len(runs)}")
    pair = compare(runs[0], runs[1], metric=metric).pairs[0]
    row = pair.headline.result
    if not row.error or row.df is None:
        raise ConfigError("the two runs do not say how much differences vary; name two that differ in several items")
    # Of the weighted figure: as that many independent items of equal weight would have.
    sd, df = row.error * math.sqrt(row.items), row.df / row.items
    own, samples = _within(pair.moved, pair.headline.key)
    own = min(own, sd**2 * samples)  # by chance answers can vary more than their means say; the runs' own sd holds
    between = sd**2 - own / samples
    counts = sorted({*SAMPLES, samples}) if samples > 1 else (samples,)
    needed = {(round(sd, 1), k): items_needed(difference, math.sqrt(between + own / k), df) for k in counts}
    seen = f"{row.items:,} items, differences with standard deviation {sd:.1f}"
    if samples > 1:
        seen += f", of which {math.sqrt(own / samples):.1f} between answers to one item ({samples} an item)"
    return Plan(difference, needed, {(round(sd, 1), n): detectable_difference(sd, n, df) for n in limits}, seen)


def _within(moved: Sequence[Moved], figure: str) -> tuple[float, int]:
    """The variance of a difference of single answers to one item, and how many answers an item has.

    Items count by the square of their weight in the figure, as in the variance of the figure.
    """
    samples = min(min(len(one.a.values), len(one.b.values)) for one in moved)
    if samples < 2:
        return 0.0, 1
    counts = Counter(one.a.subtask for one in moved)
    weights = figure_weights(counts)[figure] or dict(counts)  # a log of another harness has no subtasks
    mass = math.fsum(weights.values())
    return len(moved) * math.fsum(
        (variance(one.a.values) + variance(one.b.values)) * (weights[one.a.subtask] / mass / counts[one.a.subtask]) ** 2
        for one in moved
    ), samples


def plan_tables(made: Plan) -> tuple[Table, Table]:
    """How many items find the difference, and what fewer items find."""
    needed = [(items, samples, sd) for (sd, samples), items in made.needed.items()]
    title = f"To find a difference of {made.difference:g} points four times in five (two-sided, 5 %)"
    head = ("items", "answers an item", "standard deviation" if not made.seen else "standard deviation of the two runs")
    sds = list(dict.fromkeys(sd for sd, _ in made.detectable))
    rows = [(n, *(made.detectable[sd, n] for sd in sds)) for n in dict.fromkeys(n for _, n in made.detectable)]
    found = "What fewer items find (--limit), with the same answers an item"
    return (
        Table(title, head, needed, [f"seen: {made.seen}"] if made.seen else ()),
        Table(found, ("items", *(f"sd {sd:g}" for sd in sds)), rows),
    )
