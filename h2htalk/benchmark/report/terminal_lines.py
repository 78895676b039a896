"""The lines below a run's table on the terminal: the null class, counts, slices."""

from __future__ import annotations

from collections.abc import Mapping

from h2htalk.benchmark.metrics.null_class import NullClass
from h2htalk.benchmark.report.number_format import count_text, items_text, with_half_width
from h2htalk.benchmark.report.table2_layout import languages_of, most_first, ordered_slices
from h2htalk.benchmark.summary import Summary

# Tags with more values than this have a table on the page alone.
SLICE_VALUES = 6


def null_class_lines(parts: Mapping[str, Summary]) -> list[str]:
    """The model's in each part, and those of floors that ever answer with the null line."""
    lines = []
    for name, part in parts.items():
        named = {"": part.standing.null_class, **{n: floor.null_class for n, floor in part.floors.items()}}
        lines += [
            _null_class_line(null, [word for word in (languages_of(part) if name else "", floor) if word])
            for floor, null in named.items()
            if null and (not floor or null.answers)
        ]
    return lines


def _null_class_line(null: NullClass, about: list[str]) -> str:
    ratios = (("precision", null.precision), ("recall", null.recall), ("F1", null.f1))
    shown = ", ".join(f"{name} {with_half_width(cell)}" for name, cell in ratios)
    where = f" ({', '.join(about)})" if about else ""
    return (
        f"nothing to remember{where}: {shown}; of {items_text(null.f1)} items, {null.references:,} references and "
        f"{count_text(null.answers)} answers are null, {count_text(null.hits)} both"
    )


def count_lines(summary: Summary) -> list[str]:
    """Failures, odd replies and broken contract rules, over all items."""
    counts = summary.counts
    odd = {name: n for name in ("empty", "truncated", "refused") if (n := getattr(counts, name))}
    kinds = (
        ("unscored samples, by reason", counts.failures),
        (f"of {counts.samples:,} replies", odd),
        ("broken contract rules", summary.violations),
    )
    return [
        f"{title}: {', '.join(f'{name} {n:,}' for name, n in most_first(numbers))}"
        for title, numbers in kinds
        if numbers
    ]


def slice_lines(parts: Mapping[str, Summary]) -> list[str]:
    """Slices with few values; emotions have a table of their own on the page."""
    return [
        f"{tag}{f' ({languages_of(part)})' if name else ''}: "
        + ", ".join(f"{value} {with_half_width(cell)} ({items_text(cell)})" for value, cell in cells.items())
        for name, part in parts.items()
        for tag, cells in ordered_slices(part).items()
        if 1 < len(cells) <= SLICE_VALUES
    ]
