"""The paper's Table 2 beside your runs, which are never ranked among its rows; and a check of the paper's sums.

The paper's items, prompts and judge are not public, so a run on another split says nothing about a place in its
table. Among your own runs, places are given only where the protocols agree and nothing is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.benchmark.report.paper_table import paper_rows, unreadable_rows
from h2htalk.benchmark.report.table2_layout import COLUMNS, part_title, parts_of
from h2htalk.benchmark.report.table2_rows import TableRow, table_row
from h2htalk.benchmark.summary import Summary, read_summary
from h2htalk.data.signature import differing_keys

PLACES = 3


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that may be ranked among each other, and what to know about them."""

    title: str
    rows: tuple[TableRow, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """`paper` by size class; `unreadable` names the paper's rows whose figures could not be read; `runs` by
    protocol; `dropped` names a run for each time that it was given again."""

    paper: tuple[Group, ...]
    unreadable: tuple[str, ...]
    runs: tuple[Group, ...]
    dropped: tuple[str, ...] = ()

    @property
    def rows(self) -> list[TableRow]:
        """All rows under their groups' titles, your runs last, for `report.tables`."""
        return [
            replace(row, group=f"{group.title} ({where})")
            for where, groups in (("paper", self.paper), ("your runs", self.runs))
            for group in groups
            for row in group.rows
        ]


def read_summaries(run_folders: Sequence[Path]) -> list[Summary]:
    """The `summary.json` of each run folder, in the order given.

    Raises:
        DataError: one is missing or is not a summary.
    """
    return [read_summary(folder / "summary.json") for folder in run_folders]


# --- The paper --------------------------------------------------------------------------------------------------


# --- Groups and places --------------------------------------------------------------------------------------------


def leaderboard(runs: Sequence[Summary] = ()) -> Leaderboard:
    """The paper's rows by size class and your runs by protocol, the top three of each group marked.

    A run that was given twice would be ranked against itself: it is kept once, and named in `dropped`.
    """
    rows = paper_rows()
    classes = dict.fromkeys(row.group for row in rows)
    paper = tuple(Group(name, _ranked([row for row in rows if row.group == name])) for name in classes)
    kept, dropped = _once(runs)
    return Leaderboard(paper, tuple(unreadable_rows()), _run_groups(kept), tuple(dropped))


def _once(runs: Sequence[Summary]) -> tuple[list[Summary], list[str]]:
    """The runs without repetitions. Equal summaries are one run, by whatever path it was named: the same answers to
    the same items, scored alike."""
    kept: list[Summary] = []
    dropped: list[str] = []
    for run in runs:
        if run in kept:
            dropped.append(run.model)
        else:
            kept.append(run)
    return kept, dropped


def _run_groups(runs: Sequence[Summary]) -> tuple[Group, ...]:
    by_protocol: dict[str, list[Summary]] = {}
    for run in runs:
        by_protocol.setdefault(run.signature.fingerprint, []).append(run)
    first = runs[0].signature.protocol if runs else {}
    groups = []
    for fingerprint, members in by_protocol.items():
        different = differing_keys(first, members[0].signature.protocol)
        note = f"not comparable with the first group: differs in {', '.join(different)}" if different else ""
        for title, rows in _rows_by_part(members).items():
            groups.append(Group(f"protocol {fingerprint}{title}", _ranked(rows), note))
    return tuple(groups)


def _rows_by_part(members: Sequence[Summary]) -> dict[str, list[TableRow]]:
    """The rows of runs of one protocol. Items with S and items without are never ranked together: each part has its
    group, whose title says which it is."""
    rows: dict[str, list[TableRow]] = {}
    for run, label in zip(members, _labels(members), strict=True):
        for name, part in parts_of(run).items():
            title = f", {part_title(part)}" if name else ""
            rows.setdefault(title, []).append(replace(table_row(part, None, name), model=label))
    return {title: sorted(part, key=_place) for title, part in rows.items()}


def _labels(members: Sequence[Summary]) -> list[str]:
    """Names that tell runs of one model apart by what varies between them."""
    labels = []
    for run in members:
        twins = [other.signature.subject for other in members if other.model == run.model]
        subject = run.signature.subject
        varied = [key for key in subject if any(other.get(key) != subject[key] for other in twins)]
        label = " ".join(f"{key}={subject[key]}" for key in varied)
        labels.append(f"{run.model} ({label})" if label else run.model)
    return labels


def _place(row: TableRow) -> tuple[bool, float, str]:
    """Best first, incomplete last."""
    return not row.complete, -_standing(row), row.model


def _standing(row: TableRow) -> float:
    for key in ("overall", "items_mean"):
        value = row.value(key)
        if value is not None:
            return value
    return -math.inf


def _ranked(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """The rows with their places in each column. Figures that print alike share a place; a row that is
    incomplete has none, and one row alone is not a ranking."""
    competing = [row for row in rows if row.complete]
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
