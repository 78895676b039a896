"""Where a judged mean's variance comes from: items, answers to an item, judgements of an answer (nested, balanced)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from h2htalk.benchmark.statistics.intervals import t_quantile

MOST = 20  # answers an item, and judgements an answer, of a design


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
    found: VarianceComponents, half_width: float, item: float, answer: float, judgement: float
) -> tuple[int, int, int, float]:
    """The cheapest design whose 95 % interval (t over items) has at most a half width.

    Answers an item and judgements an answer, at most 20, are whole numbers beside their best values in closed form.
    With few items, whose number is rounded up, others can cost less.

    Args:
        found: the components.
        half_width: on the scores' scale, 0.001 or more.
        item, answer, judgement: what one more of each costs.

    Returns:
        Items, answers an item, judgements an answer, and what they cost.
    """
    designs, several = [], {1, MOST, *_near(answer * found.judgements, judgement * found.answers)}
    best = [
        _near(item * (found.answers + found.judgements / m), found.items * (answer + m * judgement)) for m in several
    ]
    for k in {1, MOST}.union(*best):
        for m in _near((item / k + answer) * found.judgements, judgement * (k * found.items + found.answers)):
            one = found.variance(1, k, m)
            least = max(2, math.ceil(one * (t_quantile(math.inf) / half_width) ** 2))
            # t asks for at most three items more than the normal quantile.
            items = next(n for n in range(least, least + 4) if t_quantile(n - 1) * math.sqrt(one / n) <= half_width)
            designs.append((items * (item + k * (answer + m * judgement)), items, k, m))
    cost, items, k, m = min(designs)
    return items, k, m, cost


def _near(gain: float, price: float) -> set[int]:
    """The whole numbers, 1 to MOST, on both sides of the root of gain by price."""
    best = int(min(MOST, math.sqrt(gain / price))) if price else MOST if gain else 1
    return {max(1, best), min(MOST, best + 1)}
