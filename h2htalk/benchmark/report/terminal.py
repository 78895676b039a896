"""Print a run's result on the terminal: a table of the subtasks and their baselines, then notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from h2htalk.benchmark.report import table2
from h2htalk.benchmark.report.notes import cost_lines, judge_facts, limit_lines, notes, spread_lines
from h2htalk.benchmark.summary import Summary
from h2htalk.errors import counted
from h2htalk.text.escaping import printable
from h2htalk.text.tables import Table

WIDE = 118  # from this width on intervals are written as [low, high] and headings in full; below it 80 are enough
_ASCII = str.maketrans({"±": "+-", "–": "-", "¹": "*", "²": "+", "³": "-"})


def print_summary(
    summary: Summary, console: Console, paths: Mapping[str, Path] | None = None, verbose: bool = False
) -> None:
    """Print a run's tables, what failed, warnings and costs, and in the end `paths`, the written files by name.

    The console needs 80 columns. `verbose`: print notes, counts, slices and the signature, as the page does.
    """
    say, wide, counts = PlainConsole(console), console.width >= WIDE, summary.counts
    heading = say.safe(summary.model, "bold")
    erased = f" ({counts.erased:,} erased)" if counts.erased else ""
    rest = f" on {summary.split}: {counts.scored:,} of {counts.items:,} items scored{erased}, "
    heading.append_text(Text(say.safe(rest).plain, "not bold"))
    state, style = ("INCOMPLETE", "bold red") if summary.incomplete else ("complete", "not bold green")
    if counts.private and not summary.incomplete:
        state, style = table2.NOT_SCORED, "bold yellow"
    console.print(heading.append(state, style))
    say.table(table2.subtask_table(summary, wide), 2 if wide else 1)
    if any(summary.reached.values()):
        by = ", by S, as baselines have no J" * summary.judged
        say.line(f"! these answers are not shown to be above this baseline (paired 95 % interval{by})", "yellow")
    for note, loud in notes(summary):
        if loud or verbose:
            say.line(note, "bold red" if loud else "")
    for reason, n in table2.most_first(counts.failures):
        first = counts.failure_messages.get(reason, "no details are stored")
        say.line(f"{counted(n, 'sample')} unscored ({reason}): {first}", "yellow")
    if verbose:
        say.line("Intervals and n of every figure: tables/metrics.csv and the page.", "dim")
        for table in (table2.null_class_table(summary), *table2.answer_tables(summary), *table2.slice_tables(summary)):
            if table.rows:
                say.table(table)
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
    for name, path in (paths or {}).items():  # not wrapped, so that a path can be copied in one piece
        console.print(say.safe(f"{name}: {path}", "bold"), soft_wrap=True)
    for line in limit_lines(summary):
        say.line(line, "bold red")


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

    def table(self, table: Table, gap: int = 2) -> None:
        """Print a table; lines that are too long for the terminal are not cut."""
        for line in table.to_terminal(gap, self.console.width).splitlines():
            self.console.print(self.safe(self.half_width(line)), soft_wrap=True)

    def half_width(self, text: str) -> str:
        """Replace `±`, dashes and signs of places where this terminal cannot show them."""
        return text.translate(_ASCII) if self.ascii else text
