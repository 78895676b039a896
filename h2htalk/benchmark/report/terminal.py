"""Print a run's result on the terminal: a table of the subtasks and their baselines, then notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.box import ASCII, SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from h2htalk.benchmark.report.costs import cost_lines, limit_lines
from h2htalk.benchmark.report.judge_facts import judge_facts
from h2htalk.benchmark.report.number_format import (
    half_width_text,
    items_text,
    percent_text,
    value_text,
    with_half_width,
)
from h2htalk.benchmark.report.table2_layout import (
    COLUMNS,
    NOT_SCORED,
    baselines_reach,
    cell_at,
    languages_of,
    main_row,
    most_first,
    notes,
    null_class_table,
    ordered_slices,
    part_title,
    parts_of,
    spread_lines,
    subtasks_at_hand,
)
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.benchmark.summary import RunCounts, Summary
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import counted
from h2htalk.text.escaping import printable

# From WIDE on intervals are written as [low, high] and headings in full; below it, no table needs more than MINIMUM.
WIDE, MINIMUM = 118, 80
_AVERAGES = (("overall", "Overall"), ("items_mean", "Mean of items"), ("plain_mean", "Mean of cells"))


def print_summary(
    summary: Summary, console: Console, paths: Mapping[str, Path] | None = None, verbose: bool = False
) -> None:
    """Print a run's tables, what failed, warnings and costs.

    Args:
        summary: the run's figures.
        console: needs 80 columns; from 118 on it shows more.
        paths: written files by name, such as `{"report": Path("run/report.html")}`; printed at the end.
        verbose: print notes, counts, slices and the signature as well; the page always has them.
    """
    say = PlainConsole(console)
    console.print(_heading(summary, say))
    parts = parts_of(summary)
    for part in parts.values():
        if len(parts) > 1:
            console.print()
            say.line(part_title(part), "bold underline")
        console.print(_table(part, say), soft_wrap=True)
    if any(baselines_reach(part) for part in parts.values()):
        say.line("! these answers are not shown to be above this baseline (paired 95 % interval)", "yellow")
    for note in notes(summary):
        if note.loud or verbose:
            say.line(note.text, "bold red" if note.loud else "")
    for line in failure_lines(summary.counts):
        say.line(line, "yellow")
    if verbose:
        say.line(_elsewhere(summary), "dim")
        null = null_class_table(summary)
        null_lines = null.to_terminal().splitlines() if null.rows else []
        for line in [*null_lines, *count_lines(summary), *slice_lines(parts)]:
            say.line(say.half_width(line))
    for name, fact in judge_facts(summary):
        say.line(say.half_width(f"{name}: {fact}"))
    for line in [*spread_lines(summary), *cost_lines(summary.costs)]:
        say.line(line)
    if facts := summary.answering.facts():
        say.line("; ".join(f"{name}: {text}" for name, text in facts), "dim")
    for warning in summary.warnings:
        say.line(f"warning: {warning}", "yellow")
    for name in ("protocol", "subject") if verbose else ():
        pairs = getattr(summary.signature, name).items()
        say.line(f"{name}: " + "  ".join(f"{key}={value}" for key, value in pairs), "dim")
    for name, path in (paths or {}).items():
        # Not wrapped, so that a path can be copied in one piece.
        console.print(say.safe(f"{name}: {path}", "bold"), soft_wrap=True)
    for line in limit_lines(summary):
        say.line(line, "bold red")


def _heading(summary: Summary, say: PlainConsole) -> Text:
    counts = summary.counts
    text = say.safe(summary.model, "bold")
    erased = f" ({counts.erased:,} erased)" if counts.erased else ""
    rest = f" on {summary.split}: {counts.scored:,} of {counts.items:,} items scored{erased}, "
    text.append_text(Text(say.safe(rest).plain, "not bold"))
    if summary.incomplete:
        return text.append("INCOMPLETE", "bold red")
    if counts.private:
        return text.append(NOT_SCORED, "bold yellow")
    return text.append("complete", "not bold green")


def _elsewhere(summary: Summary) -> str:
    """Name the files with the intervals and items that the table omits."""
    names = ["the contract"]
    if summary.measure == "s":
        names.insert(0, "the lexical mean")
    if summary.baselines:
        names.append("the baselines")
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"Intervals and n of {listed}: tables/metrics.csv and the page."


# --- The table --------------------------------------------------------------------------------------------------


def _table(part: Summary, say: PlainConsole) -> Table:
    wide = say.console.width >= WIDE
    # Both boxes put one character between columns.
    box = ASCII if say.ascii else SIMPLE_HEAD
    table = Table(box=box, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1 if wide else 0))
    if say.console.width < MINIMUM:
        table.width = MINIMUM  # narrower terminals wrap lines instead, so that no figure is cut
    for heading in _headings(part, wide, say):
        table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    table.columns[0].justify = "left"
    at_hand = subtasks_at_hand(part)
    for dimension in DIMENSIONS:
        names = [name for name in at_hand if SUBTASKS[name].dimension == dimension]
        if names:
            table.add_row(Text(dimension.title(), "bold cyan"))
        for name in names:
            table.add_row(*_line(part, SUBTASKS[name].column, name, say))
    table.add_section()
    table.add_row(Text("Averages", "bold cyan"))
    for column in COLUMNS:
        if column.is_average and cell_at(part.rows.lexical, column.key) and column.group:
            table.add_row(*_line(part, column.group, column.key, say))
    for key, label in _AVERAGES:
        table.add_row(*_line(part, label, key, say), style="bold" if key == "overall" else "")
    return table


def _headings(part: Summary, wide: bool, say: PlainConsole) -> list[Text]:
    headings = ["Subtask", "Items"]
    if part.measure == "s":
        headings += ["S and J", "S"] if part.rows.judged else ["S"]
        headings.append("Lexical" if wide else "Lex.")
    else:
        headings += ["Lexical mean"]
    headings.append("Contract" if wide else "Con-\ntract")
    baselines = [say.safe(name).plain for name in part.baselines]
    return [Text(text) for text in headings + (baselines if wide else [name.replace("-", "-\n") for name in baselines])]


def _line(part: Summary, label: str, key: str, say: PlainConsole) -> list[Text]:
    rows = part.rows
    cell = cell_at(main_row(part), key)
    texts = [Text(f" {label}"), Text(items_text(cell)), _value(cell, say)]
    if rows.judged is not None:
        texts.append(Text(value_text(cell_at(rows.s, key))))
    if part.measure == "s":
        texts.append(Text(value_text(cell_at(rows.lexical, key))))
    texts.append(Text(percent_text(cell_at(rows.compliance, key))))
    return texts + [
        _baseline_cell(cell_at(main_row(part, baseline), key), key in part.main.reached[name])
        for name, baseline in part.baselines.items()
    ]


def _value(cell: Cell | None, say: PlainConsole) -> Text:
    """Format the value and its interval; left-justified, so that values align whatever follows them."""
    text = Text(value_text(cell).rjust(6), "" if cell is None or cell.value is None else "bold", justify="left")
    if cell is None or cell.low is None or cell.high is None:
        return text
    if say.console.width >= WIDE:
        return text.append(f" [{cell.low:5.2f}, {cell.high:5.2f}]", "not bold dim")
    return text.append(f" {say.half_width(half_width_text(cell).rjust(4))}", "not bold dim")


def _baseline_cell(baseline: Cell | None, reached: bool) -> Text:
    return Text(f"{value_text(baseline)}{'!' if reached else ' '}", "bold yellow" if reached else "dim")


# Tags with more values than this have a table on the page alone.
SLICE_VALUES = 6


def failure_lines(counts: RunCounts) -> list[str]:
    """Return a line for each reason why samples are unscored, with the first message of that reason."""
    return [
        f"{counted(n, 'sample')} unscored ({reason}): {counts.failure_messages.get(reason, 'no details are stored')}"
        for reason, n in most_first(counts.failures)
    ]


def count_lines(summary: Summary) -> list[str]:
    """Return the odd replies and broken contract rules, over all items."""
    counts = summary.counts
    odd = {name: n for name in ("empty", "truncated", "refused") if (n := getattr(counts, name))}
    kinds = (
        (f"of {counts.samples:,} replies", odd),
        ("broken contract rules", summary.violations),
    )
    return [
        f"{title}: {', '.join(f'{name} {n:,}' for name, n in most_first(numbers))}"
        for title, numbers in kinds
        if numbers
    ]


def slice_lines(parts: Mapping[str, Summary]) -> list[str]:
    """Return the slices with few values; emotions have a table of their own on the page."""
    return [
        f"{tag}{f' ({languages_of(part)})' if name else ''}: "
        + ", ".join(f"{value} {with_half_width(cell)} ({items_text(cell)})" for value, cell in cells.items())
        for name, part in parts.items()
        for tag, cells in ordered_slices(part).items()
        if 1 < len(cells) <= SLICE_VALUES
    ]


class PlainConsole:
    """Print text without markup, with control characters escaped, and with ASCII where the terminal needs it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.ascii = console.options.ascii_only

    def safe(self, text: str, style: str = "") -> Text:
        """Return one line of text with control characters escaped."""
        shown = printable(text)
        return Text(shown.encode("ascii", "backslashreplace").decode() if self.ascii else shown, style)

    def line(self, text: str, style: str = "") -> None:
        """Print one line of text, wrapped at words."""
        self.console.print(self.safe(text, style))

    def half_width(self, text: str) -> str:
        """Replace `±` where this terminal cannot show it."""
        return text.replace("±", "+-") if self.ascii else text
