"""A figure over the runs below a folder: each run beside what those before it, under one protocol, let expect.

A run is compared at the places that earlier runs scored too: the same cases are asked each night, so that what differs
between cases is no noise between nights. A run that is not as expected is no part of what later ones are held against,
so that it stays named until it is mended. Where the protocol changes, the line breaks and begins again.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.estimate_text import format_figure, format_interval
from h2htalk.benchmark.gate.comparison import doubts_about, protocol_differences
from h2htalk.benchmark.gate.policy import MEASURES, is_lower_better
from h2htalk.benchmark.observations import Observation, figure_of, scored
from h2htalk.benchmark.observed_run import ObservedRun, read_observed_run
from h2htalk.benchmark.paired_observations import difference, is_comparable
from h2htalk.benchmark.run_facts import read_sessions
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import MIN_CLUSTERS
from h2htalk.benchmark.studies.conversations import StudyFolder
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import differing_keys
from h2htalk.distributions import Interval, t_quantile
from h2htalk.errors import ConfigError, H2HTalkError, counted, quoted
from h2htalk.progress import counted_items
from h2htalk.site.runs import HEADLINES, find_folders
from h2htalk.text.tables import Table

# Three standard errors of a normal distribution: one run in 370 is beyond them by chance.
WITHIN = 0.99865
KINDS = ("run", "study")
COLUMN_NAMES = ("run", "when", "figure", "expected", "says", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What earlier runs let expect of a figure.

    Attributes:
        mean: of the earlier runs, at the places that both scored.
        shift: the figure minus this mean.
        reach: how far from it the figure is in 369 of 370 runs if nothing changed; None where too few cases say so.
    """

    mean: float
    shift: float
    reach: float | None

    @property
    def interval(self) -> Interval | None:
        """Where the figure is in 369 of 370 runs if nothing changed; no figure is below 0."""
        if self.reach is None:
            return None
        return max(self.mean - self.reach, 0.0), self.mean + self.reach

    @property
    def is_missed(self) -> bool:
        """Whether the figure is farther from the mean."""
        return self.reach is not None and abs(self.shift) > self.reach


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """A run on the line.

    Attributes:
        name: the run's folder, below the one that was named.
        when: when it was last asked, in UTC.
        estimate: its figure, with a 95 % interval of the cases.
        breaks: what of the protocol changed since the run before; the line begins again then.
        changes: what else changed since then: the model, and how it is asked.
        doubts: why the figure does not count: it is no part of what later runs are held against.
        earlier: how many runs it is held against.
        expectation: what these let expect; None without one, and where no case is common.
    """

    name: str
    when: datetime
    model: str
    estimate: Estimate
    breaks: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    earlier: int = 0
    expectation: Expectation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The runs of a folder in the order of time; `left_out`: those without the figure, or that cannot be read."""

    figure: str
    points: tuple[TrendPoint, ...]
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class _Line:
    """The last run, and what later ones are held against: the runs since the protocol changed, but for doubted ones and
    those that were not as expected."""

    last: ObservedRun | None = None
    earlier: list[Sequence[Observation]] = field(default_factory=list)
    items: dict[str, str] = field(default_factory=dict)  # fingerprints of what was asked

    def forget_changed(self, items: Mapping[str, str]) -> None:
        """Forget what earlier runs have of items that are asked in another wording now."""
        changed = {item for item in items if self.items.get(item, items[item]) != items[item]}
        if changed:
            for number, rows in enumerate(self.earlier):
                self.earlier[number] = [row for row in rows if row.item not in changed]
        self.items.update(items)


def _place(row: Observation) -> tuple[str, ...]:
    return row.figure, *row.key


def expect(
    earlier: Sequence[Sequence[Observation]], rows: Sequence[Observation]
) -> Expectation | None:
    """Hold a run's observations against those of earlier runs; None where they have no place in common.

    The mean of the differences at common places is tested by Student's t on sums of clusters (`PairedResult.error`).
    """
    means = _means_at_places(earlier, rows)
    result = difference(means, rows)
    if result is None:
        return None
    reach = None
    if not any(result.totals):
        reach = 0.0
    elif result.clusters >= MIN_CLUSTERS and result.error is not None:
        # Where all cases moved alike there is no error.
        reach = t_quantile(result.df, WITHIN) * result.error if result.df and result.error else 0.0
    return Expectation(
        mean=fmean(row.value or 0.0 for row in means), shift=result.mean, reach=reach
    )


def _means_at_places(
    earlier: Sequence[Sequence[Observation]], rows: Sequence[Observation]
) -> list[Observation]:
    """The mean of the earlier runs at each place of some rows, where raters of the same kind answered there."""
    by_place: defaultdict[tuple[str, ...], list[Observation]] = defaultdict(list)
    for earlier_rows in earlier:
        for row in scored(earlier_rows):
            by_place[_place(row)].append(row)
    means = []
    for row in scored(rows):
        values = [
            before.value or 0.0 for before in by_place[_place(row)] if is_comparable(before, row)
        ]
        if values:
            means.append(replace(row, value=fmean(values)))
    return means


def trend(folder: Path, figure: str = "", arm: str = "", model: str = "") -> Trend:
    """Follow a figure over the scored runs and studies below a folder.

    Args:
        figure: a figure of a gate, such as `violation` or `s.dialogue_base`, or the beginning of several, such as `s`;
            by default the headline of the newest run.
        arm: of studies; by default each study's first, of memory the whole history.
        model: only runs of this model, as tables name it.

    Raises:
        ConfigError: there is no such folder, or no run in it has the figure.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    left_out: list[str] = []
    points: list[TrendPoint] = []
    line = _Line()
    newest: ObservedRun | None = None
    paths = sorted(_run_folders(folder), key=lambda path: (_when(path), path))
    if not figure:
        figure = _headline(paths, arm, model)
    # One run is held at a time: a year of nights has more replies than memory.
    for path in counted_items("reading runs", paths):
        name = os.path.relpath(path, folder)
        try:
            run = read_observed_run(path, arm)
        except H2HTalkError as error:
            left_out.append(f"{name}: {error}")
            continue
        if model not in ("", run.label):
            continue
        newest = run
        rows = rows_of(run, figure)
        if scored(rows):
            points.append(_add(line, run, rows, name, _when(path)))
        else:
            left_out.append(f"{name}: has no {figure}")
    if newest is None:
        raise ConfigError(f"{folder}: no scored run{f' of {quoted(model)}' if model else ''} in it")
    if not points:
        names = sorted({*newest.values} - {*MEASURES})
        raise ConfigError(f"no run has {quoted(figure)}; the newest has {', '.join(names)}")
    return Trend(figure=figure, points=tuple(points), left_out=tuple(left_out))


def _run_folders(folder: Path) -> list[Path]:
    """The runs and studies below a folder."""
    return [path for path, kind in find_folders(folder) if kind in KINDS]


def _headline(paths: Sequence[Path], arm: str, model: str) -> str:
    """The figure by which the newest run is named that can be read."""
    for path in reversed(paths):
        with suppress(H2HTalkError):
            run = read_observed_run(path, arm)
            if model in ("", run.label):
                return HEADLINES.get(run.study, "s")
    return "s"


def rows_of(run: ObservedRun, figure: str) -> list[Observation]:
    """The observations of a figure, or of all figures whose names begin with it and a dot."""
    rows = [*run.values.get(figure, ())]
    for name, part in run.values.items():
        if name.startswith(f"{figure}."):
            rows += part
    return rows


def _when(path: Path) -> datetime:
    """When a run was last asked; where nothing was asked, when its manifest was written."""
    folder: RunFolder = StudyFolder(path)
    if not folder.manifest.exists():
        folder = RunFolder(path)
    with suppress(H2HTalkError):  # of a damaged manifest, which is left out when it is read
        sessions = read_sessions(folder)
        if sessions:
            return sessions[-1].ended or sessions[-1].started
    return datetime.fromtimestamp(folder.manifest.stat().st_mtime, UTC)


def _add(
    line: _Line, run: ObservedRun, rows: Sequence[Observation], name: str, when: datetime
) -> TrendPoint:
    """Hold a run against those before it on the line, and add it to them."""
    breaks: list[str] = []
    changes: list[str] = []
    if line.last is not None:
        breaks = protocol_differences(run, line.last)
        changes = differing_keys(line.last.signature.subject, run.signature.subject)
    if breaks:
        line.earlier = []
    line.forget_changed(run.items)
    line.last = run
    point = TrendPoint(
        name=name,
        when=when,
        model=run.label,
        estimate=figure_of(rows),
        breaks=tuple(breaks),
        changes=tuple(changes),
        doubts=_doubts(run, rows),
        earlier=len(line.earlier),
    )
    if point.doubts:
        return point
    point = replace(point, expectation=expect(line.earlier, rows))
    if point.expectation is None or not point.expectation.is_missed:
        line.earlier.append(rows)
    return point


def _doubts(run: ObservedRun, rows: Sequence[Observation]) -> tuple[str, ...]:
    """Why the values of a run do not count."""
    doubts: dict[str, None] = {}
    for figure in sorted({row.figure for row in rows}):
        doubts |= dict.fromkeys(doubts_about(run.raters(figure), "this run", run))
    return tuple(doubts)


def trend_table(trend: Trend) -> Table:
    """The table of a trend: a row a run, and a line where the protocol changes."""
    rows: list[tuple[str | None, ...]] = []
    notes: list[str] = []
    for point in trend.points:
        if point.breaks:
            rows.append((f"another protocol: {', '.join(point.breaks)}", *[None] * 5))
        if point.changes:
            notes.append(f"{point.name}: since the run before: {', '.join(point.changes)}")
        notes += [f"{point.name}: {doubt}" for doubt in point.doubts]
        interval = point.expectation.interval if point.expectation else None
        rows.append(
            (
                point.name,
                f"{point.when:%Y-%m-%d %H:%M}",
                format_figure(point.estimate, digits=3),
                format_interval(interval, ".3f") or None,
                describe(point, is_lower_better(trend.figure)),
                point.model,
            )
        )
    notes.append(
        "expected: where 369 of 370 runs are if nothing changed since those before, at the cases that both scored"
    )
    notes += [f"left out: {reason}" for reason in trend.left_out]
    return Table(trend.figure, COLUMN_NAMES, rows, notes, "trend")


def describe(point: TrendPoint, lower_is_better: bool) -> str:
    """What a run says beside those before it."""
    if point.doubts:
        return "does not count"
    if point.earlier == 0:
        return "first of its protocol"
    expectation = point.expectation
    if expectation is None:
        return "no case in common"
    if expectation.interval is None:
        return "too few cases to say"
    if not expectation.is_missed:
        return f"as {counted(point.earlier, 'run')} before"
    is_better = (expectation.shift < 0) == lower_is_better
    return "BETTER than before" if is_better else "WORSE than before"
