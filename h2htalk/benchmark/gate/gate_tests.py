"""The tests of a gate, one-sided: worse than a reference run, beyond a limit, not shown to be non-inferior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from h2htalk.benchmark.statistics.clusters import design_effect
from h2htalk.benchmark.statistics.paired import POWER, Difference, PairedResult, paired_result
from h2htalk.benchmark.studies.figures import is_rate
from h2htalk.benchmark.studies.observations import Observation, scored
from h2htalk.distributions import binomial_tail, t_quantile, z_quantile


@dataclass(frozen=True, slots=True)
class Worsening:
    """How much worse a run is than its reference, in the figure's unit: positive is worse.

    `p`: one-sided, of the sign-flip test by cluster; `low`, `high`: 95 % interval; None where nothing differs.
    """

    value: float
    low: float | None
    high: float | None
    p: float
    items: int
    result: PairedResult


def worsening(reference: Sequence[Observation], run: Sequence[Observation], lower_is_better: bool) -> Worsening | None:
    """Compare a figure at the places that both runs scored; None where there is none."""
    before = {row.key: row.value or 0.0 for row in scored(reference)}
    sign = 1.0 if lower_is_better else -1.0
    pairs = [
        Difference("", row.cluster, sign * ((row.value or 0.0) - before[row.key]))
        for row in scored(run)
        if row.key in before
    ]
    if not pairs:
        return None
    found = paired_result(pairs)
    return Worsening(found.mean, found.low, found.high, _one_sided(found), found.items, found)


def _one_sided(found: PairedResult) -> float:
    """p that the mean is above 0, of the sign-flip test by cluster."""
    return found.p() / 2 if found.mean > 0 else 1 - found.p() / 2


def limit_p(rows: Sequence[Observation], limit: float, lower_is_better: bool) -> float:
    """One-sided p that a figure is beyond a limit: of rates binomial, of means by the sign-flip test of a comparison.

    Values of one cluster are alike, so that they count for fewer: in the binomial test by the ratio of the variance of
    cluster totals to that of as many independent values.
    """
    own = [(row.cluster, row.value or 0.0) for row in scored(rows)]
    if not own:
        return 1.0
    if not is_rate(rows[0].figure):
        sign = 1.0 if lower_is_better else -1.0
        return _one_sided(paired_result([Difference("", name, sign * (value - limit)) for name, value in own]))
    clusters, values = zip(*own, strict=True)
    mean, n = fmean(values), len(own) / design_effect(values, clusters)
    share, most = (mean, limit) if lower_is_better else (1 - mean, 1 - limit)
    return binomial_tail(math.floor(share * n + 1e-9), max(1, round(n)), most)


def worst_p(rows: Sequence[Observation], limit: float, lower_is_better: bool) -> float:
    """The lowest p that `limit_p` could give as many items: were each of them as bad as can be."""
    shift = 1.0 if lower_is_better else -1.0
    worst = float(lower_is_better) if rows and is_rate(rows[0].figure) else limit + shift
    return limit_p([replace(row, value=worst) for row in scored(rows)], limit, lower_is_better)


def highest_worsening(found: Worsening, alpha: float) -> float:
    """The upper end of the one-sided interval of a worsening."""
    error, df = found.result.error, found.result.df
    return found.value if error is None or df is None else found.value + t_quantile(df, 1 - alpha) * error


def non_inferior_items(found: Worsening, margin: float, alpha: float) -> int | None:
    """How many items show four times in five that a run which is no worse is less than `margin` worse."""
    if found.result.error is None:
        return None
    sd = found.result.error * math.sqrt(found.items)
    return math.ceil(((z_quantile(1 - alpha) + z_quantile(POWER)) * sd / margin) ** 2)


def detectable_rise(rate: float, items: int, alpha: float, per_cluster: float = 1.0) -> float | None:
    """The rate to which a rise is found four times in five, with so many items in each run; None: not even to 1."""
    low, high = rate, 1.0
    if items_for_rise(rate, high, alpha, per_cluster) > items:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if items_for_rise(rate, middle, alpha, per_cluster) <= items else (middle, high)
    return high


def items_for_rise(rate: float, risen: float, alpha: float, per_cluster: float = 1.0) -> float:
    """How many items in each run find a rise of a rate four times in five, one-sided.

    The flipped signs give the mean difference the spread of its second moment, the runs that of two binomial
    variances; t has the degrees of freedom of the clusters, of `per_cluster` items each.
    """
    shift = risen - rate
    if shift <= 0:
        return math.inf
    spread, needed = rate * (1 - rate) + risen * (1 - risen), 10.0
    for _ in range(20):  # t depends on the number that is sought
        df = max(2, round(needed / per_cluster) - 1)  # whole, so that its quantiles are computed once
        far = t_quantile(df, 1 - alpha) * math.sqrt(spread + shift**2) + t_quantile(df, POWER) * math.sqrt(spread)
        needed = (needed + (far / shift) ** 2) / 2
    return needed


def detectable_mean(found: Worsening, alpha: float) -> float | None:
    """The worsening of a mean that as many items find four times in five."""
    error, df = found.result.error, found.result.df
    return None if error is None or df is None else (t_quantile(df, 1 - alpha) + t_quantile(df, POWER)) * error
