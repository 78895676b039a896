"""Print a run's result on the terminal: a table of the subtasks and their baselines, then notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from h2htalk.benchmark.report.cost_tables import cost_lines, limit_lines
from h2htalk.benchmark.report.notes import judge_facts, notes, spread_lines
from h2htalk.benchmark.report.run_tables import (
    answer_tables,
    lexical_line,
    most_first,
    null_class_table,
    slice_tables,
    subtask_table,
)
from h2htalk.benchmark.report.table2 import NOT_SCORED
from h2htalk.benchmark.summary import Summary
from h2htalk.errors import counted
from h2htalk.text.escaping import printable
from h2htalk.text.tables import Table

WIDE = 118  # from this width on intervals are written as [low, high] and headings in full; below it 80 are enough
_ASCII = str.maketrans({"±": "+-", "–": "-", "¹": "*", "²": "+", "³": "-"})


def print_summary(
    summary: Summary,
    console: Console,
    paths: Mapping[str, Path] | None = None,
    verbose: bool = False,
) -> None:
    """Print a run's tables, what failed, warnings and costs, and in the end `paths`, the written files by name.

    The console needs 80 columns. `verbose`: print notes, counts, slices and the signature, as the page does.
    """
    say = PlainConsole(console)
    is_wide = console.width >= WIDE
    counts = summary.counts
    console.print(_headline(summary, say))
    say.table(subtask_table(summary, is_wide), 2 if is_wide else 1)
    if not is_wide:
        means = lexical_line(summary)
        if means:
            say.line(say.half_width(means))
    if any(summary.reached.values()):
        by_s = ", by S, as baselines have no J" if summary.judged else ""
        say.line(
            f"! these answers are not shown to be above this baseline (paired 95 % interval{by_s})",
            "yellow",
        )
    for note, is_loud in notes(summary):
        if is_loud or verbose:
            say.line(note, "bold red" if is_loud else "")
    for reason, number in most_first(counts.failures):
        message = counts.failure_messages.get(reason, "no details are stored")
        say.line(f"{counted(number, 'sample')} unscored ({reason}): {message}", "yellow")
    if verbose:
        say.line("Intervals and n of every figure: tables/metrics.csv and the page.", "dim")
        for table in (null_class_table(summary), *answer_tables(summary), *slice_tables(summary)):
            if table.rows:
                say.table(table)
    for name, fact in judge_facts(summary):
        say.line(say.half_width(f"{name}: {fact}"))
    for line in [*spread_lines(summary), *cost_lines(summary.costs)]:
        say.line(line)
    facts = [f"{name}: {text}" for name, text in summary.run_facts.texts()]
    if facts:
        say.line("; ".join(facts), "dim")
    for warning in summary.warnings:
        say.line(f"warning: {warning}", "yellow")
    if verbose:
        signature = summary.signature
        for name, keys in (("protocol", signature.protocol), ("subject", signature.subject)):
            pairs = "  ".join(f"{key}={value}" for key, value in keys.items())
            say.line(f"{name}: {pairs}", "dim")
    for name, path in (paths or {}).items():
        # Not wrapped, so that a path can be copied in one piece.
        console.print(say.safe(f"{name}: {path}", "bold"), soft_wrap=True)
    for line in limit_lines(summary):
        say.line(line, "bold red")


def _headline(summary: Summary, say: PlainConsole) -> Text:
    """The model, the split, the number of items, and whether the run is complete."""
    counts = summary.counts
    text = f" on {summary.split}: {counts.scored:,} of {counts.items:,} items scored"
    if counts.erased:
        text += f" ({counts.erased:,} erased)"
    if counts.left_out:
        text += f" ({counts.left_out:,} filtered by the provider and left out)"
    headline = say.safe(summary.model, "bold")
    headline.append_text(Text(say.safe(f"{text}, ").plain, "not bold"))
    if summary.incomplete:
        return headline.append("INCOMPLETE", "bold red")
    if counts.private:
        return headline.append(NOT_SCORED, "bold yellow")
    return headline.append("complete", "not bold green")


class PlainConsole:
    """Print text without markup, with control characters escaped, and with ASCII where the terminal needs it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.ascii = console.options.ascii_only

    def safe(self, text: str, style: str = "") -> Text:
        """Return one line of text with control characters escaped."""
        plain = printable(text)
        if self.ascii:
            plain = plain.encode("ascii", "backslashreplace").decode()
        return Text(plain, style)

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
