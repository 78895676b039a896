"""Where a judged mean's variance comes from: items, answers to an item, judgements of an answer (nested, balanced)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from h2htalk.benchmark.statistics.intervals import t_quantile


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Variances between items, between answers to one item and between judgements of one answer; each 0 or more.

    With one answer an item, `items` holds the variance of answers too and `answers` is 0; with one judgement an answer,
    `answers` (else `items`) holds that of judgements. `error2` is the squared standard error of the mean over items of
    this kind.
    """

    items: float
    answers: float
    judgements: float
    error2: float

    def variance(self, items: float, answers: float, judgements: float) -> float:
        """The squared standard error of a mean over so many items, answers an item and judgements an answer."""
        return (self.items + (self.answers + self.judgements / judgements) / answers) / items


def variance_components(scores: Sequence[Sequence[Sequence[float]]]) -> VarianceComponents:
    """Estimate the components from mean squares (two-level nested analysis of variance).

    Args:
        scores: item -> answer -> judgement, of two items at least, and the same number everywhere.

    Raises:
        ValueError: the numbers differ, or there is one item.
    """
    k, m = len(scores[0]), len(scores[0][0])
    if len(scores) < 2 or {(len(own), len(one)) for own in scores for one in own} != {(k, m)}:
        raise ValueError("two items at least are needed, and equally many answers and judgements everywhere")
    answers = [[fmean(one) for one in own] for own in scores]
    means = [fmean(own) for own in answers]
    mean = fmean(means)
    between = k * m * math.fsum((x - mean) ** 2 for x in means) / (len(scores) - 1)
    pairs = zip(chain.from_iterable(answers), chain.from_iterable(scores), strict=True)
    noise = math.fsum((x - y) ** 2 for y, own in pairs for x in own) / (len(scores) * k * (m - 1)) if m > 1 else 0.0
    squares = m * math.fsum((x - y) ** 2 for y, own in zip(means, answers, strict=True) for x in own)
    within = squares / (len(scores) * (k - 1)) if k > 1 else noise
    return VarianceComponents(
        items=max(0.0, (between - within) / (k * m)),
        answers=max(0.0, (within - noise) / m),
        judgements=noise,
        error2=between / (len(scores) * k * m),
    )


def cheapest(
    found: VarianceComponents, half_width: float, item: float, answer: float, judgement: float, most: int = 20
) -> tuple[int, int, int, float]:
    """The cheapest design whose 95 % interval (t over items) has at most a half width.

    Args:
        found: the components.
        half_width: on the scores' scale.
        item, answer, judgement: what one more of each costs.
        most: answers an item, and judgements an answer, that are tried.

    Returns:
        Items, answers an item, judgements an answer, and what they cost.
    """
    designs = []
    for k in range(1, most + 1):
        for m in range(1, most + 1):
            items = max(2, math.ceil(found.variance(1, k, m) * (1.95996 / half_width) ** 2))
            while t_quantile(items - 1) * math.sqrt(found.variance(items, k, m)) > half_width:
                items += 1
            designs.append((items * (item + k * (answer + m * judgement)), items, k, m))
    cost, items, k, m = min(designs)
    return items, k, m, cost
