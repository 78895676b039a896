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

# Ranks by judge score at which strata end: rare large errors lie among the low scores.
CUTS = (0.12, 0.4, 0.7)


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
    order = sorted(range(len(scores)), key=lambda position: (scores[position], rng.random()))
    strata = [0 for _ in scores]
    for rank, position in enumerate(order):
        strata[position] = sum(rank >= round(cut * len(scores)) for cut in CUTS)
    return strata


def draw_labels(scores: Sequence[float], labels: int, seed: int = 0) -> list[int]:
    """Draw the items that people should label, by the judge's scores: sorted positions, a quarter at random
    in each stratum; one with fewer items gives the rest to others."""
    rng = Random(seed)
    groups: list[list[int]] = [[] for _ in range(len(CUTS) + 1)]
    for position, stratum in enumerate(strata_of(scores, seed)):
        groups[stratum].append(position)
    counts: list[int] = []
    for members in groups:
        share = round((labels - sum(counts)) / (len(groups) - len(counts)))
        counts.append(min(len(members), share))
    for stratum, members in enumerate(groups):  # what the last ones could not take
        counts[stratum] += min(len(members) - counts[stratum], labels - sum(counts))
    positions = []
    for members, count in zip(groups, counts, strict=True):
        positions += rng.sample(members, count)
    return sorted(positions)


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
        members = [position for position in labels if strata[position] == stratum]
        size = strata.count(stratum)
        if len(members) < min(2, size):
            few = counted(len(members), "label")
            raise ValueError(f"a stratum of {counted(size, 'item')} has {few}, and two are needed")
        weight = size / items
        errors = [labels[position] - scores[position] for position in members]
        error += weight * fmean(errors)
        if len(members) < size:
            unseen = 1 - len(members) / size
            spread += weight**2 * unseen * variance(errors) / len(members)
            df += len(members) - 1
        weights |= dict.fromkeys(members, weight / len(members))
    mean = math.fsum(weights[position] * label for position, label in labels.items())
    squares = (weights[position] * (label - mean) ** 2 for position, label in labels.items())
    beyond = math.fsum(squares) * n / max(1, n - 1) / items
    return _corrected(fmean(scores) + error, spread, df, beyond * effect, n, items)


def regression(
    scores: Sequence[float],
    labels: Mapping[int, float],
    certain: Sequence[float] | None = None,
    effect: float = 1.0,
) -> CorrectedEstimates:
    """Correct by the regression of labels on the judge's scores, slope 0 to 1; residuals are those of a left-out label.

    Args:
        labels: position -> people's rating, of a simple random sample; at least four.
        certain: a part of each item's rating that needs no correction, such as a multiple of S; `stratified` takes it
            as a part of scores and labels.
        effect: as of `stratified`.
    """
    items = len(scores)
    n = len(labels)
    if n < 4:
        raise ValueError(f"{n} labels, and four are needed")
    labelled_scores = [scores[position] for position in labels]
    centre = fmean(labelled_scores)
    mean = fmean(labels.values())
    x = [score - centre for score in labelled_scores]
    y = [label - mean for label in labels.values()]
    square = math.fsum(deviation**2 for deviation in x)
    most = (1 - 1 / n) * square * (1 - 1e-9)
    if max(deviation**2 for deviation in x) >= most:  # one score alone would say the slope
        square = 0.0
    slope = 0.0
    if square:
        products = math.fsum(dx * dy for dx, dy in zip(x, y, strict=True))
        slope = min(1.0, max(0.0, products / square))
    squares = []
    for dx, dy in zip(x, y, strict=True):
        leverage = dx**2 / square if square else 0.0
        residual = (dy - slope * dx) / (1 - 1 / n - leverage)
        squares.append(residual * residual)
    noise = (n - 1) / n * fmean(squares)
    addends = certain or [0.0 for _ in scores]
    value = mean + slope * (fmean(scores) - centre) + fmean(addends)
    wholes = [label + addends[position] for position, label in labels.items()]
    beyond = effect * variance(wholes) / items
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
    within = t_quantile(df) * math.sqrt(spread) if spread else 0.0
    terms = (spread**2 / df if spread else 0.0) + beyond**2 / (labels - 1)
    half = within
    if terms:
        wide = t_quantile((spread + beyond) ** 2 / terms) * math.sqrt(spread + beyond)
        half = max(within, wide)
    return CorrectedEstimates(
        population=Estimate(value, value - half, value + half, labels, items),
        sample=Estimate(value, value - within, value + within, labels, items),
    )
