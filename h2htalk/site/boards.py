"""Boards: runs of one protocol with their ranks, ties and baselines. `benchmark.all_pairs` has the rule of ranks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from h2htalk.benchmark.all_pairs import AllPairs, compare_all_pairs
from h2htalk.benchmark.report.leaderboard import by_protocol, item_values
from h2htalk.benchmark.report.table2 import TableRow, table_row
from h2htalk.benchmark.summary import Summary
from h2htalk.site.sources import RunSource

# `7B`, `0.5b`, `135M`; not `8x7B`, `A3B`, `E2B`, `4bit`, `128K`. `1M` may be a length of context, so M has two digits.
_BILLIONS = re.compile(r"(?<![A-Za-z0-9.,])([0-9]{1,4}(?:\.[0-9]{1,3})?)[Bb](?![A-Za-z0-9])")
_MILLIONS = re.compile(r"(?<![A-Za-z0-9.,])([0-9]{2,4})[Mm](?![A-Za-z0-9])")
_CLASSES = (
    (1.0, "<1B"),
    (8.0, "1-8B"),
    (32.0, "8-31B"),
    (math.inf, "32B+"),
)  # the paper's, and one below


def size_of(model: str) -> float | None:
    """Read a model's number of parameters, in billions, from its name; None where the name states none, or two."""
    billions = {float(number) for number in _BILLIONS.findall(model)}
    sizes = billions or {float(number) / 1000 for number in _MILLIONS.findall(model)}
    return next(iter(sizes)) or None if len(sizes) == 1 else None


def size_class(size: float | None) -> str | None:
    """Return the size class of the paper's Table 2; `<1B` for those below its smallest."""
    return None if size is None else next(name for end, name in _CLASSES if size < end)


@dataclass(frozen=True, slots=True)
class Entry:
    """A run on its board.

    `rank`, `first` and `column` (in `AllPairs`) are None where it is not ranked; `tied` are the labels of ranked runs
    that the test does not tell it apart from.
    """

    source: RunSource
    row: TableRow
    size: float | None
    rank: int | None = None
    first: float | None = None
    tied: tuple[str, ...] = ()
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """Runs of one protocol, best first; `figure` is the key of the column that ranks them."""

    number: int
    summary: Summary  # of one of its runs: the split, the measure and the protocol are those of all
    figure: str
    entries: tuple[Entry, ...]
    baselines: tuple[TableRow, ...]
    compared: AllPairs | None


def boards_of(sources: Sequence[RunSource]) -> list[Board]:
    """Group runs by protocol and rank each group; the largest group is the first board."""
    by_summary: dict[int, RunSource] = {}
    summaries: list[Summary] = []
    for source in sources:
        summary = source.run.summary
        if summary.measure != "s":  # J needs S
            summary = summary.without_judgements()
            source = replace(source, run=replace(source.run, summary=summary))
        summaries.append(summary)
        by_summary[id(summary)] = source
    groups = sorted(
        by_protocol(summaries),
        key=lambda members: (-len(members), members[0].signature.fingerprint),
    )
    boards = []
    for number, members in enumerate(groups, 1):
        boards.append(_board(number, [by_summary[id(summary)] for summary in members]))
    return boards


def _board(number: int, members: Sequence[RunSource]) -> Board:
    """Rank runs of one protocol; they come by label, which breaks ties."""
    rows = {}
    baselines = []
    for member in members:
        summary = member.run.summary
        rows[member.key] = replace(table_row(summary), model=member.label)
        baselines += [table_row(summary, name) for name in summary.baselines]
    competing = [
        member
        for member in members
        if rows[member.key].complete and rows[member.key].source == "run"
    ]
    compared = None
    if len(competing) > 1:
        compared = compare_all_pairs(*item_values([member.run for member in competing]))
    figure = "items_mean"
    values = [row.value("overall") for row in rows.values() if row.complete]
    if compared:
        figure = compared.figure
    elif values and None not in values:
        figure = "overall"
    entries = {}
    for member in members:
        entries[member.key] = Entry(
            source=member, row=rows[member.key], size=size_of(member.run.summary.model)
        )
    if compared is not None:
        for column, member in enumerate(competing):
            ties = np.flatnonzero(~compared.apart[column])
            labels = [competing[index].label for index in ties if index != column]
            first = None if compared.first is None else float(compared.first[column])
            entries[member.key] = replace(
                entries[member.key],
                rank=compared.ranks[column],
                first=first,
                tied=tuple(labels),
                column=column,
            )
    best = sorted(
        entries.values(),
        key=lambda e: (e.rank or math.inf, not e.row.complete, -(e.row.value(figure) or 0)),
    )
    different = {(row.model, row.cells.get(figure)): row for row in reversed(baselines)}
    references = sorted(
        different.values(), key=lambda row: (-(row.value(figure) or 0.0), row.model)
    )
    return Board(
        number=number,
        summary=members[0].run.summary,
        figure=figure,
        entries=tuple(best),
        baselines=tuple(references),
        compared=compared,
    )
