"""The mean that people would give, from a judge's scores of all items and people's labels of some (in closed form).

A judge's own mean is biased, and its interval leaves the judge's error out. Here the mean error on the labelled items
is taken off: `stratified` where `draw_labels` chose the items, `regression` where they are a simple random sample
(Angelopoulos et al. 2023, arXiv 2301.09633, with t and, for the stratified form, Cochran's variance). Measured
coverage: docs/measurements.md, "Judge statistics".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, variance
from typing import NamedTuple

from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.distributions import t_quantile
from h2htalk.errors import counted

CUTS = (
    0.12,
    0.4,
    0.7,
)  # ranks by judge score at which strata end: rare large errors lie among the low scores


class CorrectedEstimates(NamedTuple):
    """A mean on the labels' scale, over n labelled of so many items; without intervals where the errors do not vary.

    Attributes:
        population: with the interval of the mean over items of this kind, the safe default.
        sample: with that of the mean of these very items.
    """

    population: Estimate
    sample: Estimate


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """An item of which the judges rated every answer (`score`), and what people said of some or all of its answers.

    `people` is their mean over answers and annotators, None where nobody rated it, `panel` each judge's mean of the
    same answers; `whole`: people rated all of them. `length` is the mean log of the replies' characters, `weight` the
    number of items that it stands for.
    """

    id: str
    subtask: str
    cluster: str
    score: float
    s: float | None
    length: float
    people: float | None = None
    panel: tuple[float, ...] = ()
    whole: bool = True
    weight: float = 1.0

    @property
    def error(self) -> float:
        """The judges' mean minus people's, of the same answers; 0 where nobody rated it."""
        return 0.0 if self.people is None else fmean(self.panel) - self.people


def strata_of(scores: Sequence[float], seed: int = 0) -> list[int]:
    """Number the stratum (0 to 3) of each item: cut by rank of the judge's score, ties in random order."""
    rng = Random(seed)
    order = sorted(range(len(scores)), key=lambda at: (scores[at], rng.random()))
    strata = [0] * len(scores)
    for rank, at in enumerate(order):
        strata[at] = sum(rank >= round(cut * len(scores)) for cut in CUTS)
    return strata


def draw_labels(scores: Sequence[float], labels: int, seed: int = 0) -> list[int]:
    """Draw the items that people should label, by the judge's scores: sorted positions, a quarter at random
    in each stratum; one with fewer items gives the rest to others."""
    rng = Random(seed)
    strata = strata_of(scores, seed)
    groups = [
        [at for at, number in enumerate(strata) if number == stratum]
        for stratum in range(len(CUTS) + 1)
    ]
    counts: list[int] = []
    for own in groups:
        counts.append(min(len(own), round((labels - sum(counts)) / (len(groups) - len(counts)))))
    for stratum, own in enumerate(groups):  # what the last ones could not take
        counts[stratum] += min(len(own) - counts[stratum], labels - sum(counts))
    return sorted(
        at for own, count in zip(groups, counts, strict=True) for at in rng.sample(own, count)
    )


def stratified(
    scores: Sequence[float],
    labels: Mapping[int, float],
    strata: Sequence[object],
    effect: float = 1.0,
) -> CorrectedEstimates:
    """Correct the judge's mean by the mean error in each stratum, which needs two labels or all.

    Args:
        labels: position -> people's rating.
        effect: the `design_effect` of items that share a cluster, on the interval over items of this kind.
    """
    items = len(scores)
    n = len(labels)
    error = 0.0
    spread = 0.0
    df = 0
    weights: dict[int, float] = {}  # of a label: the share of items that it stands for
    for stratum in sorted(set(strata), key=str):
        own = [at for at in labels if strata[at] == stratum]
        size = strata.count(stratum)
        if len(own) < min(2, size):
            raise ValueError(
                f"a stratum of {counted(size, 'item')} has {counted(len(own), 'label')}, and two are needed"
            )
        weight = size / items
        errors = [labels[at] - scores[at] for at in own]
        error += weight * fmean(errors)
        if len(own) < size:
            spread += weight**2 * (1 - len(own) / size) * variance(errors) / len(own)
            df += len(own) - 1
        weights |= dict.fromkeys(own, weight / len(own))
    mean = math.fsum(weights[at] * labels[at] for at in labels)
    beyond = (
        math.fsum(weights[at] * (labels[at] - mean) ** 2 for at in labels)
        * n
        / max(1, n - 1)
        / items
    )
    return _corrected(fmean(scores) + error, spread, df, beyond * effect, n, items)


def regression(
    scores: Sequence[float],
    labels: Mapping[int, float],
    known: Sequence[float] | None = None,
    effect: float = 1.0,
) -> CorrectedEstimates:
    """Correct by the regression of labels on the judge's scores, slope 0 to 1; residuals are those of a left-out label.

    Args:
        labels: position -> people's rating, of a simple random sample; at least four.
        known: of each item, what is added to its rating and needs no correction, such as a multiple of S; `stratified`
            takes it as a part of scores and labels.
    """
    items = len(scores)
    n = len(labels)
    if n < 4:
        raise ValueError(f"{n} labels, and four are needed")
    own = [scores[at] for at in labels]
    centre = fmean(own)
    mean = fmean(labels.values())
    square = math.fsum((x - centre) ** 2 for x in own)
    if max((x - centre) ** 2 for x in own) >= (1 - 1 / n) * square * (
        1 - 1e-9
    ):  # one score alone would say the slope
        square = 0.0
    pairs = [(x - centre, y - mean) for x, y in zip(own, labels.values(), strict=True)]
    slope = min(1.0, max(0.0, math.fsum(x * y for x, y in pairs) / square)) if square else 0.0
    residuals = [
        (y - slope * x) / (1 - 1 / n - (x**2 / square if square else 0.0)) for x, y in pairs
    ]
    noise = (n - 1) / n * fmean(r * r for r in residuals)
    known = known or [0.0] * items
    value = mean + slope * (fmean(scores) - centre) + fmean(known)
    beyond = effect * variance([y + known[at] for at, y in labels.items()]) / items
    return _corrected(value, (1 - n / items) * noise / n, n - 2, beyond, n, items)


def _corrected(
    value: float, spread: float, df: int, beyond: float, labels: int, items: int
) -> CorrectedEstimates:
    """The mean with the interval over items of this kind, and that over these items, which is never the wider one.

    `spread`, `df`: the variance of the correction and its degrees of freedom, pooled over strata; `beyond`: the
    variance of the mean of as many items of this kind. Where errors do not vary and labels are missing, nothing is
    known of the other items, so that there is no interval.
    """
    if labels < items and not spread:
        unknown = Estimate(value, None, None, labels, items)
        return CorrectedEstimates(population=unknown, sample=unknown)
    here = t_quantile(df) * math.sqrt(spread) if spread else 0.0
    parts = (spread**2 / df if spread else 0.0) + beyond**2 / (labels - 1)
    over = t_quantile((spread + beyond) ** 2 / parts) * math.sqrt(spread + beyond) if parts else 0.0
    over = max(here, over)
    return CorrectedEstimates(
        population=Estimate(value, value - over, value + over, labels, items),
        sample=Estimate(value, value - here, value + here, labels, items),
    )
