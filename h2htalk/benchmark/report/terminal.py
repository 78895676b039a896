"""A run's result on the terminal: one table of the subtasks beside their floors, then what to know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.box import ASCII, SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from h2htalk.benchmark.aggregate import Cell, NullClass
from h2htalk.benchmark.report.layout import (
    COLUMNS,
    cell_at,
    floors_reach,
    main_row,
    most_first,
    not_above,
    notes,
    ordered_slices,
    subtasks_at_hand,
)
from h2htalk.benchmark.report.speaker import Speaker
from h2htalk.benchmark.summary import Summary
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS

# From here on intervals are written as [low, high] and headings in full; a narrower table needs MINIMUM.
WIDE, MINIMUM = 113, 76
_AVERAGES = (("overall", "Overall"), ("items_mean", "Mean of items"), ("plain_mean", "Mean of cells"))


def print_summary(summary: Summary, console: Console, paths: Mapping[str, Path] | None = None) -> None:
    """Print a run's table, notes, counts and signature.

    Args:
        summary: what was measured.
        console: 80 columns are enough, from 113 on there is more to read.
        paths: what was written and where, such as `{"report": Path("run/report.html")}`; printed last.
    """
    say = Speaker(console)
    console.print(_heading(summary, say))
    console.print(_table(summary, say), width=max(console.width, MINIMUM), crop=False)
    if floors_reach(summary):
        say.line("! the model is not above this floor", "yellow")
    for note in notes(summary):
        say.line(note.text, "bold red" if note.loud else "")
    for line in [*_null_class_lines(summary), *_count_lines(summary), *_slice_lines(summary)]:
        say.line(line)
    for warning in summary.warnings:
        say.line(f"warning: {warning}", "yellow")
    for part in ("protocol", "subject"):
        pairs = getattr(summary.signature, part).items()
        say.line(f"{part}: " + "  ".join(f"{key}={value}" for key, value in pairs), "dim")
    for name, path in (paths or {}).items():
        # Not wrapped, so that a path can be copied in one piece.
        console.print(say.safe(f"{name}: {path}", "bold"), soft_wrap=True)


def _heading(summary: Summary, say: Speaker) -> Text:
    counts = summary.counts
    text = say.safe(summary.model, "bold")
    rest = f" on {summary.split}: {counts.scored:,} of {counts.items:,} items scored, "
    text.append_text(Text(say.safe(rest).plain, "not bold"))
    state = ("INCOMPLETE", "bold red") if summary.incomplete else ("complete", "not bold green")
    return text.append(*state)


# --- The table --------------------------------------------------------------------------------------------------


def _table(summary: Summary, say: Speaker) -> Table:
    wide = say.console.width >= WIDE
    # Both boxes put one character between columns.
    box = ASCII if say.ascii else SIMPLE_HEAD
    table = Table(box=box, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1 if wide else 0))
    for heading in _headings(summary, wide, say):
        table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    table.columns[0].justify = "left"
    at_hand = subtasks_at_hand(summary)
    for dimension in DIMENSIONS:
        names = [name for name in at_hand if SUBTASKS[name].dimension == dimension]
        if names:
            table.add_row(Text(dimension.title(), "bold cyan"))
        for name in names:
            label = SUBTASKS[name].title.removeprefix(dimension.title())
            table.add_row(*_line(summary, f"  {label}", name, say))
    table.add_section()
    table.add_row(Text("Averages", "bold cyan"))
    for column in COLUMNS:
        if column.is_average and cell_at(summary.standing.lexical, column.key) and column.group:
            table.add_row(*_line(summary, f"  {column.group}", column.key, say))
    for key, label in _AVERAGES:
        table.add_row(*_line(summary, f"  {label}", key, say), style="bold" if key == "overall" else "")
    return table


def _headings(summary: Summary, wide: bool, say: Speaker) -> list[Text]:
    headings = ["Subtask", "Items"]
    if summary.measure == "s":
        headings += ["S", "Lexical" if wide else "Lex."]
    else:
        headings += ["Lexical mean"]
    headings.append("Contract" if wide else "Con-\ntract")
    floors = [say.safe(name).plain for name in summary.floors]
    return [
        Text(text) for text in headings + (floors if wide else [name.replace("-", "-\n") for name in floors])
    ]


def _line(summary: Summary, label: str, key: str, say: Speaker) -> list[Text]:
    standing = summary.standing
    cell = cell_at(main_row(summary), key)
    texts = [Text(label), Text(_items(cell)), _value(cell, say)]
    if summary.measure == "s":
        texts.append(Text(_beside(_number, cell_at(standing.lexical, key), cell)))
    texts.append(Text(_beside(_percent, cell_at(standing.compliance, key), cell)))
    return texts + [_floor(cell, cell_at(main_row(summary, floor), key)) for floor in summary.floors.values()]


def _items(cell: Cell | None) -> str:
    return "-" if cell is None else f"{cell.n}/{cell.total}"


def _beside(write: Callable[[Cell | None], str], cell: Cell | None, main: Cell | None) -> str:
    """A figure of a column that has no n of its own; its n in brackets where it is not the main one's."""
    if cell is None or main is None or (cell.n, cell.total) == (main.n, main.total):
        return write(cell)
    return f"{write(cell)} ({cell.n})"


def _value(cell: Cell | None, say: Speaker) -> Text:
    if cell is None or cell.value is None:
        return Text("-")
    text = Text(f"{cell.value:.2f}", "bold")
    if cell.low is None or cell.high is None:
        return text
    if say.console.width >= WIDE:
        return text.append(f" [{cell.low:5.2f}, {cell.high:5.2f}]", "not bold dim")
    sign = "+-" if say.ascii else "±"
    return text.append(f" {sign}{(cell.high - cell.low) / 2:.1f}", "not bold dim")


def _number(cell: Cell | None) -> str:
    return "-" if cell is None or cell.value is None else f"{cell.value:.2f}"


def _percent(cell: Cell | None) -> str:
    return "-" if cell is None or cell.value is None else f"{cell.value:.0f} %"


def _floor(cell: Cell | None, floor: Cell | None) -> Text:
    reached = not_above(cell, floor)
    return Text(f"{_number(floor)}{'!' if reached else ' '}", "bold yellow" if reached else "dim")


# --- Lines below it ---------------------------------------------------------------------------------------------


def _null_class_lines(summary: Summary) -> list[str]:
    """The model's, and those of floors that ever answer with the null line."""
    named = {"": summary.standing.null_class, **{n: floor.null_class for n, floor in summary.floors.items()}}
    return [
        _null_class_line(null, name) for name, null in named.items() if null and (not name or null.answers)
    ]


def _null_class_line(null: NullClass, floor: str) -> str:
    ratios = (("precision", null.precision), ("recall", null.recall), ("F1", null.f1))
    shown = ", ".join(f"{name} {'-' if value is None else f'{value:.2f}'}" for name, value in ratios)
    return (
        f"nothing to remember{f' ({floor})' if floor else ''}: {shown}; "
        f"{null.references} of {null.n} references, {null.answers} answers, {null.hits} both"
    )


def _count_lines(summary: Summary) -> list[str]:
    counts = summary.counts
    odd = {name: n for name in ("empty", "truncated", "refused") if (n := getattr(counts, name))}
    kinds = (
        ("unscored, by reason", counts.failures),
        (f"of {counts.samples:,} replies", odd),
        ("broken contract rules", summary.violations),
    )
    return [
        f"{title}: {', '.join(f'{name} {n:,}' for name, n in most_first(numbers))}"
        for title, numbers in kinds
        if numbers
    ]


def _slice_lines(summary: Summary) -> list[str]:
    """Slices with few values; emotions have a table of their own on the page."""
    return [
        f"{tag}: {', '.join(f'{name} {_number(cell)} ({cell.n})' for name, cell in cells.items())}"
        for tag, cells in ordered_slices(summary).items()
        if 1 < len(cells) <= 6
    ]
