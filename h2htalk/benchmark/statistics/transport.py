"""Whether labelled items stand for the others, and a correction where they differ in known ways.

Only for labels that the tool did not draw: `corrected_mean` assumes a random choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark.statistics.corrected_mean import CorrectedMean
from h2htalk.benchmark.statistics.intervals import t_quantile

DRAWS = 5000


def labels_unlike_rest(covariates: npt.NDArray[np.float64], labelled: Sequence[int]) -> float:
    """Test whether the labelled items are a random choice: the p value of a permutation test on Hotelling's T2.

    Args:
        covariates: a row an item: the judge's score, the log of the reply's length, one column a subtask but the first.
        labelled: positions of the labelled items; at least two, and fewer than all.
    """
    items, n = len(covariates), len(labelled)
    centred = covariates - covariates.mean(0)
    # In coordinates without correlation the statistic is a squared length.
    values, axes = np.linalg.eigh(centred.T @ centred / (items - 1))
    used = values > 1e-9 * values.max()
    white = centred @ axes[:, used] / np.sqrt(values[used])
    chosen = np.zeros(items, bool)
    chosen[list(labelled)] = True
    found = float((white[chosen].mean(0) ** 2).sum())
    rng = np.random.default_rng(0)
    reached = sum(
        float((white[rng.permutation(items)[:n]].mean(0) ** 2).sum()) >= found * (1 - 1e-12) for _ in range(DRAWS)
    )
    return (reached + 1) / (DRAWS + 1)


def regressed(scores: Sequence[float], labels: Mapping[int, float], covariate: Sequence[float]) -> CorrectedMean:
    """Correct the judge's mean by the regression of its error on a covariate by which the labels were chosen.

    Args:
        scores, labels: as of `corrected_mean.regression`; at least four labels.
        covariate: of each item, such as the log of the reply's length.

    Raises:
        ValueError: fewer than four labels, or the covariate does not vary among them.
    """
    items, n = len(scores), len(labels)
    z, d = [covariate[at] for at in labels], [labels[at] - scores[at] for at in labels]
    centre, square = fmean(z), math.fsum((x - fmean(z)) ** 2 for x in z)
    if n < 4 or not square:
        raise ValueError(f"{n} labels, whose covariate has a spread of {square:g}: the error cannot be regressed on it")
    slope = math.fsum((x - centre) * y for x, y in zip(z, d, strict=True)) / square
    residuals = [y - fmean(d) - slope * (x - centre) for x, y in zip(z, d, strict=True)]
    noise = math.fsum(r * r for r in residuals) / (n - 2)
    shift = fmean(covariate) - centre
    value = fmean(scores) + fmean(d) + slope * shift
    spread = noise * ((1 - n / items) / n + shift * shift / square)
    beyond = variance(labels.values()) / items
    here, over = (t_quantile(n - 2) * math.sqrt(total) for total in (spread, spread + beyond))
    if not noise:
        return CorrectedMean(value, None, None, None, None, n, items)
    return CorrectedMean(value, value - over, value + over, value - here, value + here, n, items)
