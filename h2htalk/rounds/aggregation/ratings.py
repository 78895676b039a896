"""Mean of a few ratings of one item, with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.distributions import CONFIDENCE, Interval, t_quantile


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean of ratings.

    Attributes:
        value: the mean.
        interval: 95 % confidence interval; None for one rating, and for equal ratings without a scale.
    """

    value: float
    interval: Interval | None


def mean_of(values: Sequence[int], scale: tuple[int, int] | None = None) -> Mean:
    """Return the mean of ratings with a 95 % interval for the mean of the population of annotators.

    The interval is Student's t if ratings differ. Equal ratings have no spread, but they are no certainty. Then the
    interval assumes that a share of 1 - 0.05^(1/n) of the population (0.63 for three ratings, 0.14 for twenty) rates at
    the ends of the scale: with that share, n equal ratings still occur in 5 % of panels. On simulated panels of 2 to 20
    people at least 92 % of the intervals contain the population's mean.

    Args:
        values: whole numbers, at least one, in any order.
        scale: smallest and largest possible rating; limits the interval. None: unknown.

    Raises:
        ValueError: there are no ratings, or one is outside the scale.
    """
    n = len(values)
    if not n or (scale and not scale[0] <= min(values) <= max(values) <= scale[1]):
        raise ValueError(f"mean_of needs ratings within the scale {scale}, not {list(values)[:5]}")
    total = sum(values)
    value = total / n
    if n == 1:
        return Mean(value, None)
    # Whole numbers until the last step are exact, and so independent of the order.
    spread = math.sqrt((n * sum(one * one for one in values) - total * total) / (n * (n - 1)))
    if not spread:
        return Mean(value, _interval_of_equal(value, n, scale))
    half = t_quantile(n - 1) * spread / math.sqrt(n)
    low, high = scale or (-math.inf, math.inf)
    return Mean(value, (max(value - half, low), min(value + half, high)))


def _interval_of_equal(value: float, n: int, scale: tuple[int, int] | None) -> Interval | None:
    if scale is None:
        return None
    others = 1 - (1 - CONFIDENCE) ** (1 / n)
    return value - others * (value - scale[0]), value + others * (scale[1] - value)
