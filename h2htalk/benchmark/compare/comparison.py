"""Compare scored runs, studies and logs of other harnesses item by item; how many items a comparison needs."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev, variance
from typing import TypeVar

from h2htalk.benchmark.compare.scored_items import (
    ScoredItem,
    ScoredItems,
    align,
    metric_names,
    read_log_items,
    read_run_items,
    read_study_items,
)
from h2htalk.benchmark.report.table2 import half_width
from h2htalk.benchmark.statistics.paired import (
    Difference,
    PairedResult,
    detectable_difference,
    holm,
    items_needed,
    paired_figures,
    paired_result,
)
from h2htalk.benchmark.statistics.table2_averages import figure_weights
from h2htalk.data.arguments import as_list, as_path
from h2htalk.data.erasure.folder_kinds import kind_of
from h2htalk.data.imports.harness_log import is_opencompass
from h2htalk.data.signature import differing_keys
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, listed
from h2htalk.text.tables import Table

Text = TypeVar("Text", str, str | None)
# Figures that are tested together, so that p is adjusted for their number and for that of the runs.
CELLS, AVERAGES, HEADLINE = "subtasks", "dimensions", "headline"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a comparison, on the 0-100 scale.

    Attributes:
        key: as `table2_averages.figure_weights` names it.
        family: figures whose p is adjusted together.
        a, b: means of the two runs over the items that both have a value for.
        result: of the paired differences, B minus A.
        p, p_holm: of the sign-flip test, as it is and adjusted by Holm's method.
    """

    key: str
    family: str
    a: float
    b: float
    result: PairedResult
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Moved:
    """An item with its two values, and B minus A."""

    id: str
    subtask: str
    a: ScoredItem
    b: ScoredItem
    difference: float


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
    """A run compared with the reference run.

    Attributes:
        b: the run.
        rows: subtasks in Table 2's order, dimensions, then the headline figure (overall, else the mean over items).
        moved: every item that both have a value for, the largest difference first.
        only_a, only_b: items with a value in one run only.
        changed: items that have one id and another content; they are not compared.
        notes: what the reader must know.
        counts: of A and of B.
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
class Spread:
    """How much answers to the same items differ: the headline figure of each sample of a run, and their spread."""

    label: str
    figures: tuple[float, ...]

    @property
    def sd(self) -> float:
        return stdev(self.figures)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared with the first of them; `metric` is what was compared, `spreads` of runs with several samples."""

    a: ScoredItems
    metric: str
    pairs: tuple[Pair, ...]
    spreads: tuple[Spread, ...]


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
    paths = [as_path(path, "runs") for path in as_list([reference, *others], "runs")]
    metrics = _for_each(metric, len(paths), "--metric")
    logs = [path for path in paths if not path.is_dir() or is_opencompass(path)]
    scales = dict(zip(logs, _for_each(scale, len(logs), "--scale"), strict=True))
    if not logs and scale != "0-1":
        raise ConfigError("--scale is of logs of other harnesses; the scores of runs have one scale")
    runs = [
        read_log_items(path, name, scales[path]) if path in scales else _read_folder(path, name)
        for path, name in zip(paths, metrics, strict=True)
    ]
    if len({run.label for run in runs}) < len(runs):
        runs = [replace(run, label=f"{run.label} in {path.name}") for run, path in zip(runs, paths, strict=True)]
    return compare_items(runs, by_metric=metric is not None)


def _read_folder(path: Path, metric: str | None) -> ScoredItems:
    if (kind := kind_of(path)) is None or kind.name != "study":
        return read_run_items(path, metric)
    return read_study_items(path, metric)


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
        if not a.harness and not b.harness:
            _require_comparable(a, b, by_metric)
        one, other = (run.metric.rpartition("/")[2].partition(",")[0] for run in (a, b))
        if one != other and (not by_metric or {one, other} <= {*metric_names()}):
            raise ConfigError(
                f"{a.label} is scored by {a.metric}, {b.label} by {b.metric}: a difference of two metrics says "
                "nothing; name the same metric of both, once for each run and log: --metric A --metric B"
            )
    pairs = [_pair(a, b) for b in others]
    return Comparison(a, a.metric, tuple(_adjusted(pairs)), tuple(filter(None, map(_spread, runs))))


def _require_comparable(a: ScoredItems, b: ScoredItems, by_metric: bool) -> None:
    if different := differing_keys(a.meaning(), b.meaning()) if by_metric else a.signature.differing(b.signature):
        advice = "" if by_metric else "; --metric compares what is common, such as --metric s or lexical"
        raise ConfigError(f"{a.label} and {b.label} cannot be compared; they differ in {', '.join(different)}{advice}")


def _pair(a: ScoredItems, b: ScoredItems) -> Pair:
    notes: list[str] = []
    if a.harness or b.harness:
        a, b, notes = align(a, b)
    elif different := differing_keys(a.signature.protocol, b.signature.protocol):
        notes.append(f"the protocols differ in {', '.join(different)}")
    common = [name for name in a.items if name in b.items]
    changed = {name for name in common if a.items[name].content != b.items[name].content}
    moved = []
    for name in common:
        one, other = a.items[name], b.items[name]
        if name not in changed and one.value is not None and other.value is not None:
            moved.append(Moved(name, one.subtask, one, other, other.value - one.value))
    if not moved:
        also = f"; those that ask something else under one id: {listed(sorted(changed))}" if changed else ""
        raise ConfigError(f"{a.label} and {b.label} have no item in common that both have a value for{also}")
    moved.sort(key=lambda one: (-abs(one.difference), one.id))
    shared = {one.id for one in moved} | changed
    only_a, only_b = (
        tuple(sorted(name for name, item in run.items.items() if item.values and name not in shared)) for run in (a, b)
    )
    values = [(a.items[name].value, b.items[name].value) for name in common if name not in changed]
    if len(values) > len(moved):
        low, high = (
            fmean((worst if y is None else y) - (100 - worst if x is None else x) for x, y in values)
            for worst in (0.0, 100.0)
        )
        notes.append(f"with the unscored at 0 or 100, the mean of {len(values):,} items is {low:+.2f} to {high:+.2f}")
    notes += _corrected(a, b)
    counts = (_counts(a, len(moved)), _counts(b, len(moved)))
    return Pair(b, tuple(_rows(moved)), tuple(moved), only_a, only_b, tuple(sorted(changed)), tuple(notes), counts)


def _corrected(a: ScoredItems, b: ScoredItems) -> Iterator[str]:
    """The difference of levels I to III by people's labels, where both runs were calibrated; judges may err otherwise
    on one model than on the other. Labels of the two are taken as independent, which makes the interval wider."""
    x, y = a.corrected, b.corrected
    halves = [] if x is None or y is None else [half_width(x), half_width(y)]
    if x and y and x.value is not None and y.value is not None and all(half is not None for half in halves):
        mean, half = y.value - x.value, math.hypot(*(half or 0.0 for half in halves))
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
    headline = _headline(results)
    for key, result in results.items():
        family = CELLS if key in SUBTASKS else HEADLINE if key == headline else AVERAGES
        if family != AVERAGES or key.endswith("_avg"):
            p = result.p()
            yield Row(key, family, a[key].mean, b[key].mean, result, p, p)


def _figures(items: Sequence[ScoredItem], values: Iterable[float]) -> dict[str, PairedResult]:
    """The figures of Table 2 of one value an item; logs of other harnesses know no subtasks, and have one figure."""
    own = [Difference(item.subtask, item.cluster, value) for item, value in zip(items, values, strict=True)]
    return paired_figures(own) if items[0].subtask else {"items_mean": paired_result(own)}


def _headline(figures: Mapping[str, PairedResult]) -> str:
    return "overall" if "overall" in figures else "items_mean"


def _adjusted(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """The same with p adjusted for all figures of a family in all pairs."""
    adjusted: dict[tuple[int, str], float] = {}
    for family in (CELLS, AVERAGES, HEADLINE):
        adjusted |= holm({(n, r.key): r.p for n, pair in enumerate(pairs) for r in pair.rows if r.family == family})
    for n, pair in enumerate(pairs):
        yield replace(pair, rows=tuple(replace(row, p_holm=adjusted[n, row.key]) for row in pair.rows))


def _spread(run: ScoredItems) -> Spread | None:
    """The headline figure of each sample; None for a single sample."""
    scored = [item for item in run.items.values() if item.values]
    samples = min(len(item.values) for item in scored)
    if samples < 2:
        return None
    figures = [_figures(scored, [item.values[sample] for item in scored]) for sample in range(samples)]
    return Spread(run.label, tuple(one[_headline(one)].mean for one in figures))


SAMPLES = (1, 2, 3, 5, 10)
# Standard deviations of paired differences, in points: two similar models, and two that differ much.
ASSUMED = (10.0, 15.0, 20.0, 25.0, 30.0)
LIMITS = (50, 100, 154, 350, 1000, 4650)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a difference needs.

    Attributes:
        difference: in points (0-100).
        needed: (standard deviation of the items' differences, samples an item) -> items for 80 % power at 5 %.
        detectable: (standard deviation, items) -> the difference that as many items find, with the runs' samples.
        seen: where two runs were given: what they showed.
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
    counts = Counter(one.subtask for one in moved)
    weights = figure_weights(counts)[figure] or dict(counts)  # a log of another harness has no subtasks
    mass = math.fsum(weights.values())
    return len(moved) * math.fsum(
        (variance(one.a.values) + variance(one.b.values)) * (weights[one.subtask] / mass / counts[one.subtask]) ** 2
        for one in moved
    ), samples


def plan_lines(made: Plan) -> Iterator[str]:
    """The plan for the terminal."""
    if made.seen:
        yield f"seen: {made.seen}"
    yield f"to find a difference of {made.difference:g} points four times in five (two-sided, 5 %):"
    for (sd, samples), items in made.needed.items():
        answers = "1 answer an item" if samples == 1 else f"{samples} answers an item"
        yield f"  {items:>8,} items, {answers}" + ("" if made.seen else f", where differences vary by {sd:g}")
    sds = list(dict.fromkeys(sd for sd, _ in made.detectable))
    yield "what fewer items find (--limit), with the same answers an item:"
    sizes = dict.fromkeys(n for _, n in made.detectable)
    rows = [(n, *(f"{made.detectable[sd, n]:.2f}" for sd in sds)) for n in sizes]
    yield from Table("", ("items", *(f"sd {sd:g}" for sd in sds)), rows).to_terminal().splitlines()
