"""A comparison as one HTML page: the figures with their intervals, and the items that moved most, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from h2htalk.benchmark.compare.comparison import Comparison, Moved, Pair, Row
from h2htalk.benchmark.compare.formats import (
    interval_text,
    p_text,
    pair_notes,
    row_texts,
    title_of,
    to_csv,
    to_json,
    to_latex,
)
from h2htalk.benchmark.compare.scored_items import ScoredItems
from h2htalk.data.files import write_text
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.escaping import printable, printable_lines
from h2htalk.text.html_pages import render_page

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
    for pair in comparison.pairs:
        row = pair.headline
        note = f"{interval_text(row) or 'no interval'}, p {p_text(row.p_holm)}"
        label = f"{title_of(row.key)}, {pair.b.label}"
        tiles.append({"label": printable(label), "value": f"{row.result.mean:+.2f}", "note": note})
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
    scale = max(ends, default=1.0)
    return {
        "b": printable(pair.b.label),
        "scale": f"{scale:.0f}",
        "blocks": [[_row(row, scale) for row in rows] for _, rows in groupby(pair.rows, key=lambda row: row.family)],
        "notes": [printable(note) for note in pair_notes(pair)],
        "moved": [_item(one, comparison.a, pair.b) for one in pair.moved[:MOST_MOVED]],
        "of": f"{len(pair.moved):,}",
    }


def _row(row: Row, scale: float) -> dict[str, Any]:
    r = row.result

    def at(value: float) -> float:
        return round(100 + 96 * value / scale, 1)

    return {
        **row_texts(row),
        "line": None if r.low is None or r.high is None else (at(r.low), at(r.high)),
        "at": at(r.mean),
        "shown": row.p_holm < 0.05,
    }


def _item(one: Moved, a: ScoredItems, b: ScoredItems) -> dict[str, Any]:
    scenario = a.scenarios.get(one.a.id) or b.scenarios.get(one.b.id)
    asked = a.input_of(one.a.id) or b.input_of(one.b.id) if scenario is None else None
    inputs = [(role, printable_lines(text)) for role, text in asked.messages] if asked else []
    references = asked.references if asked else scenario.references if scenario else ()
    return {
        "id": printable(one.id),
        "subtask": SUBTASKS[one.subtask].title if one.subtask else "",
        "difference": f"{one.difference:+.2f}",
        "a": f"{one.a.value:.2f}",
        "b": f"{one.b.value:.2f}",
        "answers_a": [printable_lines(text) or "(empty)" for text in one.a.answers],
        "answers_b": [printable_lines(text) or "(empty)" for text in one.b.answers],
        "references": [printable_lines(text) for text in references],
        "inputs": list(_inputs(scenario)) if scenario else inputs,
    }


def _inputs(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for name, value in scenario.to_dict()["inputs"].items():
        if name == "history":
            for turn in scenario.turns:
                yield turn.role, printable_lines(turn.content)
        elif isinstance(value, list):
            lines = (" ".join(map(str, one.values())) if isinstance(one, dict) else str(one) for one in value)
            yield name, "\n".join(map(printable, lines))
        else:
            yield name, printable_lines(str(value))
