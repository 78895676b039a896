"""A calibration as tables for the terminal and for a paper, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from h2htalk.benchmark.calibration.calibrate import Calibration
from h2htalk.benchmark.calibration.correction import ALL_LABELLED, POINTS, Correction
from h2htalk.benchmark.judge.corrected_cells import ALL_LEVELS
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted
from h2htalk.text.tables import Table


def to_json(found: Calibration) -> str:
    """Everything, figures in full."""
    return json.dumps(asdict(found), ensure_ascii=False, indent=2)


def to_terminal(found: Calibration) -> str:
    """The calibration for the terminal: three tables, and notes."""
    raters = f" by {counted(found.annotators, 'annotator')}" if found.annotators else ""
    labelled = f"{found.labelled} of {counted(found.items, 'judged item')} labelled{raters}; drawn {found.drawn}"
    agreement = [(one.measure, number(one.value), interval(one.low, one.high), one.n) for one in found.agreement]
    bias = [
        (one.name, number(one.value, "+"), interval(one.low, one.high, "+"), one.n, one.method) for one in found.bias
    ]
    corrected = ("corrected mean", "judge", "corrected", "these items", "such items", "labels", "estimator")
    notes = (
        "Intervals: agreement by 1,000 seeded draws of items; corrected means of these items alone, and of items",
        "of this kind, which the run's tables show (20 J).",
        *found.notes,
    )
    tables = (
        Table("", ("agreement", "value", "95 % interval", "n"), agreement),
        Table("", ("judge minus people", "value", "95 % interval", "n", "method"), bias),
        Table("", corrected, [row for one in found.corrections for row in _correction(one)], notes),
    )
    head = f"{found.run}, judged by {', '.join(found.judges)}\n{labelled}"
    return "\n\n".join([head, *(table.to_terminal() for table in tables)])


def _correction(one: Correction) -> Iterator[tuple[str, ...]]:
    title = SUBTASKS[one.group].title if one.group in SUBTASKS else one.group.title()
    title = "Levels I to III" if one.group == ALL_LEVELS else title
    name = one.figure if one.group == POINTS else f"{title}, {one.figure}"
    labels, most = f"{one.labels}/{one.items}", 1.0 if one.group == POINTS else 5.0
    if (m := one.mean) is None:
        yield name, number(one.own), "refused", "", "", labels, one.estimator
    else:
        here, over = interval(m.low_here, m.high_here, most=most), interval(m.low, m.high, most=most)
        here = "exact" if one.estimator == ALL_LABELLED and m.low_here is not None else here
        yield name, number(one.own), number(m.value), here, over, labels, one.estimator
    if one.raters is not None:
        yield "", "", "", "", interval(*one.raters), "", "over annotators of this kind too"


def number(value: float | None, sign: str = "") -> str:
    """Format a figure."""
    return "none" if value is None else f"{value:{sign}.2f}"


def interval(low: float | None, high: float | None, sign: str = "", most: float | None = None) -> str:
    """Format an interval; `most`: of values from 0 to so much."""
    if low is None or high is None:
        return "none"
    low, high = (low, high) if most is None else (max(0.0, low), min(most, high))
    return f"[{low:{sign}.2f}, {high:{sign}.2f}]"
