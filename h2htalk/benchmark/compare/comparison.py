"""Compare scored runs, studies and logs of other harnesses item by item, with paired tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

from h2htalk.benchmark.compare.pair_notes import (
    corrected_notes,
    count_items,
    is_alike,
    rater_notes,
    unlike_note,
)
from h2htalk.benchmark.compare.scored_items import (
    METRIC_NAMES,
    ScoredItem,
    ScoredItems,
    align,
    read_folder_items,
    read_log_items,
    share_reducer,
)
from h2htalk.benchmark.estimate_text import format_interval, format_p
from h2htalk.benchmark.metrics.composite import LEXICAL_FOLDED
from h2htalk.benchmark.report.charts import Mark, interval_plot
from h2htalk.benchmark.statistics.paired_tests import (
    AVERAGES,
    CELLS,
    HEADLINE,
    Difference,
    PairedResult,
    family_of,
    figure_means,
    holm,
    paired_figures,
    paired_result,
)
from h2htalk.benchmark.statistics.sign_flips import NO_INTERVAL
from h2htalk.data.files import write_text
from h2htalk.data.imports.opencompass_folder import is_opencompass
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.signature import FILTERED_KEY, VERSION_KEYS, differing_keys, rescoring_advice
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, counted, listed
from h2htalk.progress import counted_items
from h2htalk.text.escaping import printable, printable_lines
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table

Text = TypeVar("Text", str, str | None)


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of a comparison (`statistics.figure_weights`): the means of A and B, 0 to 100, over the items that both
    have a value for, the paired differences B minus A, and p of the sign-flip test, adjusted in its family."""

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

    def difference(self, unscored: float = 0.0) -> float:
        """B minus A; an unscored B is at `unscored` (0 or 100), an unscored A at the other end."""
        a = self.a.value
        b = self.b.value
        return (unscored if b is None else b) - (100 - unscored if a is None else a)


@dataclass(frozen=True, slots=True)
class Pair:
    """A run B compared with the reference run A.

    `rows`: subtasks in Table 2's order, dimensions, then the headline figure (overall, else the mean over items).
    `moved`: the items that both have a value for, the largest difference first; `only_a`, `only_b`: those with a value
    in one run; `changed`: those with one id and another content, which are not compared.
    `counts` of each side: items `asked` = `answered` + `failed`; `unscored` ones were answered, `unpaired` ones have a
    value and are left out; `reasons` of failed and unscored ones. `tested`: whether its tests mean anything.
    """

    b: ScoredItems
    rows: tuple[Row, ...]
    moved: tuple[Moved, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[str, ...]
    notes: tuple[str, ...]
    counts: tuple[Mapping[str, Any], ...]
    tested: bool = True

    @property
    def headline(self) -> Row:
        return self.rows[-1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared with the first of them. `spreads`: a run with several samples -> the headline figure of each, which
    say how much answers to the same items differ."""

    a: ScoredItems
    pairs: tuple[Pair, ...]
    spreads: Mapping[str, tuple[float, ...]]

    @property
    def metric(self) -> str:
        return self.a.metric


def compare(
    reference: AnyPath,
    *compared: AnyPath,
    metric: str | Sequence[str] | None = None,
    scale: str | Sequence[str] = "0-1",
) -> Comparison:
    """Compare runs with a reference run, on the items that both have a value for.

    Args:
        reference: the folder of a run or study, or a log of another harness (forms: docs/reference/comparisons.md).
        compared: one or more of them.
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
    if not compared:
        raise ConfigError("name at least two runs: the reference, and those to compare with it")
    paths = [as_path(path, "runs") for path in [reference, *compared]]
    metrics = _for_each(metric, len(paths), "--metric")
    logs = [path for path in paths if not path.is_dir() or is_opencompass(path)]
    scales = dict(zip(logs, _for_each(scale, len(logs), "--scale"), strict=True))
    if not logs and scale != "0-1":
        raise ConfigError(
            "--scale is of logs of other harnesses; the scores of runs have one scale"
        )
    runs = []
    for path, name in counted_items("reading runs", list(zip(paths, metrics, strict=True))):
        if path in scales:
            runs.append(read_log_items(path, name, scales[path]))
        else:
            runs.append(read_folder_items(path, name))
    if len({run.label for run in runs}) < len(runs):
        runs = [
            replace(run, label=f"{run.label} in {path.name}")
            for run, path in zip(runs, paths, strict=True)
        ]
    return compare_items(runs, by_metric=metric is not None)


def _for_each(words: Text | Sequence[Text], number: int, option: str) -> Sequence[Text]:
    """One value for each: a single one is of all."""
    values = [words] if words is None or isinstance(words, str) else words
    if len(values) not in (1, number):
        raise ConfigError(
            f"{option} is given {len(values)} times; name one for all, or one for each of {number}"
        )
    return [values[0]] * number if len(values) == 1 else values


def compare_items(runs: Sequence[ScoredItems], by_metric: bool) -> Comparison:
    """Compare runs that were read; `by_metric`: their protocols may differ where the metric's meaning does not."""
    a, *compared = runs
    for b in compared:
        metric_a, metric_b = (run.metric.rpartition("/")[2].partition(",")[0] for run in (a, b))
        foreign = bool(a.harness or b.harness)
        is_allowed = by_metric and foreign and not {metric_a, metric_b} <= {*METRIC_NAMES}
        unlike = metric_a != metric_b and not is_allowed
        if not foreign and not (unlike and by_metric):
            different = a.signature.differing(b.signature)
            if by_metric:
                different = differing_keys(a.meaning(), b.meaning())
            if different:
                keys = f"{', '.join(different)}{_advice(a, b, different, by_metric)}"
                raise ConfigError(
                    f"{a.label} and {b.label} cannot be compared; they differ in {keys}"
                )
        if unlike:
            raise ConfigError(
                f"{a.label} is scored by {a.metric}, {b.label} by {b.metric}: a difference of two metrics says "
                "nothing; name the same metric of both, once for each run and log: --metric A --metric B"
            )
    pairs = [_pair(a, b) for b in counted_items("comparing runs", compared)]
    adjusted: dict[tuple[int, str], float] = {}
    # p is adjusted for all figures of a family in all pairs.
    for family in (CELLS, AVERAGES, HEADLINE):
        adjusted |= holm(
            {
                (n, r.key): r.p
                for n, pair in enumerate(pairs)
                for r in pair.rows
                if r.family == family and pair.tested
            }
        )
    for n, pair in enumerate(pairs):
        rows = [replace(row, p_holm=adjusted.get((n, row.key), 1.0)) for row in pair.rows]
        pairs[n] = replace(pair, rows=tuple(rows))
    return Comparison(
        a, tuple(pairs), {run.label: figures for run in runs if (figures := _by_sample(run))}
    )


def _advice(a: ScoredItems, b: ScoredItems, different: Sequence[str], by_metric: bool) -> str:
    """Say what makes two runs comparable whose protocols differ in these keys; nothing where nothing does."""
    studies = any("study" in run.signature.protocol for run in (a, b))
    keys = {key.partition(" ")[0] for key in different}
    score = "h2htalk study score RUN" if studies else "h2htalk score RUN"
    if FILTERED_KEY in keys:
        return f"; give both one rule for filtered replies: {score} --filtered RULE"
    advice = ""
    if keys & VERSION_KEYS:
        advice = rescoring_advice(a.signature, b.signature, score)
    if not by_metric and not studies and not keys <= VERSION_KEYS:
        advice += "; --metric lexical, or s where both have it, compares them; for J judge both"
    return advice


def _pair(a: ScoredItems, b: ScoredItems) -> Pair:
    notes: list[str] = []
    if a.harness or b.harness:
        a, b, notes = align(a, b)
    elif different := differing_keys(a.signature.protocol, b.signature.protocol):
        notes.append(f"the protocols differ in {', '.join(different)}")
    a, b, reducer_notes, tested = share_reducer(a, b)
    notes = reducer_notes + notes
    common = [Moved(name, a.items[name], b.items[name]) for name in a.items if name in b.items]
    same = [item for item in common if item.a.content == item.b.content]
    changed = tuple(sorted({item.id for item in common} - {item.id for item in same}))
    valued = [item for item in same if item.a.values and item.b.values]
    moved = [item for item in valued if is_alike(item.a, item.b)]
    if valued and not moved:
        raise ConfigError(f"{a.label} and {b.label}: {unlike_note(0, len(valued))}")
    if not moved:
        also = f"; those that ask something else under one id: {listed(changed)}" if changed else ""
        raise ConfigError(
            f"{a.label} and {b.label} have no item in common that both have a value for{also}"
        )
    moved.sort(key=lambda item: (-abs(item.difference()), item.id))
    shared = {item.id for item in moved} | {*changed}
    only_a, only_b = (
        tuple(
            sorted(name for name, item in run.items.items() if item.values and name not in shared)
        )
        for run in (a, b)
    )
    raters, is_checked = rater_notes(a, b)
    notes += raters
    if len(valued) > len(moved):
        notes.append(unlike_note(len(moved), len(valued)))
    if len(same) > len(valued):
        alike = [item for item in same if is_alike(item.a, item.b)]
        worst = fmean(item.difference(0.0) for item in alike)
        best = fmean(item.difference(100.0) for item in alike)
        limits = format_interval((worst, best), "+.2f")
        notes.append(f"with the unscored at 0 or 100, the mean of {len(alike):,} items is {limits}")
    notes += corrected_notes(a, b)
    notes.extend(_typography(a, b, moved))
    counts = tuple(count_items(run, len(moved)) for run in (a, b))
    rows = tuple(_rows(moved))
    tested = tested and is_checked
    if tested and any(row.result.estimate.low is None for row in rows):
        notes.append(NO_INTERVAL)
    return Pair(b, rows, tuple(moved), only_a, only_b, changed, tuple(notes), counts, tested)


def _typography(a: ScoredItems, b: ScoredItems, moved: Sequence[Moved]) -> Iterator[str]:
    """Say what the difference is where quotes, dashes and widths have one form, in runs that have this figure."""
    shared = [item for item in moved if item.id in a.folded and item.id in b.folded]
    if not shared:
        return
    items = [item.a for item in shared]
    of_a = _means(items, [a.folded[item.id] for item in shared])
    of_b = _means(items, [b.folded[item.id] for item in shared])
    key = "overall" if "overall" in of_a else "items_mean"
    mean_a = of_a[key]
    mean_b = of_b[key]
    yield (
        f"lexical mean, folded (quotes, dashes and widths in one form), {title_of(key).lower()}: A {mean_a:.2f}, "
        f"B {mean_b:.2f}, B - A {mean_b - mean_a:+.2f}; --metric {LEXICAL_FOLDED} tests it"
    )


def _rows(moved: Sequence[Moved]) -> Iterator[Row]:
    """The figures with their tests, p not adjusted yet."""
    items = [item.a for item in moved]
    results = _figures(items, [item.difference() for item in moved])
    a = _means(items, [item.value or 0.0 for item in items])
    b = _means(items, [item.b.value or 0.0 for item in moved])
    headline = "overall" if "overall" in results else "items_mean"
    for key, result in results.items():
        family = family_of(key, headline)
        if family != AVERAGES or key.endswith("_avg"):
            p = result.p()
            yield Row(key, family, a[key], b[key], result, p, p)


def _figures(items: Sequence[ScoredItem], values: Iterable[float]) -> dict[str, PairedResult]:
    """The figures of Table 2 of one value an item; logs of other harnesses know no subtasks, and have one figure."""
    differences = _differences(items, values)
    if not items[0].subtask:
        return {"items_mean": paired_result(differences)}
    return paired_figures(differences)


def _means(items: Sequence[ScoredItem], values: Iterable[float]) -> dict[str, float]:
    """The means of `_figures`."""
    if not items[0].subtask:
        return {"items_mean": fmean(values)}
    return figure_means(_differences(items, values))


def _differences(items: Sequence[ScoredItem], values: Iterable[float]) -> list[Difference]:
    pairs = zip(items, values, strict=True)
    return [Difference(item.subtask, item.cluster, value) for item, value in pairs]


def _by_sample(run: ScoredItems) -> tuple[float, ...]:
    """The headline figure of each sample; empty for a single sample."""
    scored = [item for item in run.items.values() if item.values]
    samples = min(len(item.values) for item in scored)
    if samples < 2:
        return ()
    figures = [_means(scored, [item.values[k] for item in scored]) for k in range(samples)]
    return tuple(row["overall"] if "overall" in row else row["items_mean"] for row in figures)


TITLES = {
    "overall": "Overall",
    "items_mean": "Mean over items",
    **{k: subtask.title for k, subtask in SUBTASKS.items()},
}
FIELDS = (
    "run", "figure", "family", "a", "b", "difference", "low", "high", "p", "p_holm", "effect", "detectable", "items",
    "clusters",
)  # fmt: skip
_METHODS = (
    "p: sign-flip test by cluster; p Holm: adjusted for the figures of its block and all runs.",
    "95 % interval: every difference that this test does not reject, so that it leaves out 0 where p is below .05.",
    "*: p Holm below .05; detects: the difference that as many items find four times in five.",
)


def title_of(key: str) -> str:
    """The name of a figure in tables."""
    return TITLES.get(key) or f"{key.removesuffix('_avg').title()}, average"


def figures_table(comparison: Comparison) -> Table:
    """Every figure of each pair in full, on the 0-100 scale."""
    rows = []
    for pair in comparison.pairs:
        for row in pair.rows:
            r = row.result
            facts = (pair.b.label, row.key, row.family, row.a, row.b, r.mean)
            test: Any = (*r.estimate.fields[1:3], row.p, row.p_holm, r.effect, r.detectable)
            if not pair.tested:
                test = (None,) * 6
            rows.append((*facts, *test, r.items, r.clusters))
    return Table("", FIELDS, rows)


def pair_table(comparison: Comparison, pair: Pair) -> Table:
    """The figures of a pair, in blocks whose p is adjusted together."""
    rows: list[Sequence[str]] = []
    for _, block in groupby(pair.rows, key=attrgetter("family")):
        rows.append(())
        for row in block:
            r = row.result
            holm = format_p(row.p_holm) + ("*" if row.p_holm < 0.05 else " ")
            interval = format_interval(r.estimate.interval, "+.2f")
            means = f"{row.a:.2f}", f"{row.b:.2f}", f"{r.mean:+.2f}"
            detects = "" if r.detectable is None else f"{r.detectable:.2f}"
            test = (interval, format_p(row.p), holm, detects) if pair.tested else ("",) * 4
            rows.append((title_of(row.key), f"{r.items:,}", *means, *test))
    title = f"Paired differences of {comparison.metric} times 100. A: {comparison.a.label}; B: {pair.b.label}"
    header = ("", "items", "A", "B", "B - A", "95 % interval", "p", "p Holm ", "detects")
    return Table(title, header, rows[1:], [*_notes(pair), *_METHODS])


def _notes(pair: Pair) -> Iterator[str]:
    """The verdict, what is not in the figures of a pair, and what they rest on."""
    row = pair.headline
    p = format_p(pair.headline.p_holm)
    if not pair.tested:
        yield f"{title_of(row.key)}: not tested."
    elif row.p_holm < 0.05:
        yield f"{title_of(row.key)}: B is {'above' if row.result.mean > 0 else 'below'} A (p {p})."
    else:
        detectable = row.result.detectable
        could = "" if detectable is None else f"; {detectable:.2f} could have been found"
        yield f"{title_of(row.key)}: no difference shown (p {p}{could})."
    yield from pair.notes
    if pair.tested and any(row.result.detectable is None for row in pair.rows):
        yield "detects is empty where all differences are equal, or a subtask has one item or one cluster of items"
    for side, counts in zip("AB", pair.counts, strict=True):
        why = ", ".join(f"{reason} {n:,}" for reason, n in counts["reasons"].items())
        numbers = ", ".join(f"{what} {n:,}" for what, n in counts.items() if what != "reasons")
        yield f"{side}: {numbers}" + (f" ({why})" if why else "")
    for what, names in (
        ("with a value in A only", pair.only_a),
        ("with a value in B only", pair.only_b),
        ("changed between the runs, not compared", pair.changed),
    ):
        if names:
            yield f"{counted(len(names), 'item')} {what}: {listed(names)}"


def to_text(comparison: Comparison, format: str) -> str:
    """The comparison as `terminal`, `csv`, `json` (with every item's values) or `latex` (a table for each pair)."""
    if format == "csv":
        return figures_table(comparison).to_csv()
    tables = [pair_table(comparison, pair) for pair in comparison.pairs]
    if format == "latex":
        return "\n".join(_latex_table(table) for table in tables)
    if format == "terminal":
        sections = [
            f"A: {comparison.a.label} on {comparison.a.split}; {comparison.metric}, times 100"
        ]
        for table, pair in zip(tables, comparison.pairs, strict=True):
            moved = [
                (f"{m.difference():+.2f}", f"{m.a.value:.2f}", f"{m.b.value:.2f}", m.id)
                for m in pair.moved[:5]
            ]
            sections.append(
                replace(table, title=f"B: {pair.b.label} on {pair.b.split}").to_terminal()
            )
            sections.append(Table("", ("moved most", "A", "B", "item"), moved).to_terminal())
        sections += [f"{name}: {note}" for name, note in _spreads(comparison)]
        return "\n\n".join([printable(sections[0]), *sections[1:]]) + "\n"
    content = {
        "reference": comparison.a.label,
        "metric": comparison.metric,
        "figures": [dict(zip(FIELDS, row, strict=True)) for row in figures_table(comparison).rows],
        "pairs": [
            {
                "run": pair.b.label,
                "items": [
                    {"id": m.id, "subtask": m.a.subtask, "a": m.a.value, "b": m.b.value}
                    for m in pair.moved
                ],
                **{name: getattr(pair, name) for name in ("only_a", "only_b", "changed", "notes")},
                "counts": dict(zip("ab", pair.counts, strict=True)),
            }
            for pair in comparison.pairs
        ],
        "spreads": dict(comparison.spreads),
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def _latex_table(table: Table) -> str:
    """A pair's table for a paper: of its notes those on the figures alone."""
    of_figures = (NO_INTERVAL, *_METHODS)
    return replace(table, notes=[note for note in table.notes if note in of_figures]).to_latex()


def _spreads(comparison: Comparison) -> Iterator[tuple[str, str]]:
    for name, figures in comparison.spreads.items():
        numbers = ", ".join(f"{figure:.2f}" for figure in figures)
        yield (
            printable(name),
            f"{numbers} by sample of its answers, standard deviation {stdev(figures):.2f}",
        )


def write_comparison(comparison: Comparison, out: Path) -> None:
    """Write compare.html, compare.csv, compare.json and compare.tex into a folder. Raises DataError."""
    for name, format in (("csv", "csv"), ("json", "json"), ("tex", "latex")):
        write_text(out / f"compare.{name}", to_text(comparison, format))
    pairs = []
    for pair in comparison.pairs:
        table = pair_table(comparison, pair)
        marks = []
        for row in pair.rows:
            low, high = row.result.estimate.fields[1:3] if pair.tested else (None, None)
            title = title_of(row.key)
            marks.append(Mark(title, row.result.mean, low, high, ticks=(0.0,), signed=True))
        lines = [
            (*line[:4], f"{line[4]} ({line[5]})".removesuffix(" ()"), *line[6:])
            for line in table.rows
            if line
        ]
        table = replace(table, header=(*table.header[:5], *table.header[6:]), rows=lines)
        chart = interval_plot("Differences of B from A", table.notes[0], "B - A", marks)
        pairs.append((pair, table, chart))
    view = {
        "a": comparison.a,
        "metric": comparison.metric,
        "pairs": pairs,
        "spreads": [*_spreads(comparison)],
    }
    view |= {"tiles": (), "clean": printable_lines, "titles": TITLES}
    write_text(out / "compare.html", render_page(files("h2htalk.benchmark.compare") / "page", view))
