"""Quantiles and tail probabilities of the normal, Student's t and the binomial distribution, and Wilson's interval."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
UPPER = (1 + CONFIDENCE) / 2  # the probability below the upper end of a two-sided interval
Interval = tuple[float, float]


def z_quantile(p: float = UPPER) -> float:
    """Return the quantile of the normal distribution."""
    # Imported here because it takes a quarter of a second, and many commands compute no interval.
    from scipy.special import ndtri

    return float(ndtri(p))


def t_quantile(df: float, p: float = UPPER) -> float:
    """Return the quantile of Student's t; `df` is above 0 and need not be whole."""
    from scipy.special import stdtrit

    return float(stdtrit(df, p))


def binomial_tail(count: int, of: int, share: float) -> float:
    """Return the probability of `count` or more successes among `of`, each with probability `share`."""
    from scipy.special import betainc

    if count <= 0:
        return 1.0
    if count > of:
        return 0.0
    return float(betainc(count, of - count + 1, share))


def wilson_interval(share: float, n: float, t: float | None = None) -> Interval:
    """Return Wilson's interval of a share of n, in [0, 1] (E. B. Wilson, JASA 22(158), 1927).

    Args:
        share: the observed share, 0 to 1.
        n: the number of answers, above 0; an effective number need not be whole.
        t: the quantile; by default the normal one of 95 %.
    """
    t = z_quantile() if t is None else t
    centre, scale = share + t * t / (2 * n), 1 + t * t / n
    half = t * math.sqrt(share * (1 - share) / n + t * t / (4 * n * n))
    # Rounding must not put the share outside.
    return max(0.0, min(share, (centre - half) / scale)), min(
        1.0, max(share, (centre + half) / scale)
    )
