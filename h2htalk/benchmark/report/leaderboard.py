"""Rank runs among each other, and list them next to the paper's Table 2.

The paper's items, prompts and judge are not public, so a run on another split is never ranked among its rows. Your own
runs are ranked only where their protocols agree and they are complete, in each column by `benchmark.all_pairs`: runs
that the paired test does not tell apart can share a rank. The paper's rows have no items, and are ranked as printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

import numpy as np
from rich.console import Console

from h2htalk.benchmark.all_pairs import PLACES, rank_by_figure
from h2htalk.benchmark.estimate_text import format_with_interval
from h2htalk.benchmark.report.paper_rows import paper_rows, unreadable_rows
from h2htalk.benchmark.report.table2 import (
    ALL_COLUMNS,
    COLUMNS,
    FOLDED,
    LEXICAL_TITLES,
    TableRow,
    model_rows,
    rows_table,
    table_row,
)
from h2htalk.benchmark.report.terminal import PlainConsole
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.averages import clusters_of
from h2htalk.benchmark.statistics.sign_flips import Values
from h2htalk.benchmark.summarize import judged_value
from h2htalk.benchmark.summary import Summary
from h2htalk.data.model_names import without_paths
from h2htalk.data.scenario import Scenario
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.signature import rescoring_advice
from h2htalk.errors import ConfigError, listed, quoted
from h2htalk.progress import counted_items

# The least width for all columns with two decimals, and with one decimal; narrower ones show averages alone.
FULL = 145
COMPACT = 130
PAPER = "The paper's Table 2 (arXiv 2507.03543); your runs are not ranked among its rows"


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that may be ranked among each other, and a note about them."""

    title: str
    rows: tuple[TableRow, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Runs by protocol and, where asked for, the paper's rows by size class.

    `dropped` are the models of runs given more than once.
    """

    runs: tuple[Group, ...]
    paper: tuple[Group, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def rows(self) -> list[TableRow]:
        """All rows under the titles of their groups, your runs first, for `report.table2`."""
        rows = []
        for source, groups in (("your runs", self.runs), ("paper", self.paper)):
            for group in groups:
                heading = f"{group.title} ({source})"
                rows += [replace(row, group=heading) for row in group.rows]
        return rows


def leaderboard(
    runs: Sequence[AnyPath] = (), *, paper: bool = False, metric: str | None = None
) -> Leaderboard:
    """Rank scored runs among each other.

    Args:
        runs: run folders.
        metric: `s` leaves all judges out and ranks by S; None ranks by the main tables, levels of judged runs by J.
        paper: add the rows of the paper's Table 2, which your runs are never ranked among.

    Examples:
        >>> import h2htalk
        >>> board = h2htalk.leaderboard(["runs/constant"])
        >>> [row.model for row in board.rows]
        ['baseline:constant']

    Raises:
        ConfigError: `runs` is no list of paths, there is no such metric, or a run was scored without an embedder.
        DataError: a folder holds no scored run, or one that was edited since.
    """
    loaded = []
    for path in counted_items("reading runs", runs):
        run = load_run(as_path(path, "runs"))
        # Ranks need scores alone, and many runs would fill the memory with texts.
        loaded.append(replace(run, answers={}))
    return rank_runs(loaded, paper, metric)


def rank_runs(runs: Sequence[Run], paper: bool = False, metric: str | None = None) -> Leaderboard:
    """Group runs by protocol, and the paper's rows by size class, and mark ranks 1 to 3 of each group."""
    if metric not in (None, "s"):
        raise ConfigError(
            f"--metric {quoted(metric)}: a leaderboard is by s, or without --metric by its main tables"
        )
    without_s = [run.summary.model for run in runs if run.summary.measure != "s"]
    if metric and without_s:
        raise ConfigError(
            f"{listed(without_s)}: scored without an embedder; `h2htalk score RUN --embedder NAME` gives S"
        )
    distinct: list[Run] = []
    summaries: list[Summary] = []
    dropped = []
    for run in runs:
        summary = run.summary
        if metric or summary.measure != "s":  # J needs S
            summary = summary.without_judgements()
        if summary in summaries:
            dropped.append(summary.model)
        else:
            summaries.append(summary)
            distinct.append(replace(run, summary=summary))
    paper_groups = []
    if paper:
        for size_class, rows in groupby(paper_rows(), key=lambda row: row.group):
            paper_groups.append(Group(size_class, _ranked_as_printed(list(rows))))
    return Leaderboard(_run_groups(distinct), tuple(paper_groups), tuple(dropped))


def by_protocol(runs: Sequence[Summary]) -> list[list[Summary]]:
    """Group runs whose protocols agree, in the order of the first of each; people's replies join the models' group."""
    groups: list[list[Summary]] = []
    for run in sorted(runs, key=lambda run: run.signature.human):
        for members in groups:
            if not members[0].signature.differing(run.signature):
                members.append(run)
                break
        else:
            groups.append([run])
    return groups


def _run_groups(runs: Sequence[Run]) -> tuple[Group, ...]:
    groups = []
    by_summary = {id(run.summary): run for run in runs}
    protocols = by_protocol([run.summary for run in runs])
    for members in protocols:
        labels = labels_of(members)
        rows_by_run = []
        marks_by_run = _rank_marks([by_summary[id(summary)] for summary in members])
        for summary, label, marks in zip(members, labels, marks_by_run, strict=True):
            main, *variants = model_rows(replace(summary, model=label))
            rows_by_run.append([replace(main, marks=marks), *variants])
        rows = tuple(chain(*sorted(rows_by_run, key=_sort_key)))
        title = f"protocol {members[0].signature.fingerprint}"
        note = _difference_note(protocols[0][0], members[0])
        groups.append(Group(title, rows, note))
    return tuple(groups)


def _rank_marks(members: Sequence[Run]) -> list[dict[str, int]]:
    """The ranks 1 to 3 of each run by column; incomplete runs, people's and a single run get none."""
    marks: list[dict[str, int]] = [{} for _ in members]
    competing = []
    for index, run in enumerate(members):
        row = table_row(run.summary)
        if row.complete and row.source == "run":
            competing.append(index)
    if len(competing) < 2:
        return marks
    columns = [column.key for column in COLUMNS]
    values = item_values([members[index] for index in competing])
    for key, ranks in rank_by_figure(columns, *values).items():
        for index, rank in zip(competing, ranks, strict=True):
            if rank <= PLACES:
                marks[index][key] = rank
    return marks


def item_values(runs: Sequence[Run]) -> tuple[Values, list[str], list[str]]:
    """The main figure of each item (0 to 1) in each run, by the items' ids; and each item's subtask and cluster."""
    scenarios: dict[str, Scenario] = {}
    for run in runs:
        scenarios |= {scenario.id: scenario for scenario in run.data.split.scenarios}
    items = [scenarios[name] for name in sorted(scenarios)]
    values = np.full((len(items), len(runs)), math.nan)
    for column, run in enumerate(runs):
        summary = run.summary
        for row, item in enumerate(items):
            score = run.item_scores.get(item.id)
            if score is None:
                continue
            if summary.judged:
                value = judged_value(item, score)
            else:
                value = getattr(score, summary.measure)
            if value is not None:
                values[row, column] = value
    clusters = clusters_of(items)
    return values, [item.subtask for item in items], [clusters[item.id] for item in items]


def _difference_note(reference: Summary, run: Summary) -> str:
    """Why a run does not compare with another, and what would make them comparable; empty where they do."""
    different = reference.signature.differing(run.signature)
    if not different:
        return ""
    note = f"not comparable with the first group: differs in {', '.join(different)}"
    note += rescoring_advice(reference.signature, run.signature, "h2htalk score RUN")
    if all(key.startswith("judge ") for key in different):
        note += "; --metric s compares them without a judge"
    if run.split != reference.split:
        note += f"; on {run.split}, not on {reference.split}"
    return note


def labels_of(members: Sequence[Summary]) -> list[str]:
    """Name runs of one model by the settings in which they differ."""
    labels = []
    for run in members:
        subject = without_paths(run.signature.subject)
        label = run.model
        twins = [twin for twin in members if twin.model == run.model]
        twin_subjects = [without_paths(twin.signature.subject) for twin in twins]
        varied = []
        for key, value in subject.items():
            if any(twin_subject.get(key) != value for twin_subject in twin_subjects):
                varied.append(f"{key}={value}")
        if varied:
            label += f" ({' '.join(varied)})"
        if run.counts.erased:
            label += f" [{run.counts.erased:,} erased]"
        labels.append(label)
    return labels


def _sort_key(rows: Sequence[TableRow]) -> tuple[bool, float, str]:
    """Sort runs by their first row: best first, incomplete last."""
    row = rows[0]
    headline = row.value("overall")
    if headline is None:
        headline = row.value("items_mean")
    return not row.complete, math.inf if headline is None else -headline, row.model


def _ranked_as_printed(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """Mark the first three places in each column of the paper's rows; figures that print alike share a place."""
    marks: dict[int, dict[str, int]] = {id(row): {} for row in rows}
    for column in COLUMNS:
        values = {}
        for row in rows:
            value = row.value(column.key)
            if value is not None:
                values[id(row)] = round(value, 2)
        descending = sorted(values.values(), reverse=True)
        for row_id, value in values.items():
            better = descending.index(value)
            if better < PLACES and len(values) > 1:
                marks[row_id][column.key] = better + 1
    return tuple(replace(row, marks=marks[id(row)]) for row in rows)


def print_leaderboard(board: Leaderboard, console: Console) -> None:
    """Print your runs, then the paper's rows by size class; wide terminals get all figures, others averages."""
    say = PlainConsole(console)
    is_wide = console.width >= COMPACT
    decimals = 1 if is_wide and console.width < FULL else 2
    columns = [column for column in COLUMNS if is_wide or column.is_average]
    notes: list[str] = []
    for heading, groups in (("Your runs", board.runs), (PAPER, board.paper)):
        if groups:
            say.line(heading, "bold")
        for group in groups:
            title = f"{group.title} ({group.note})" if group.note else group.title
            table = rows_table(group.rows, title, columns, decimals, interval_place="")
            notes += table.notes
            say.table(replace(table, header=_short_header(table.header, is_wide), notes=()), 1)
            if groups is board.runs:
                for row in group.rows:
                    say.line(say.half_width(_means_line(row)))
    for model in board.dropped:
        say.line(f"{model}: given more than once, shown once.", "yellow")
    notes.append(
        "Only complete runs of the same protocol are ranked. The intervals of each cell: --format csv."
    )
    rows_of_runs = chain(*(group.rows for group in board.runs))
    if any("lexical_folded" in row.lexical for row in rows_of_runs):
        notes.append(FOLDED)
    if board.paper:
        notes.append(f"Left out, as their figures cannot be read: {', '.join(unreadable_rows())}.")
    for note in dict.fromkeys(notes):
        say.line(say.half_width(note))


def _short_header(header: Sequence[str], is_wide: bool) -> list[str]:
    """The headings as a terminal has room for them: abbreviated beside all columns, else without `avg.`."""
    if not is_wide:
        return [heading.removesuffix(" avg.") for heading in header]
    return [f"{heading[:3]}." if heading else "" for heading in header]


def _means_line(row: TableRow) -> str:
    """The overall means of a run with their intervals, and its lexical means."""
    means = []
    for column in ALL_COLUMNS[-3:]:
        means.append(f"{column.title} {format_with_interval(row.cells.get(column.key))}")
    for name, cell in row.lexical.items():
        means.append(f"{LEXICAL_TITLES[name].lower()} {format_with_interval(cell)}")
    return f"{row.label}: {', '.join(means)}"
