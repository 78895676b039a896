"""RecollectionSynthesis's "nothing to remember" as a class of its own: precision, recall, F1.

Most of the authors' references are this one line, so that a model which always prints it scores high: it is
reported apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark.statistics.table2_averages import CONFIDENCE, RESAMPLES, Cell

Floats = npt.NDArray[np.float64]


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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def null_class(pairs: Iterable[tuple[float, bool]], total: int, seed: int = 0) -> NullClass:
    """From `(share of null answers, the reference is null)` of each scored item, in any order.

    Args:
        pairs: one a scored item; the share is 0 or 1 for a single sample.
        total: items asked.
        seed: of the bootstrap over items (1,000 resamples).
    """
    listed = np.array(sorted(pairs), dtype=np.float64).reshape(-1, 2)
    answers, references = listed[:, 0], listed[:, 1]
    hits = answers * references
    n = len(listed)
    picks = np.random.default_rng([seed, n]).integers(0, n, size=(RESAMPLES, n)) if n > 1 else np.empty((0, 0), int)

    def cell(top: Floats, bottom: Floats) -> Cell:
        value = _ratio(top.sum(), bottom.sum())
        if value is None or n < 2:
            return Cell(value, None, None, n, total)
        sums = bottom[picks].sum(axis=1)
        ratios = 100 * top[picks].sum(axis=1)[sums > 0] / sums[sums > 0]
        tail = 100 * (1 - CONFIDENCE) / 2
        low, high = np.percentile(ratios, [tail, 100 - tail])
        return Cell(value, float(low), float(high), n, total)

    return NullClass(
        precision=cell(hits, answers),
        recall=cell(hits, references),
        f1=cell(2 * hits, answers + references),
        references=int(references.sum()),
        answers=float(answers.sum()),
        hits=float(hits.sum()),
    )


def _ratio(top: float, bottom: float) -> float | None:
    return 100 * float(top) / float(bottom) if bottom else None
