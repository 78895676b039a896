"""The sign-flip test of a mean of clusters, and the interval that the same test gives.

A cluster with total t and weight w adds t - d w to the mean less d, where weights sum to 1. The test of "the mean is d"
flips the signs of these parts. With signs s the flipped sum is A - d B, where A = sum(s t) and B = sum(s w); the
observed one is M - d. So signs s give a sum at least as far from 0 where

    (A - M + d (1 - B)) (A + M - d (1 + B)) >= 0,

which is between d = (M - A) / (1 - B) and d = (M + A) / (1 + B), an interval that holds M. Thus p falls to both sides
of M, and the ends of the 95 % interval are order statistics of the ends of these intervals. It holds 0 exactly where p
of the test of 0 is .05 or more, because both count the same signs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

FLIPS = 10_000
EXACT = 12  # clusters up to which all sign flips are tried
SIGNS_AT_ONCE = 1 << 21  # signs drawn at once
_ONE_THREAD = 1 << 18  # multiplications of a product that OpenBLAS does not share among threads
_DEEP = 256  # clusters up to which it sums in one piece, so that no digit depends on how a product is split
LEVEL = 0.05  # an interval holds what is not rejected at this level
_SAME = 1e-12  # relative: sums that differ by less are equal
# Relative: differences that vary by less are equal but for rounding. Scores of 32 bits round at 6e-8 of their own size.
EQUAL = 1e-5
NO_INTERVAL = (
    "no interval where all differences are equal, which does not say how much others would vary, or with fewer than "
    "six clusters: no test of so few rejects any"
)
_LEAST = float(np.nextafter(0.0, 1.0))  # the smallest number above 0


@dataclass(frozen=True, slots=True)
class SignFlips:
    """Two-sided p of the test that a mean is 0, and the 95 % interval of the mean.

    The ends are None where no value could be rejected, as with fewer than six clusters, and where all differences are
    equal: the test then rejects every other value, although nothing is known of how they vary.
    """

    p: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class _Sums:
    """The sums of totals (A) and of weights (B) under flipped signs."""

    totals: Values
    weights: Values
    drawn: bool  # whether the signs were drawn: then the observed ones count as one more

    def p(self, reached: int) -> float:
        """The p value where so many of the sums are as far from 0 as the observed one."""
        number = len(self.totals)
        return (reached + 1) / (number + 1) if self.drawn else reached / number

    @property
    def least_kept(self) -> int:
        """How many of the sums must be as far from 0, so that a value is not rejected."""
        kept = max(0, math.floor(LEVEL * len(self.totals)) - 2)
        while self.p(kept) < LEVEL:
            kept += 1
        return kept


def sign_flip_p(totals: Values) -> float:
    """Two-sided p of the test that flips the signs of cluster totals.

    All flips up to 12 clusters, else 10,000 seeded ones and the observed one, so that p is never 0.
    """
    others = totals[totals != 0]
    if not len(others):
        return 1.0
    least = _least_sum(others)
    if len(others) <= EXACT:
        sums = _all_signs(len(others)) @ others
        return float((np.abs(sums) >= least).mean())
    reached = 0
    for signs in _drawn_signs(len(others)):
        reached += int((np.abs(signs @ others) >= least).sum())
    return (reached + 1) / (FLIPS + 1)


@lru_cache(maxsize=1024)
def sign_flips(totals: tuple[float, ...], weights: tuple[float, ...]) -> SignFlips:
    """Test and interval of the mean to which each cluster adds a total; `weights`: of each cluster, summing to 1."""
    t = np.array(totals)
    w = np.array(weights)
    moving = t != 0
    if not moving.any():
        return SignFlips(1.0, None, None)
    sums = _flipped_sums(t, w, moving)
    mean = math.fsum(totals)
    reached = np.abs(sums.totals) >= _least_sum(t[moving])
    low, high = _kept_between(sums, mean, reached)
    p = sums.p(int(reached.sum()))
    width = high - low
    if math.isinf(width) or width <= EQUAL * abs(mean):
        return SignFlips(p, None, None)
    return SignFlips(p, float(low), float(high))


def _least_sum(totals: Values) -> float:
    """The sum from which on a flipped one counts as far from 0 as the observed one."""
    return abs(math.fsum(totals)) * (1 - _SAME)


def _kept_between(sums: _Sums, mean: float, reached: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """The least and the highest value that the test does not reject; `reached`: which signs count for the value 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = (mean - sums.totals) / (1 - sums.weights)
        second = (mean + sums.totals) / (1 + sums.weights)
    lows = np.minimum(first, second)
    highs = np.maximum(first, second)
    # Signs that are all alike give the observed sum itself, whatever the value is.
    alike = 1 - np.abs(sums.weights) <= _SAME
    lows[alike], highs[alike] = -np.inf, np.inf
    # Rounding must not part the interval from the test of 0.
    lows = np.where(reached, np.minimum(lows, 0.0), lows)
    highs = np.where(reached, np.maximum(highs, 0.0), highs)
    if mean > 0:
        lows = np.where(reached, lows, np.maximum(lows, _LEAST))
    else:
        highs = np.where(reached, highs, np.minimum(highs, -_LEAST))
    kept = sums.least_kept
    low = np.partition(lows, kept - 1)[kept - 1]
    high = np.partition(highs, len(highs) - kept)[len(highs) - kept]
    return float(low), float(high)


def _flipped_sums(totals: Values, weights: Values, moving: npt.NDArray[np.bool_]) -> _Sums:
    """The sums under all signs, or under drawn ones; `moving`: which totals are not 0."""
    if len(totals) <= EXACT:
        signs = _all_signs(len(totals))
        return _Sums(signs @ totals, signs @ weights, drawn=False)
    still = weights[~moving]
    if moving.sum() <= EXACT:
        # All signs of the totals, so that p is exact, and with each of them drawn signs of those that are 0.
        patterns = _all_signs(int(moving.sum()))
        repeats = -(-FLIPS // len(patterns))
        sums = np.repeat(patterns @ totals[moving], repeats)
        of_weights = np.repeat(patterns @ weights[moving], repeats)
        return _Sums(sums, of_weights + _still_sums(still, len(sums)), drawn=False)
    blocks = list[Values]()
    both = np.column_stack([totals[moving], weights[moving]])
    for signs in _drawn_signs(len(both)):
        blocks.append(flipped_products(signs, both))
    of_totals, of_weights = np.concatenate(blocks).T
    return _Sums(of_totals, of_weights + _still_sums(still, FLIPS), drawn=True)


def _still_sums(weights: Values, number: int) -> Values:
    """Sums of the weights of clusters whose totals are 0, under signs of a stream of their own."""
    if not len(weights):
        return np.zeros(number)
    return np.concatenate([signs @ weights for signs in _drawn_signs(len(weights), number, seed=1)])


def _all_signs(number: int) -> Values:
    """Every row of signs whose first is positive; the others have the same sums, negated."""
    return np.array([(1.0, *signs) for signs in product((-1.0, 1.0), repeat=number - 1)])


def _drawn_signs(columns: int, number: int = FLIPS, seed: int = 0) -> Iterator[Values]:
    """Yield seeded rows of signs, as many at once as fit."""
    rng = np.random.default_rng(seed)
    rows = max(1, SIGNS_AT_ONCE // columns)
    for start in range(0, number, rows):
        bits = rng.integers(0, 2, size=(min(rows, number - start), columns), dtype=np.int8)
        yield np.asarray(2.0 * bits - 1, np.float64)


def flipped_products(signs: Values, sums: Values) -> Values:
    """Multiply rows of signs with columns of sums, a few rows at a time where that gives the same digits.

    A whole product is shared among threads, and those that are done wait busily, longer than the product takes.
    """
    if len(sums) > _DEEP:
        return signs @ sums
    blocks = np.array_split(signs, len(signs) * sums.size // _ONE_THREAD + 1)
    return np.concatenate([rows @ sums for rows in blocks])
