"""The tables of a comparison, and its page with the items that moved most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import stdev

from h2htalk.benchmark.compare.comparison import Comparison, Pair
from h2htalk.benchmark.observations import p_text
from h2htalk.data.files import write_text
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted, listed
from h2htalk.text.escaping import printable, printable_lines
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table

_AVERAGES = {"overall": "Overall", "items_mean": "Mean over items"}
FIELDS = (
    "run", "figure", "family", "a", "b", "difference", "low", "high", "p", "p_holm", "effect", "detectable", "items",
    "clusters",
)  # fmt: skip
_METHODS = (
    "p: sign-flip test by cluster. p Holm: adjusted for the figures of its block and all runs; * below",
    ".05. detects: the difference that as many items find four times in five.",
)


def title_of(key: str) -> str:
    """The name of a figure in tables."""
    if key in SUBTASKS:
        return SUBTASKS[key].title
    return _AVERAGES.get(key) or f"{key.removesuffix('_avg').title()}, average"


def figures_table(comparison: Comparison) -> Table:
    """Every figure of each pair in full, on the 0-100 scale."""
    rows = []
    for pair in comparison.pairs:
        for row in pair.rows:
            r = row.result
            values = (row.a, row.b, r.mean, r.low, r.high, row.p, row.p_holm, r.effect, r.detectable, r.items)
            rows.append((pair.b.label, row.key, row.family, *values, r.clusters))
    return Table("", FIELDS, rows)


def pair_table(comparison: Comparison, pair: Pair) -> Table:
    """The figures of a pair, in blocks whose p is adjusted together."""
    rows: list[Sequence[str]] = []
    for _, block in groupby(pair.rows, key=attrgetter("family")):
        rows.append(())
        for row in block:
            r, holm = row.result, p_text(row.p_holm) + "* "[row.p_holm >= 0.05]
            ends = "" if r.low is None or r.high is None else f"{r.low:+.2f} to {r.high:+.2f}"
            means = f"{row.a:.2f}", f"{row.b:.2f}", f"{r.mean:+.2f}"
            detects = "" if r.detectable is None else f"{r.detectable:.2f}"
            rows.append((title_of(row.key), f"{r.items:,}", *means, ends, p_text(row.p), holm, detects))
    title = f"Paired differences of {comparison.metric} times 100. A: {comparison.a.label}; B: {pair.b.label}"
    header = ("", "items", "A", "B", "B - A", "95 % interval", "p", "p Holm ", "detects")
    return Table(title, header, rows[1:], [*_notes(pair), *_METHODS])


def _notes(pair: Pair) -> Iterator[str]:
    """The verdict, what is not in the figures of a pair, and what they rest on."""
    row, p = pair.headline, p_text(pair.headline.p_holm)
    if row.p_holm < 0.05:
        yield f"{title_of(row.key)}: B is {'above' if row.result.mean > 0 else 'below'} A (p {p})."
    else:
        could = "" if (found := row.result.detectable) is None else f"; {found:.2f} could have been found"
        yield f"{title_of(row.key)}: no difference shown (p {p}{could})."
    yield from pair.notes
    if any(row.result.error is None for row in pair.rows):
        yield "no interval where all differences are 0, or where a subtask has one item or one cluster of items"
    for side, counts in zip("AB", pair.counts, strict=True):
        figures = asdict(counts)
        why = ", ".join(f"{reason} {count:,}" for reason, count in figures.pop("reasons").items())
        yield f"{side}: {', '.join(f'{what} {n:,}' for what, n in figures.items())}" + (f" ({why})" if why else "")
    for what, names in (
        ("with a value in A only", pair.only_a),
        ("with a value in B only", pair.only_b),
        ("changed between the runs, not compared", pair.changed),
    ):
        if names:
            yield f"{counted(len(names), 'item')} {what}: {listed(names)}"


def to_text(comparison: Comparison, format: str) -> str:
    """The comparison as `terminal`, `csv`, `json` (with every item's values) or `latex` (a table for each pair)."""
    if format == "csv":
        return figures_table(comparison).to_csv()
    tables = [pair_table(comparison, pair) for pair in comparison.pairs]
    if format == "latex":
        return "\n".join(replace(table, notes=_METHODS).to_latex() for table in tables)
    if format == "terminal":
        parts = [f"A: {comparison.a.label} on {comparison.a.split}; {comparison.metric}, times 100"]
        for table, pair in zip(tables, comparison.pairs, strict=True):
            moved = [(f"{m.difference:+.2f}", f"{m.a.value:.2f}", f"{m.b.value:.2f}", m.id) for m in pair.moved[:5]]
            shown = replace(table, title=f"B: {pair.b.label} on {pair.b.split}", notes=())
            parts += [shown.to_terminal(), "\n".join(map(printable, table.notes))]
            parts.append(Table("", ("moved most", "A", "B", "item"), moved).to_terminal())
        parts += [f"{name}: {note}" for name, note in _spreads(comparison)]
        return "\n\n".join([printable(parts[0]), *parts[1:]]) + "\n"
    content = {
        "reference": comparison.a.label,
        "metric": comparison.metric,
        "figures": [dict(zip(FIELDS, row, strict=True)) for row in figures_table(comparison).rows],
        "pairs": [
            {
                "run": pair.b.label,
                "items": [{"id": m.id, "subtask": m.a.subtask, "a": m.a.value, "b": m.b.value} for m in pair.moved],
                **{name: getattr(pair, name) for name in ("only_a", "only_b", "changed", "notes")},
                "counts": {side: asdict(counts) for side, counts in zip("ab", pair.counts, strict=True)},
            }
            for pair in comparison.pairs
        ],
        "spreads": dict(comparison.spreads),
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def _spreads(comparison: Comparison) -> Iterator[tuple[str, str]]:
    for name, figures in comparison.spreads.items():
        shown = ", ".join(f"{figure:.2f}" for figure in figures)
        yield printable(name), f"{shown} by sample of its answers, standard deviation {stdev(figures):.2f}"


def write_comparison(comparison: Comparison, out: Path) -> None:
    """Write compare.html, compare.csv, compare.json and compare.tex into a folder. Raises DataError."""
    for name, format in (("csv", "csv"), ("json", "json"), ("tex", "latex")):
        write_text(out / f"compare.{name}", to_text(comparison, format))
    view = {
        "a": comparison.a,
        "metric": comparison.metric,
        "pairs": [(pair, pair_table(comparison, pair)) for pair in comparison.pairs],
        "tiles": [{"label": "spread", "value": name, "note": note} for name, note in _spreads(comparison)],
        "clean": printable_lines,
        "titles": {name: subtask.title for name, subtask in SUBTASKS.items()},
    }
    write_text(out / "compare.html", render_page(files("h2htalk.benchmark.compare") / "page", view))
