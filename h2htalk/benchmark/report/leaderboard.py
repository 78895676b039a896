"""Rank runs among each other, and list them next to the paper's Table 2.

The paper's items, prompts and judge are not public, so a run on another split is never ranked among its rows. Your own
runs are ranked only where their protocols agree and they are complete.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from typing import Any

from rich.console import Console

from h2htalk.benchmark.report.table2 import ALL_COLUMNS, COLUMNS, TableRow, model_rows, rows_table, with_half_width
from h2htalk.benchmark.report.terminal import PlainConsole
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.statistics import Cell, figure_weights
from h2htalk.benchmark.summary import Summary
from h2htalk.data.records import AnyPath, as_path
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import ConfigError, listed, quoted
from h2htalk.text.tables import Table

PLACES = 3
# The least width for all columns with two decimals, and with one decimal; narrower ones show averages alone.
FULL, COMPACT = 145, 130
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
        return [
            replace(row, group=f"{group.title} ({where})")
            for where, groups in (("your runs", self.runs), ("paper", self.paper))
            for group in groups
            for row in group.rows
        ]


def leaderboard(runs: Sequence[AnyPath] = (), *, paper: bool = False, metric: str | None = None) -> Leaderboard:
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
    return rank_runs([load_run(as_path(run, "runs")).summary for run in runs], paper, metric)


def rank_runs(runs: Sequence[Summary], paper: bool = False, metric: str | None = None) -> Leaderboard:
    """Group runs by protocol, and the paper's rows by size class, and mark the top three of each group."""
    if metric not in (None, "s"):
        raise ConfigError(f"--metric {quoted(metric)}: a leaderboard is by s, or without --metric by its main tables")
    if metric and (without := [run.model for run in runs if run.measure != "s"]):
        raise ConfigError(f"{listed(without)}: scored without an embedder; `h2htalk score RUN --embedder NAME` gives S")
    runs = [run.without_judgements() if metric or run.measure != "s" else run for run in runs]  # J needs S
    given = [(run, run in runs[:number]) for number, run in enumerate(runs)]  # equal summaries are one run
    groups = _run_groups([run for run, again in given if not again])
    classes = groupby(paper_rows() if paper else (), key=lambda row: row.group)
    papers = tuple(Group(name, _ranked([*rows])) for name, rows in classes)
    dropped = tuple(run.model for run, again in given if again)
    return Leaderboard(groups, papers, dropped)


def by_protocol(runs: Sequence[Summary]) -> list[list[Summary]]:
    """Group runs whose protocols agree, in the order of the first of each; people's replies join the models' group."""
    groups: dict[str, list[Summary]] = {}
    for run in sorted(runs, key=lambda run: run.signature.human):
        same = (key for key, members in groups.items() if not members[0].signature.differing(run.signature))
        groups.setdefault(next(same, run.signature.fingerprint), []).append(run)
    return [*groups.values()]


def _run_groups(runs: Sequence[Summary]) -> tuple[Group, ...]:
    groups, of_protocol = list[Group](), by_protocol(runs)
    for members in of_protocol:
        note, first, reference = "", members[0], of_protocol[0][0]
        if different := reference.signature.differing(first.signature):
            note = f"not comparable with the first group: differs in {', '.join(different)}"
            note += "; --metric s compares them without a judge" * all(one.startswith("judge ") for one in different)
            note += f"; on {first.split}, not on {reference.split}" * (first.split != reference.split)
        labelled = [replace(run, model=label) for run, label in zip(members, labels_of(members), strict=True)]
        rows = [row for own in sorted(map(model_rows, labelled), key=_place) for row in own]
        groups.append(Group(f"protocol {first.signature.fingerprint}", _ranked(rows), note))
    return tuple(groups)


def labels_of(members: Sequence[Summary]) -> list[str]:
    """Name runs of one model by the settings in which they differ."""
    labels = []
    for run in members:
        subject, twins = run.signature.subject, [one.signature.subject for one in members if one.model == run.model]
        varied = [f"{key}={subject[key]}" for key in subject if any(one.get(key) != subject[key] for one in twins)]
        erased = f" [{run.counts.erased:,} erased]" if run.counts.erased else ""
        labels.append((f"{run.model} ({' '.join(varied)})" if varied else run.model) + erased)
    return labels


def _place(rows: Sequence[TableRow]) -> tuple[bool, float, str]:
    """Sort runs by their first row: best first, incomplete last."""
    headline = (value for key in ("overall", "items_mean") if (value := rows[0].value(key)) is not None)
    return not rows[0].complete, -next(headline, -math.inf), rows[0].model


def _ranked(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """Mark the first three places in each column. Figures that print alike share a place; incomplete rows, people's,
    variants and a single row get none."""
    competing = [row for row in rows if row.complete and row.source != "human" and not row.variant]
    if len(competing) < 2:
        return tuple(rows)
    marks: dict[int, dict[str, int]] = {id(row): {} for row in rows}
    for column in COLUMNS:
        values = {id(row): round(v, 2) for row in competing if (v := row.value(column.key)) is not None}
        for key, value in values.items():
            place = 1 + sum(other > value for other in values.values())
            if place <= PLACES and len(values) > 1:
                marks[key][column.key] = place
    return tuple(replace(row, marks=marks[id(row)]) for row in rows)


# Rows whose recomputed overall differs by more are listed: 2 of the 37 readable rows.
CHECK_TOLERANCE = 0.15


def _paper_records(readable: bool) -> list[dict[str, str]]:
    text = (files("h2htalk.data") / "bundled" / "paper_table2.csv").read_text(encoding="utf-8")
    return [record for record in csv.DictReader(text.splitlines()) if (record["state"] == "clean") == readable]


def _printed(record: Mapping[str, str]) -> dict[str, float]:
    """The figures of a row; a subtask that is not the paper's has none."""
    return {column.key: float(record[column.key]) for column in COLUMNS if column.key in record}


def paper_rows() -> list[TableRow]:
    """Read the 37 readable rows of the paper's Table 2, in its order; `group` is the size class."""
    return [
        TableRow(
            model=record["model"],
            source="paper",
            cells={key: Cell(value, None, None, 0, 0) for key, value in _printed(record).items()},
            split="paper",
            group=record["size_class"],
        )
        for record in _paper_records(readable=True)
    ]


def unreadable_rows() -> list[str]:
    """Return the names of the models whose figures in Table 2 cannot be read."""
    return [record["model"] for record in _paper_records(readable=False)]


def check_paper() -> list[dict[str, Any]]:
    """Recompute the averages (plain means) and the overall (Table-1-weighted mean) of each readable row.

    Differences are recomputed minus printed; a row `agrees` where all are within CHECK_TOLERANCE.
    """
    rows, weights = [], figure_weights(dict.fromkeys(SUBTASKS, 1))
    for record in _paper_records(readable=True):
        printed, means = _printed(record), dict[str, float]()
        for key in ("overall", *(f"{dimension}_avg" for dimension in DIMENSIONS)):
            own = {name: weight for name, weight in weights[key].items() if name in printed}
            means[key] = math.fsum(weight * printed[name] for name, weight in own.items()) / math.fsum(own.values())
        overall = means["overall"]
        averages = {name: means[f"{name}_avg"] - printed[f"{name}_avg"] for name in DIMENSIONS}
        off = overall - printed["overall"]
        agrees = all(abs(one) <= CHECK_TOLERANCE for one in (off, *averages.values()))
        made = {"model": record["model"], "printed": printed["overall"], "recomputed": overall, "off": off}
        rows.append({**made, "averages_off": averages, "agrees": agrees})
    return rows


def print_leaderboard(board: Leaderboard, console: Console) -> None:
    """Print your runs, then the paper's rows by size class; wide terminals get all figures, others averages."""
    say, wide = PlainConsole(console), console.width >= COMPACT
    columns, notes = [column for column in COLUMNS if wide or column.is_average], dict[str, None]()
    for where, groups in (("Your runs", board.runs), (PAPER, board.paper)):
        if groups:
            say.line(where, "bold")
        for group in groups:
            title = f"{group.title} ({group.note})" if group.note else group.title
            decimals = 1 if wide and console.width < FULL else 2
            table = rows_table(group.rows, title, columns, decimals, half="")
            notes |= dict.fromkeys(table.notes)
            heads = [f"{head[:3]}." if wide and head else head.removesuffix(" avg.") for head in table.header]
            say.table(replace(table, header=heads, notes=()), 1)
            for row in group.rows if groups is board.runs else ():
                means = (f"{one.title} {with_half_width(row.cells.get(one.key))}" for one in ALL_COLUMNS[-3:])
                say.line(say.half_width(f"{row.label}: {', '.join(means)}"))
    for model in board.dropped:
        say.line(f"{model}: given more than once, shown once.", "yellow")
    notes["Only complete runs of the same protocol are ranked. The intervals of each cell: --format csv."] = None
    if board.paper:
        notes[f"Left out, as their figures cannot be read: {', '.join(unreadable_rows())}."] = None
    for note in notes:
        say.line(say.half_width(note))


def print_check(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the paper's overall beside its recomputation, and name the rows that do not agree."""
    say, lines = PlainConsole(console), list[Sequence[str]]()
    for row in sorted(rows, key=lambda row: not row["agrees"]):
        most, figures = max(row["averages_off"].values(), key=abs), (row["printed"], row["recomputed"])
        lines.append((row["model"], *(f"{one:.2f}" for one in figures), f"{row['off']:+.3f}", f"{most:+.3f}"))
    say.table(Table("", ("model", "printed", "recomputed", "off", "averages off"), lines))
    others = [row["model"] for row in rows if not row["agrees"]]
    agree = f"{len(rows) - len(others)} of {len(rows)} readable rows agree within {CHECK_TOLERANCE}"
    say.line(f"{agree} with the mean of their eleven cells weighted with Table 1's counts.", "bold")
    say.line(f"The others, last in the table: {', '.join(others)}.")
