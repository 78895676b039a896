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

_LINE = "{:32}{:>7}  {:<16}{:>6}  {}"
_ROW = "{:24}{:>7}{:>10}  {:<15}{:<15}{:>9}  {}"


def to_json(found: Calibration) -> str:
    """Everything, figures in full."""
    return json.dumps(asdict(found), ensure_ascii=False, indent=2)


def to_lines(found: Calibration) -> Iterator[str]:
    """The calibration for the terminal: three tables, and notes."""
    yield f"{found.run}, judged by {', '.join(found.judges)}"
    raters = f" by {counted(found.annotators, 'annotator')}" if found.annotators else ""
    yield f"{found.labelled} of {counted(found.items, 'judged item')} labelled{raters}; drawn {found.drawn}"
    yield "\n" + _LINE.format("Agreement", "value", "95 % interval", "n", "")
    for one in found.agreement:
        yield _LINE.format(one.measure, number(one.value), interval(one.low, one.high), one.n, "").rstrip()
    yield "\n" + _LINE.format("Judge minus people", "value", "95 % interval", "n", "method")
    for effect in found.bias:
        ends = interval(effect.low, effect.high, "+")
        yield _LINE.format(effect.name, number(effect.value, "+"), ends, effect.n, effect.method)
    yield "\n" + _ROW.format("Corrected mean", "judge", "corrected", "these items", "such items", "labels", "estimator")
    for mean in found.corrections:
        yield _correction(mean)
        if mean.raters is not None:
            yield _ROW.format("", "", "", "", interval(*mean.raters), "", "over annotators of this kind too")
    yield "\nIntervals: agreement by 1,000 seeded draws of items; corrected means of these items alone, and of items"
    yield "of this kind, which the run's tables show (20 J)."
    yield from found.notes


def _correction(one: Correction) -> str:
    title = SUBTASKS[one.group].title if one.group in SUBTASKS else one.group.title()
    title = "Levels I to III" if one.group == ALL_LEVELS else title
    name = one.figure if one.group == POINTS else f"{title}, {one.figure}"
    labels, most = f"{one.labels}/{one.items}", 1.0 if one.group == POINTS else 5.0
    if (m := one.mean) is None:
        return _ROW.format(name, number(one.own), "refused", "", "", labels, one.estimator)
    here, over = interval(m.low_here, m.high_here, most=most), interval(m.low, m.high, most=most)
    here = "exact" if one.estimator == ALL_LABELLED and m.low_here is not None else here
    return _ROW.format(name, number(one.own), number(m.value), here, over, labels, one.estimator)


def number(value: float | None, sign: str = "") -> str:
    """Format a figure."""
    return "none" if value is None else f"{value:{sign}.2f}"


def interval(low: float | None, high: float | None, sign: str = "", most: float | None = None) -> str:
    """Format an interval; `most`: of values from 0 to so much."""
    if low is None or high is None:
        return "none"
    low, high = (low, high) if most is None else (max(0.0, low), min(most, high))
    return f"[{low:{sign}.2f}, {high:{sign}.2f}]"
