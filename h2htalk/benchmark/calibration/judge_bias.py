"""What a judge's error depends on: length, language, the model's family, the order of the rubric's qualities.

The error is the judge's score minus people's mean of the same answers, never the score alone: people may prefer long
replies too. Coverage and false alarms: docs/measurements.md, "Judge calibration".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from h2htalk.benchmark.calibration.judged_items import JudgedItem
from h2htalk.benchmark.statistics.intervals import t_quantile
from h2htalk.benchmark.statistics.paired import Difference, paired_result


@dataclass(frozen=True, slots=True)
class Effect:
    """What the judge's error changes by, 0 to 5, with its 95 % interval, from n errors.

    `name` is `mean error`, `length` (a unit of log length), `language NAME`, `own family`, `family NAME
    against NAME`, `reverse order`. `method` is that of the interval, or says why there is none.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str


class FamilyErrors(NamedTuple):
    """The labelled items of one run, the family of its model and those of its judges."""

    family: str
    judges: Sequence[str]
    items: Sequence[JudgedItem]


def error_effects(
    errors: Sequence[float],
    columns: Mapping[str, Sequence[float]],
    clusters: Sequence[str],
    groups: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> list[Effect]:
    """Regress errors on columns by least squares, with t intervals that allow uneven noise (HC3).

    Where clusters hold several errors, the interval is HC3's form that leaves out a cluster at a time (CR3).

    Args:
        errors: of the judge.
        columns: name -> a value for each error.
        clusters: of each error.
        weights: of each error, how many items it stands for; equal ones when left out.
        groups: of each error: a fixed effect each; a group lies in one cluster. Without them there is a mean error.
    """
    y, x = np.array(errors, float), np.array(list(columns.values()), float).T
    w = np.ones(len(y)) if weights is None else np.array(weights, float)
    names = [*(["mean error"] if groups is None else []), *columns]
    if groups is None:
        x = np.column_stack([np.ones(len(y)), x - np.average(x, axis=0, weights=w)])
    else:
        _, at = np.unique(np.array(groups), return_inverse=True)
        y, *centred = (one - (np.bincount(at, one) / np.bincount(at))[at] for one in (y, *x.T))
        x = np.column_stack(centred)
    root = np.sqrt(w / w.mean())
    y, x = y * root, x * root[:, None]
    _, cluster = np.unique(np.array(clusters), return_inverse=True)
    df = int(cluster.max()) + 1 - x.shape[1]
    if df < 1 or np.linalg.matrix_rank(x) < x.shape[1]:
        return [Effect(name, None, None, None, len(y), "the labels cannot tell these effects apart") for name in names]
    inverse = np.linalg.inv(x.T @ x)
    slopes = inverse @ x.T @ y
    residuals, meat = y - x @ slopes, np.zeros_like(inverse)
    for own in np.split(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster))[:-1]):
        left = np.eye(len(own)) - x[own] @ inverse @ x[own].T
        if np.linalg.eigvalsh(left)[0] < 1e-9:
            return [Effect(name, None, None, None, len(y), "one item alone decides an effect") for name in names]
        score = x[own].T @ np.linalg.solve(left, residuals[own])
        meat += np.outer(score, score)
    half = t_quantile(df) * np.sqrt(np.diag(inverse @ meat @ inverse))
    method = f"{'HC3' if len(set(clusters)) == len(y) else 'CR3'}, t({df})"
    found = zip(names, slopes.tolist(), half.tolist(), strict=True)
    return [Effect(name, b, b - h, b + h, len(y), method) for name, b, h in found]


def run_bias(items: Sequence[JudgedItem]) -> list[Effect]:
    """The mean error of labelled items, and what it changes by length and language."""
    columns = {"length": [one.length for one in items]}
    for name in sorted({one.language for one in items})[1:]:
        columns[f"language {name}"] = [float(one.language == name) for one in items]
    weights = [one.weight for one in items]
    return error_effects([one.error for one in items], columns, [one.cluster for one in items], weights=weights)


def family_bias(runs: Sequence[FamilyErrors]) -> list[Effect]:
    """What the error changes by length and model family within an item, over runs of several models.

    Where a judge shares the family of some models, `own family` is its self-preference; otherwise each family is
    compared with the first by name.
    """
    # A row for each judge: their self-preferences differ.
    rows = [
        (run.family, judge, one.panel[at] - (one.people or 0.0), one, f"{one.id}/{at}")
        for run in runs
        for at, judge in enumerate(run.judges)
        for one in run.items
    ]
    columns = {"length, within items": [one.length for *_, one, _ in rows]}
    own = [float(family == judge) for family, judge, *_ in rows]
    if len(set(own)) > 1:
        columns["own family"] = own
    else:
        first, *others = sorted({run.family for run in runs})
        for name in others:
            columns[f"family {name} against {first}"] = [float(family == name) for family, *_ in rows]
    errors, clusters = [error for _, _, error, *_ in rows], [one.cluster for *_, one, _ in rows]
    weights = {one.id: one.weight for one in runs[0].items}  # of one group all the same, so that its mean is taken off
    own_weights = [weights.get(one.id, 1.0) for *_, one, _ in rows]
    return error_effects(errors, columns, clusters, [group for *_, group in rows], own_weights)


def order_bias(items: Mapping[str, JudgedItem], reverse: Mapping[str, JudgedItem]) -> Effect:
    """What reversing the rubric's qualities adds to the score of an item; no labels are needed."""
    both = [
        Difference("", one.cluster, reverse[item].score - one.score) for item, one in items.items() if item in reverse
    ]
    found = paired_result(both)
    return Effect("reverse order", found.mean, found.low, found.high, found.items, "CR1 by cluster")
