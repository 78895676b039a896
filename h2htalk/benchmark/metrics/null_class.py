"""RecollectionSynthesis's "nothing to remember" as a class of its own: precision, recall, F1.

Most of the authors' references are this one line, so that a model which always prints it scores high: it is
reported apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from h2htalk.benchmark.statistics.intervals import rate_interval
from h2htalk.benchmark.statistics.table2_averages import Cell


@dataclass(frozen=True, slots=True)
class NullClass:
    """Precision, recall and F1 of the null line, on the 0-100 scale, n scored items of `total` asked.

    A value is None where nothing was (or should have been) null. `references`, `answers` and `hits` count items with a
    null reference, a null answer, and both; an item with several samples counts by their share.
    """

    precision: Cell
    recall: Cell
    f1: Cell
    references: int
    answers: float
    hits: float


def null_class(pairs: Iterable[tuple[float, bool]], total: int) -> NullClass:
    """From `(share of null answers, the reference is null)` of each scored item, in any order.

    Precision and recall have Wilson's interval of a rate; F1 that of J, the share of items that are null in both
    among those that are in either, since F1 = 2J / (1 + J).

    Args:
        pairs: one a scored item; the share is 0 or 1 for a single sample.
        total: items asked.
    """
    listed = list(pairs)
    answers, references = math.fsum(share for share, _ in listed), sum(null for _, null in listed)
    hits = math.fsum(share for share, null in listed if null)

    def cell(hits: float, of: float, change: Callable[[float], float] = float) -> Cell:
        if not of:
            return Cell(None, None, None, len(listed), total)
        value, low, high = (100 * change(rate) for rate in (hits / of, *rate_interval(hits, of)))
        return Cell(value, low, high, len(listed), total) if len(listed) > 1 else Cell(value, None, None, 1, total)

    return NullClass(
        precision=cell(hits, answers),
        recall=cell(hits, references),
        f1=cell(hits, answers + references - hits, lambda j: 2 * j / (1 + j)),
        references=references,
        answers=answers,
        hits=hits,
    )
