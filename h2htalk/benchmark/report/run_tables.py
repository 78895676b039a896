"""The tables of a run that the terminal, the page and a notebook show: subtasks, null class, replies, slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from h2htalk.benchmark.estimate_text import (
    PERCENT,
    format_interval,
    format_with_interval,
    half_width_text,
    items_text,
    value_text,
)
from h2htalk.benchmark.replies.reply_endings import EMPTY_CAUSES
from h2htalk.benchmark.report.table2 import LEXICAL_TITLES, UNJUDGED, main_row, table_row
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.summary import Summary
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.model_names import text_without_paths
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, RISKS
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.escaping import printable
from h2htalk.text.tables import Table

_MEANS = {"overall": "Overall", "items_mean": "Mean of items", "plain_mean": "Mean of cells"}
INTERVAL_WIDTH = 15  # of `[99.99, 100.00]`


def main_title(summary: Summary) -> str:
    """Return the title of the main column."""
    if summary.rows.judged is not None:
        return "S and J"
    return "S" if summary.measure == "s" else "Lexical mean"


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort names by descending count; equal counts by name."""
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))


def subtask_table(summary: Summary, wide: bool = True) -> Table:
    """Return the figures by subtask with those of the baselines; a row of a dimension's title has no figures.

    Narrow tables have half of each interval or, where it is skewed, its ends, and no folded lexical mean
    (`lexical_line`). A baseline ends with `!` where the model is not above it.
    """
    header = ["Subtask", "Items", main_title(summary)]
    if summary.rows.judged is not None:
        header.append("S")
    if wide:
        header += [*lexical_headings(summary, "Lexical", "Folded"), "Contract"]
        header += map(printable, summary.baselines)
    else:
        header += [*lexical_headings(summary, "Lex.", ""), "Con-\ntract"]
        header += [printable(name).replace("-", "-\n") for name in summary.baselines]

    row = main_row(summary)
    intervals: dict[str, str] = {}
    for key, cell in row.items():
        if not wide:
            intervals[key] = half_width_text(cell, separator="–")
        elif cell.interval is not None:
            intervals[key] = format_interval(cell.interval, "5.2f", separator=", ", frame="[{}]")
    width = INTERVAL_WIDTH if wide else max(map(len, intervals.values()))

    lines = list[Sequence[str]]()
    for title, labels in _labels_by_group(summary).items():
        if labels:
            lines.append([title.title(), *("" for _ in header[1:])])
        for key, label in labels.items():
            figure = row.get(key)
            # As wide for each, so that values align.
            value = f"{value_text(figure)} {intervals.get(key, ''):<{width}}"
            line = [f" {label}", items_text(figure), value]
            lines.append(line + baseline_cells(summary, key, folded=wide))
    return Table("", header, lines)


def _labels_by_group(summary: Summary) -> dict[str, dict[str, str]]:
    """The labels of the lines by key: subtasks by dimension, then averages. Subtasks without S have a lexical mean."""
    groups: dict[str, dict[str, str]] = {dimension: {} for dimension in DIMENSIONS}
    averages: dict[str, str] = {}
    for subtask in SUBTASKS.values():
        if subtask.name in summary.rows.lexical:
            groups[subtask.dimension][subtask.name] = subtask.column
    for dimension in DIMENSIONS:
        if groups[dimension]:
            averages[f"{dimension}_avg"] = dimension.title()
    return {**groups, "averages": averages | _MEANS}


def lexical_headings(summary: Summary, lexical: str, folded: str) -> list[str]:
    """Return the headings of the lexical figures in `baseline_cells`; `folded` may be empty."""
    headings = []
    if summary.measure == "s":
        headings.append(lexical)
    if folded and summary.rows.lexical_folded is not None:
        headings.append(folded)
    return headings


def lexical_line(summary: Summary) -> str:
    """Return both lexical means in a line, as narrow tables have no column for them; empty where the run has one."""
    cells = table_row(summary).lexical
    if "lexical_folded" not in cells:
        return ""
    name_of_mean = "items" if summary.rows.lexical["overall"].value is None else "overall"
    figures = []
    for name, cell in cells.items():
        figures.append(f"{LEXICAL_TITLES[name].lower()} {format_with_interval(cell)}")
    return f"{name_of_mean}: {', '.join(figures)}"


def notebook_table(summary: Summary) -> Table:
    """Return `subtask_table` with what a reader must know as notes."""
    row = table_row(summary)
    counts = summary.counts
    notes = [
        f"{row.label}: {counts.scored:,} of {counts.items:,} items of {row.split} scored",
        "Intervals 95 %. A baseline ends with ! where the model is not shown to be above it.",
    ]
    if not row.judged:
        notes.append(UNJUDGED)
    return replace(subtask_table(summary), notes=[*notes, *summary.warnings])


def baseline_cells(summary: Summary, key: str, folded: bool = True) -> list[str]:
    """Return what stands beside a figure: S of a judged run, the lexical mean of S, the folded lexical mean, kept
    contracts, baselines."""
    rows = summary.rows
    texts = []
    if rows.judged is not None:
        texts.append(value_text((rows.s or {}).get(key)))
    if summary.measure == "s":
        texts.append(value_text(rows.lexical.get(key)))
    if folded and rows.lexical_folded is not None:
        texts.append(value_text(rows.lexical_folded.get(key)))
    texts.append(value_text(rows.compliance.get(key), form=PERCENT))
    for name, baseline in summary.baselines.items():
        mark = "!" if key in summary.reached[name] else " "
        texts.append(value_text(main_row(summary, baseline).get(key)) + mark)
    return texts


def null_class_table(summary: Summary, as_ends: bool = False) -> Table:
    """Return how often the model and its baselines say that there is nothing to remember, and are right."""
    lines = []
    for name, rows in {summary.model: summary.rows, **summary.baselines}.items():
        null = rows.null_class
        if null is not None:
            line = [name, items_text(null.f1)]
            for ratio in (null.precision, null.recall, null.f1):
                line.append(format_with_interval(ratio, as_ends))
            for count in (null.references, null.answers, null.hits):
                line.append(f"{count:,.1f}".removesuffix(".0"))
            lines.append(line)
    header = (
        "nothing to remember",
        "items",
        "precision",
        "recall",
        "F1",
        "null references",
        "null answers",
        "both",
    )
    return Table("", header, lines)


def answer_tables(summary: Summary) -> list[Table]:
    """Return what kinds of replies came, and the contract rules that they break."""
    counts = summary.counts
    kinds = [
        ("filtered", counts.filtered),
        ("refused", counts.refused),
        ("truncated", counts.truncated),
        ("empty", counts.empty),
    ]
    for cause, number in counts.empty_causes.items():
        kinds.append((f"empty: {EMPTY_CAUSES[cause]}", number))
    for reason, number in most_first(counts.failures):
        message = text_without_paths(counts.failure_messages.get(reason, ""))
        kinds.append((f"unscored ({reason}): {message}", number))
    tables = [Table("", (f"of {counts.samples:,} replies", "n"), kinds)]

    samples = max(1, counts.samples)
    broken = []
    for rule, number in most_first(summary.violations):
        broken.append((rule, number, f"{100 * number / samples:.1f} %", RULES.get(rule)))
    if broken:
        tables.append(Table("", ("broken contract rules", "n", "share", ""), broken))
    return tables


_TAG_ORDERS = {
    "complexity": COMPLEXITIES,
    "interaction": INTERACTIONS,
    "risk": RISKS,
    "language": LANGUAGES,
}


def ordered_slices(summary: Summary) -> dict[str, dict[str, Estimate]]:
    """Return the slices in the order of their tag's values; emotions by descending number of items."""
    ordered = {}
    for tag, cells in summary.slices.items():
        ranks = {value: rank for rank, value in enumerate(_TAG_ORDERS.get(tag, ()))}
        # Values that are not listed come last, the most frequent first.
        keys = {value: (ranks.get(value, len(ranks)), -cells[value].total) for value in cells}
        ordered[tag] = {value: cells[value] for value in sorted(cells, key=lambda v: (keys[v], v))}
    return ordered


def slice_tables(summary: Summary, as_ends: bool = False) -> list[Table]:
    """Return the figures of each value of each tag that has several."""
    tables = []
    for tag, cells in ordered_slices(summary).items():
        if len(cells) > 1:
            lines = []
            for value, cell in cells.items():
                lines.append((value, items_text(cell), format_with_interval(cell, as_ends)))
            tables.append(Table("", (tag, "items", main_title(summary)), lines))
    return tables
