"""What a gate's tests can find: p of limits, the worsening that so many items find, and the items that it needs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from h2htalk.benchmark.observations import Observation, effect_of, is_rate, scored
from h2htalk.benchmark.statistics.paired_tests import POWER, Difference, PairedResult, paired_result
from h2htalk.distributions import binomial_tail, t_quantile, z_quantile


def worsening_sign(lower_is_better: bool) -> float:
    """By what a change is multiplied, so that a positive one is a worsening."""
    return 1.0 if lower_is_better else -1.0


def limit_p(rows: Sequence[Observation], limit: float, lower_is_better: bool) -> float:
    """One-sided p that a figure is beyond a limit: of rates binomial, of means by the sign-flip test of a comparison.

    Values of one cluster are alike, so that they count for fewer: in the binomial test by the ratio of the variance of
    cluster totals to that of as many independent values.
    """
    valued = scored(rows)
    if not valued:
        return 1.0
    values = [row.value or 0.0 for row in valued]
    if not is_rate(rows[0].figure):
        sign = worsening_sign(lower_is_better)
        beyond = []
        for row, value in zip(valued, values, strict=True):
            beyond.append(Difference("", row.cluster, sign * (value - limit)))
        return paired_result(beyond).p(above=True)
    mean = fmean(values)
    n = len(valued) / effect_of(valued)
    share = mean if lower_is_better else 1 - mean
    most = limit if lower_is_better else 1 - limit
    return binomial_tail(math.floor(share * n + 1e-9), max(1, round(n)), most)


def worst_p(rows: Sequence[Observation], limit: float, lower_is_better: bool) -> float:
    """The lowest p that `limit_p` could give as many items: were each of them as bad as can be."""
    worst = limit + worsening_sign(lower_is_better)
    if rows and is_rate(rows[0].figure):
        worst = float(lower_is_better)
    return limit_p([replace(row, value=worst) for row in scored(rows)], limit, lower_is_better)


def detectable_rise(
    rate: float, items: int, alpha: float, per_cluster: float = 1.0
) -> float | None:
    """The rate to which a rise is powered four times in five, with so many items in each run; None: not even to 1."""
    steps = 1 << 40

    def is_found(step: int) -> bool:
        return items_for_rise(rate, rate + (1 - rate) * step / steps, alpha, per_cluster) <= items

    step = bisect_left(range(steps + 1), True, key=is_found)
    return None if step > steps else rate + (1 - rate) * step / steps


def items_for_rise(rate: float, risen: float, alpha: float, per_cluster: float = 1.0) -> float:
    """How many items in each run find a rise of a rate four times in five, one-sided.

    The flipped signs give the mean difference the spread of its second moment, the runs that of two binomial
    variances; t has the degrees of freedom of the clusters, of `per_cluster` items each.
    """
    shift = risen - rate
    if shift <= 0:
        return math.inf
    spread = rate * (1 - rate) + risen * (1 - risen)
    needed = 10.0
    for _ in range(20):  # t depends on the number that is sought
        df = max(
            2, round(needed / per_cluster) - 1
        )  # whole, so that its quantiles are computed once
        significant = t_quantile(df, 1 - alpha) * math.sqrt(spread + shift**2)
        powered = t_quantile(df, POWER) * math.sqrt(spread)
        needed = (needed + ((significant + powered) / shift) ** 2) / 2
    return needed


def detectable_shift(worse: PairedResult, alpha: float) -> float | None:
    """The worsening of a mean that as many items find four times in five; None where none of them varies."""
    if not worse.error or worse.df is None:
        return None
    return (t_quantile(worse.df, 1 - alpha) + t_quantile(worse.df, POWER)) * worse.error


def upper_end(worse: PairedResult, alpha: float) -> float:
    """The upper end of a worsening's one-sided interval."""
    if worse.error is None or worse.df is None:
        return worse.mean
    return worse.mean + t_quantile(worse.df, 1 - alpha) * worse.error


def items_for_margin(worse: PairedResult, margin: float, alpha: float) -> int | None:
    """How many items show four times in five that a run that is no worse is less than a margin worse.

    None where no difference varies.
    """
    if not worse.error or worse.df is None:
        return None
    sd = worse.error * math.sqrt(worse.items)
    return math.ceil(((z_quantile(1 - alpha) + z_quantile(POWER)) * sd / margin) ** 2)
