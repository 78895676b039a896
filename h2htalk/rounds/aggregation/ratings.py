"""Ratings of one item by a few people: their mean, and how sure of it they let us be."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
# Student's t, 97.5th percentile, for 1 to 30 degrees of freedom.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean of ratings.

    Attributes:
        value: the mean.
        interval: 95 %; None where nothing can be said: of one rating, and of equal ones without their scale.
    """

    value: float
    interval: tuple[float, float] | None


def mean_of(values: Sequence[int], scale: tuple[int, int] | None = None) -> Mean:
    """The mean of ratings with a 95 % interval for the mean of all people who might have been asked.

    Student's t where ratings differ. Equal ratings have no spread, and "5, 5, 5" is no certainty: others may see it
    otherwise. So many others that n equal ratings would still be seen in 5 % of panels, a share of 1 - 0.05^(1/n)
    (0.63 of three, 0.14 of twenty), are then taken to stand at the scale's ends. On simulated panels of 2 to 20 people
    at least 92 % of the intervals hold the mean of all.

    Args:
        values: whole ratings, at least one, in any order.
        scale: least and largest rating there is; intervals end there. None: unknown.

    Raises:
        ValueError: no ratings, or one outside the scale.
    """
    n = len(values)
    if not n or (scale and not scale[0] <= min(values) <= max(values) <= scale[1]):
        raise ValueError(f"mean_of needs ratings on the scale {scale}, not {list(values)[:5]}")
    total = sum(values)
    value = total / n
    if n == 1:
        return Mean(value, None)
    # Whole numbers until the last step: exact, and so the same in any order.
    spread = math.sqrt((n * sum(one * one for one in values) - total * total) / (n * (n - 1)))
    if not spread:
        return Mean(value, _of_equal(value, n, scale))
    half = t_quantile(n - 1) * spread / math.sqrt(n)
    low, high = scale or (-math.inf, math.inf)
    return Mean(value, (max(value - half, low), min(value + half, high)))


def _of_equal(value: float, n: int, scale: tuple[int, int] | None) -> tuple[float, float] | None:
    if scale is None:
        return None
    others = 1 - (1 - CONFIDENCE) ** (1 / n)
    return value - others * (value - scale[0]), value + others * (scale[1] - value)


def t_quantile(freedom: int) -> float:
    """The 97.5th percentile of Student's t with so many degrees of freedom (1 or more), within 0.001.

    A table to 30, then the expansion around the normal quantile (Abramowitz and Stegun 26.7.5).
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2
