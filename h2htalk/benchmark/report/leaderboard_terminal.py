"""Print the leaderboard and the check of the paper's averages."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console
from rich.text import Text

from h2htalk.benchmark.report.leaderboard import Group, Leaderboard
from h2htalk.benchmark.report.number_format import items_text, with_half_width
from h2htalk.benchmark.report.paper_table import CHECK_TOLERANCE, CheckedRow
from h2htalk.benchmark.report.table2_layout import COLUMNS, NOT_SCORED, Column
from h2htalk.benchmark.report.table2_rows import TableRow
from h2htalk.benchmark.report.terminal import PlainConsole

# The least width for all columns with two decimals, and with one decimal; narrower ones show averages alone.
FULL, COMPACT = 132, 98
_AVERAGES_WIDTH = 13
_MEANS = (("overall", "Overall"), ("items_mean", "Items"), ("plain_mean", "Cells"))
# Headings of five and of four characters.
_SHORT = {
    "Standard": ("Stand", "Std."),
    "Emotional": ("Emot.", "Emo."),
    "Schedule": ("Sched", "Sch."),
    "Basic": ("Basic", "Bas."),
    "Middle": ("Mid.", "Mid."),
    "Advanced": ("Adv.", "Adv."),
    "Response": ("Resp.", "Rsp."),
    "Initiation": ("Init.", "Ini."),
    "Synthesis": ("Synth", "Syn."),
    "Refinement": ("Refin", "Ref."),
    "Initialization": ("Init.", "Ini."),
    "Overall": ("All", "All"),
}
_STYLES = {1: "bold green", 2: "bold blue", 3: "bold yellow"}
_SIGNS = {1: "¹", 2: "²", 3: "³"}
_ASCII_SIGNS = {1: "*", 2: "+", 3: "-"}


def print_leaderboard(board: Leaderboard, console: Console) -> None:
    """Print your runs, then the paper's rows by size class where the leaderboard holds them.

    All figures have two decimals from 132 columns on and one from 98 on; narrower terminals get averages.
    """
    say = PlainConsole(console)
    grid = _Grid.of(say, COLUMNS)
    if board.runs:
        say.line("Your runs", "bold")
        _print_groups(board.runs, grid)
        _print_explanations(board, say)
    if board.paper:
        say.line("The paper's Table 2 (arXiv 2507.03543); your runs are not ranked among its rows", "bold")
        _print_groups(board.paper, grid)
        say.line(f"Left out, because their figures in the paper cannot be read: {', '.join(board.unreadable)}.")
    signs = _ASCII_SIGNS if say.ascii else _SIGNS
    say.line(f"{signs[1]} {signs[2]} {signs[3]} first, second and third of a group.")


def _print_explanations(board: Leaderboard, say: PlainConsole) -> None:
    say.line(
        "Overall (All): weighted with Table 1's counts, needs all subtasks. Items: mean of the scored items. "
        "Cells: plain mean of the cells."
    )
    say.line(say.half_width("± is half the width of the 95 % interval; those of each cell: --format csv."))
    say.line("Only complete runs of the same protocol are ranked with each other.")
    for model in board.dropped:
        say.line(f"{model}: given more than once, shown once.", "yellow")


@dataclass(frozen=True, slots=True)
class _Grid:
    """The columns' positions on a terminal. A cell ends with its mark or a space, so that no separator is needed;
    `width` includes that character."""

    say: PlainConsole
    columns: tuple[Column, ...]
    width: int
    decimals: int
    name_width: int

    @classmethod
    def of(cls, say: PlainConsole, columns: tuple[Column, ...]) -> _Grid:
        room = say.console.width
        decimals = 1 if COMPACT <= room < FULL else 2
        if room < COMPACT:
            columns = tuple(column for column in columns if column.is_average)
        width = 4 + decimals if room >= COMPACT else min(_AVERAGES_WIDTH, max(6, (room - 18) // len(columns)))
        return cls(say, columns, width, decimals, max(18, min(36, room - width * len(columns))))

    def headings(self) -> list[Text]:
        """Format the line of groups above the columns' names; averages alone get their group's name."""
        indent, inner = " " * self.name_width, self.width - 1
        if all(column.is_average for column in self.columns):
            whole = [column.group or column.heading for column in self.columns]
            names = [name if len(name) <= inner else f"{name[: min(6, inner - 1)]}." for name in whole]
            return [Text(indent + "".join(f"{name:>{inner}} " for name in names), "bold dim")]
        spans = [(group, len(list(members))) for group, members in groupby(self.columns, key=lambda c: c.group)]
        names = [_SHORT.get(column.heading, (column.heading,) * 2)[self.width < 6] for column in self.columns]
        above = "".join(group.center(self.width * n) for group, n in spans)
        return [Text(indent + line, "bold dim") for line in (above, "".join(f"{n:>{inner}} " for n in names))]

    def row(self, row: TableRow) -> list[Text]:
        """Format a row: its name, wrapped where it is too long, with the figures on its last line."""
        state = "" if row.complete else f" [{NOT_SCORED}]" if row.private else " [INCOMPLETE]"
        name = self.say.safe(f"{row.name}{state}").plain
        lines = [Text(f"  {part}") for part in textwrap.wrap(name, self.name_width - 3, subsequent_indent="  ")]
        if not lines or lines[-1].cell_len >= self.name_width:
            lines.append(Text())
        lines[-1].pad_right(self.name_width - lines[-1].cell_len)
        signs = _ASCII_SIGNS if self.say.ascii else _SIGNS
        for column in self.columns:
            value, place = row.value(column.key), row.marks.get(column.key, 0)
            shown = "-" if value is None else f"{value:.{self.decimals}f}"
            style = _STYLES.get(place, "bold" if column.key == "overall" else "")
            lines[-1].append(f"{shown:>{self.width - 1}}{signs.get(place, ' ')}", style)
        if not row.complete:
            lines[-1].stylize("dim")
        return lines


def _print_groups(groups: Sequence[Group], grid: _Grid) -> None:
    for line in grid.headings():
        grid.say.console.print(line, no_wrap=True)
    for group in groups:
        grid.say.line(group.title, "bold cyan")
        if group.note:
            grid.say.line(f"  {group.note}", "yellow")
        for row in group.rows:
            for line in [*grid.row(row), *_about(row, grid.say)]:
                grid.say.console.print(line, no_wrap=True)


def _about(row: TableRow, say: PlainConsole) -> list[Text]:
    """Return the lines under a run: cautions, its items, and its three overall means with their intervals."""
    if row.source == "paper":
        return []
    means = ", ".join(f"{label} {with_half_width(row.cells.get(key))}" for key, label in _MEANS)
    shown = say.half_width(f"{items_text(row.cells.get('items_mean'))} items scored; {means}")
    lines = textwrap.wrap(shown, say.console.width, initial_indent="    ", subsequent_indent="      ")
    cautions = f"    {', '.join(_cautions(row))}"
    return [*([Text(cautions, "yellow")] if cautions.strip() else []), *(Text(line, "dim") for line in lines)]


def _cautions(row: TableRow) -> list[str]:
    """Return the cautions about a run's figures; that it is incomplete is in its name."""
    cautions = []
    if row.measure != "s":
        cautions.append("lexical mean only")
    elif not row.comparable:
        cautions.append("S not comparable")
    if not row.judged:
        cautions.append("unjudged")
    return cautions


def print_check(rows: Sequence[CheckedRow], console: Console) -> None:
    """Print the paper's overall beside its recomputation, and name the rows that do not agree."""
    say = PlainConsole(console)
    width = max(len(row.model) for row in rows)
    say.line(f"{'model':<{width}}  printed  recomputed     off  averages off", "bold dim")
    for row in rows:
        figures = f"{row.printed:7.2f}  {row.recomputed:10.2f}  {row.off:+6.3f}  {row.averages_off_most:+12.3f}"
        say.line(f"{row.model:<{width}}  {figures}", "" if row.agrees else "bold yellow")
    off = [row for row in rows if not row.agrees]
    say.line(
        f"{len(rows) - len(off)} of {len(rows)} readable rows agree within {CHECK_TOLERANCE} with the mean of "
        "their eleven cells weighted with Table 1's counts. The others:",
        "bold",
    )
    for row in off:
        say.line(f"{row.model}: printed {row.printed:.2f}, its cells give {row.recomputed:.2f} ({row.off:+.3f})")
