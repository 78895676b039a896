"""A comparison as CSV, JSON, LaTeX, lines for the terminal and an HTML page with the items that moved most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.compare.comparison import Comparison, Moved, Pair, Row
from h2htalk.benchmark.compare.scored_items import ScoredItems
from h2htalk.data.files import write_text
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted
from h2htalk.rounds.item_sources import input_text
from h2htalk.text.escaping import printable, printable_lines
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table

_LISTED_MOVED = 5  # items that the terminal lists
_NAMED = 5  # ids in a line
_AVERAGES = {"overall": "Overall", "items_mean": "Mean over items"}
FIELDS = (
    "run", "figure", "family", "a", "b", "difference", "low", "high", "p", "p_holm", "effect", "detectable", "items",
    "clusters",
)  # fmt: skip


def title_of(key: str) -> str:
    """The name of a figure in tables."""
    if key in SUBTASKS:
        return SUBTASKS[key].title
    return _AVERAGES.get(key) or f"{key.removesuffix('_avg').title()}, average"


def p_text(p: float) -> str:
    """Format a p value with three decimals."""
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def interval_text(row: Row) -> str:
    """Format the interval of a difference; empty where there is none."""
    result = row.result
    return "" if result.low is None or result.high is None else f"{result.low:+.2f} to {result.high:+.2f}"


def figures_table(comparison: Comparison) -> Table:
    """Every figure of each pair in full, on the 0-100 scale."""
    rows = []
    for pair in comparison.pairs:
        for row in pair.rows:
            r = row.result
            values = (row.a, row.b, r.mean, r.low, r.high, row.p, row.p_holm, r.effect, r.detectable, r.items)
            rows.append((pair.b.label, row.key, row.family, *values, r.clusters))
    return Table("", FIELDS, rows)


def to_csv(comparison: Comparison) -> str:
    """One line a figure."""
    return figures_table(comparison).to_csv()


def to_json(comparison: Comparison) -> str:
    """The figures, the items of each pair with their values, and those that are in one run only."""
    content = {
        "reference": comparison.a.label,
        "metric": comparison.metric,
        "figures": [dict(zip(FIELDS, row, strict=True)) for row in figures_table(comparison).rows],
        "pairs": [
            {
                "run": pair.b.label,
                "items": [{"id": m.id, "subtask": m.subtask, "a": m.a.value, "b": m.b.value} for m in pair.moved],
                "only_a": pair.only_a,
                "only_b": pair.only_b,
                "changed": pair.changed,
                "notes": pair.notes,
                "counts": {side: asdict(counts) for side, counts in zip("ab", pair.counts, strict=True)},
            }
            for pair in comparison.pairs
        ],
        "spreads": [{"run": one.label, "figures": one.figures, "sd": one.sd} for one in comparison.spreads],
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def pair_table(comparison: Comparison, pair: Pair) -> Table:
    """The figures of a pair, in blocks whose p is adjusted together."""
    rows: list[Sequence[str]] = []
    for _, block in groupby(pair.rows, key=attrgetter("family")):
        rows.append(())
        for row in block:
            r, holm = row.result, p_text(row.p_holm) + "* "[row.p_holm >= 0.05]
            means = f"{row.a:.2f}", f"{row.b:.2f}", f"{r.mean:+.2f}"
            detects = "" if r.detectable is None else f"{r.detectable:.2f}"
            rows.append((title_of(row.key), f"{r.items:,}", *means, interval_text(row), p_text(row.p), holm, detects))
    title = f"Paired differences of {comparison.metric} times 100. A: {comparison.a.label}; B: {pair.b.label}"
    header = ("", "items", "A", "B", "B - A", "95 % interval", "p", "p Holm ", "detects")
    return Table(title, header, rows[1:])


def to_latex(comparison: Comparison) -> str:
    """A booktabs table for each pair."""
    return "\n".join(pair_table(comparison, pair).to_latex() for pair in comparison.pairs)


def to_lines(comparison: Comparison) -> Iterator[str]:
    """The comparison for the terminal."""
    yield f"A: {comparison.a.label} on {comparison.a.split}; {comparison.metric}, times 100"
    for pair in comparison.pairs:
        yield f"B: {pair.b.label} on {pair.b.split}"
        yield ""
        yield from replace(pair_table(comparison, pair), title="").to_terminal().splitlines()
        yield ""
        yield from pair_notes(pair)
        yield "moved most:"
        for one in pair.moved[:_LISTED_MOVED]:
            yield f"  {one.difference:+7.2f}  {one.id} ({one.a.value:.2f} -> {one.b.value:.2f})"
        yield ""
    for spread in comparison.spreads:
        listed = ", ".join(f"{figure:.2f}" for figure in spread.figures)
        yield f"{spread.label}: {listed} by sample of its answers, standard deviation {spread.sd:.2f}"
    yield "p: sign-flip test by cluster. p Holm: adjusted for the figures of its block and all runs; * below"
    yield ".05. detects: the difference that as many items find four times in five."


def _verdict(pair: Pair) -> str:
    row = pair.headline
    p, detects = p_text(row.p_holm), row.result.detectable
    if row.p_holm < 0.05:
        return f"{title_of(row.key)}: B is {'above' if row.result.mean > 0 else 'below'} A (p {p})."
    could = "" if detects is None else f"; {detects:.2f} could have been found"
    return f"{title_of(row.key)}: no difference shown (p {p}{could})."


def pair_notes(pair: Pair) -> Iterator[str]:
    """What is not in the figures of a pair, and what they rest on."""
    yield _verdict(pair)
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
            more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            yield f"{counted(len(names), 'item')} {what}: {', '.join(names[:_NAMED])}{more}"


_PAGE = files("h2htalk.benchmark.compare") / "page"
MOST_MOVED = 100


def write_comparison(comparison: Comparison, out: Path) -> None:
    """Write compare.html, compare.csv, compare.json and compare.tex into a folder. Raises DataError."""
    write_text(out / "compare.csv", to_csv(comparison))
    write_text(out / "compare.json", to_json(comparison))
    write_text(out / "compare.tex", to_latex(comparison))
    write_text(out / "compare.html", render_page(_PAGE, _view(comparison)))


def _view(comparison: Comparison) -> dict[str, Any]:
    tiles = []
    for one in comparison.spreads:
        note = f"standard deviation of the figure of each of {len(one.figures)} samples"
        tiles.append({"label": printable(one.label), "value": f"{one.sd:.2f}", "note": note})
    return {
        "a": printable(comparison.a.label),
        "split": printable(comparison.a.split),
        "metric": comparison.metric,
        "tiles": tiles,
        "pairs": [_pair(comparison, pair) for pair in comparison.pairs],
    }


def _pair(comparison: Comparison, pair: Pair) -> dict[str, Any]:
    ends = [abs(end) for row in pair.rows for end in (row.result.mean, row.result.low, row.result.high) if end]
    scale, table = max(ends, default=1.0), pair_table(comparison, pair)
    shown = zip(filter(None, table.rows), pair.rows, strict=True)
    rows = [(*texts, _forest(row, scale)) for texts, row in shown]
    return {
        "b": printable(pair.b.label),
        "table": replace(table, header=(*table.header, f"{scale:.0f} points either way"), rows=rows),
        "notes": [printable(note) for note in pair_notes(pair)],
        "moved": [_item(one, comparison.a, pair.b) for one in pair.moved[:MOST_MOVED]],
        "of": f"{len(pair.moved):,}",
    }


def _forest(row: Row, scale: float) -> Markup:
    """Draw a difference with its interval around 0."""

    def at(value: float) -> float:
        return round(100 + 96 * value / scale, 1)

    r, span = row.result, Markup()
    if r.low is not None and r.high is not None:
        span = Markup('<line class="span" x1="{}" y1="9" x2="{}" y2="9"/>').format(at(r.low), at(r.high))
    return Markup(
        '<svg class="forest" viewBox="0 0 200 18" role="img" aria-label="{}"><line class="zero" x1="100" y1="0" '
        'x2="100" y2="18"/>{}<circle class="dot" cx="{}" cy="9" r="4"/></svg>'
    ).format(f"{r.mean:+.2f}, {interval_text(row)}", span, at(r.mean))


def _item(one: Moved, a: ScoredItems, b: ScoredItems) -> dict[str, Any]:
    scenario, asked = a.scenarios.get(one.a.id) or b.scenarios.get(one.b.id), None
    if scenario is not None:
        inputs, references = [(name, input_text(value)) for name, value in scenario.inputs.items()], scenario.references
    else:
        asked = a.input_of(one.a.id) or b.input_of(one.b.id)
        inputs, references = (list(asked.messages), asked.references) if asked else ([], ())
    return {
        "id": printable(one.id),
        "subtask": SUBTASKS[one.subtask].title if one.subtask else "",
        "difference": f"{one.difference:+.2f}",
        "a": f"{one.a.value:.2f}",
        "b": f"{one.b.value:.2f}",
        "answers_a": [printable_lines(text) or "(empty)" for text in one.a.answers],
        "answers_b": [printable_lines(text) or "(empty)" for text in one.b.answers],
        "references": [printable_lines(text) for text in references],
        "inputs": [(name, printable_lines(text)) for name, text in inputs],
    }
