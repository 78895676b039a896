"""Choose the estimator of a corrected mean by how its labels came, or say why there is none.

Drawn by the plan: `stratified`. A simple random sample, by the user's word: `regression`. Labels of all items need
neither. Others are refused: nobody knows which items such labels leave out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from h2htalk.benchmark.calibration.judged_items import JudgedItem
from h2htalk.benchmark.statistics.clusters import design_effect
from h2htalk.benchmark.statistics.corrected_mean import CorrectedMean, regression, stratified
from h2htalk.distributions import Interval, t_quantile
from h2htalk.errors import counted

LEAST_DRAWN, LEAST = 8, 4  # labels, drawn by strata or not
FEW_RATERS = 10  # up to which the interval over annotators is given
ALL_LABELLED, POINTS = "all labelled", "points"


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected mean, or why there is none.

    Attributes:
        group: `levels`, a subtask, a dimension or `points`. figure: `R`, `J` (0 to 5) or a yes-or-no point (0 to 1).
        own: the judges' own mean. estimator: its name, or why the correction is refused.
        raters: the interval over annotators and items of this kind, where 2 to 10 are named.
    """

    group: str
    figure: str
    own: float
    labels: int
    items: int
    estimator: str
    mean: CorrectedMean | None = None
    raters: Interval | None = None


@dataclass(frozen=True, slots=True)
class LabelSample:
    """Judged items, and labels of some.

    Attributes:
        scores: of each item. errors: position -> the judges' value minus people's.
        known: of each item, what is added to the score and needs no correction (a multiple of S).
        strata: of each item, where the plan drew the labels.
        random: the user calls the labels a simple random sample.
    """

    items: Sequence[JudgedItem]
    scores: Sequence[float]
    errors: Mapping[int, float]
    known: Sequence[float]
    strata: Sequence[int] | None = None
    random: bool = False

    def estimate(self) -> tuple[str, CorrectedMean]:
        """Return the estimator and the mean. Raises ValueError with the reason where there is none."""
        n, least = len(self.errors), LEAST if self.strata is None else LEAST_DRAWN
        if n < min(least, max(2, len(self.scores))):
            raise ValueError(f"{counted(n, 'label')}, and {least} are needed")
        whole = [score + known for score, known in zip(self.scores, self.known, strict=True)]
        labels = {at: whole[at] - error for at, error in self.errors.items()}
        effect = design_effect(whole, [item.cluster for item in self.items])
        if n == len(whole):
            found = ALL_LABELLED, stratified(whole, labels, [0] * n, effect)
        elif self.strata is not None:
            found = "stratified", stratified(whole, labels, self.strata, effect)
        elif self.random:
            ratings = {at: self.scores[at] - error for at, error in self.errors.items()}
            found = "regression", regression(self.scores, ratings, self.known, effect)
        else:
            raise ValueError("nobody knows which items the labels leave out: draw them with `plan-labels`, or --random")
        if found[1].low is None:
            raise ValueError("the judges' error is the same on all labelled items, so its spread is not known")
        return found

    def rater_half_width(self) -> float | None:
        """Half of the t interval over annotators' mean errors; None unless 2 to 10 are named."""
        raters: dict[str, list[tuple[float, float]]] = {}
        strata = self.strata or [0] * len(self.items)
        for at in self.errors:
            weight = strata.count(strata[at]) / sum(strata[other] == strata[at] for other in self.errors)
            for name, error in (self.items[at].raters or {}).items():
                raters.setdefault(name, []).append((weight, error))
        if "" in raters or not 2 <= len(raters) <= FEW_RATERS:
            return None
        means = [math.fsum(w * e for w, e in own) / math.fsum(w for w, _ in own) for own in raters.values()]
        return t_quantile(len(means) - 1) * stdev(means) / math.sqrt(len(means))


def correct(group: str, figure: str, sample: LabelSample, scale: float = 1.0) -> Correction:
    """Correct the mean of a sample's scores, or say why not; all values are multiplied by `scale`."""
    own, n = scale * (fmean(sample.scores) + fmean(sample.known)), (len(sample.errors), len(sample.scores))
    try:
        estimator, mean = sample.estimate()
    except ValueError as error:
        return Correction(group, figure, own, *n, str(error))
    ends = (mean.low, mean.high, mean.low_here, mean.high_here)
    low, high, low_here, high_here = (None if end is None else scale * end for end in ends)
    if not all(sample.items[at].whole for at in sample.errors):  # answers that nobody rated vary within an item
        low_here = high_here = None
    scaled = CorrectedMean(scale * mean.value, low, high, low_here, high_here, *n)
    raters = None if group == POINTS else sample.rater_half_width()
    if raters is None or mean.high is None:
        return Correction(group, figure, own, *n, estimator, scaled)
    # The spread of annotators, and that of items.
    half = scale * math.hypot(raters, mean.high - mean.value)
    return Correction(group, figure, own, *n, estimator, scaled, (scaled.value - half, scaled.value + half))
