"""The share of yes among items, from a judge's verdicts and how often people say that it errs (Rogan and Gladen 1978).

The interval is that of Lee et al. (arXiv 2511.21140), which holds the error of both rates.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from h2htalk.benchmark.statistics.intervals import CONFIDENCE, Interval

_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def corrected_share(
    yes: int, items: int, right_yes: int, people_yes: int, right_no: int, people_no: int
) -> tuple[float, Interval]:
    """Correct the share of a judge's yes.

    Args:
        yes, items: the judge's verdicts.
        right_yes, people_yes: of the labelled items that are yes for people, those that the judge calls yes.
        right_no, people_no: the same for no.

    Returns:
        The share, in [0, 1], and its 95 % interval.

    Raises:
        ValueError: no label of one kind, or a judge that is no better than chance: its verdicts say nothing.
    """
    if not people_yes or not people_no:
        raise ValueError("labels of both kinds are needed, yes and no")
    smoothed = (right_yes + 1) / (people_yes + 2) + (right_no + 1) / (people_no + 2)
    if min(smoothed, right_yes / people_yes + right_no / people_no) <= 1 + 1e-12:
        raise ValueError("the judge is no better than chance on the labelled items, so its share cannot be corrected")
    share = _invert(yes / items, right_yes / people_yes, right_no / people_no)
    squared = _Z * _Z
    p, n = (yes + squared / 2) / (items + squared), items + squared
    sensitivity, specificity = (right_yes + 1) / (people_yes + 2), (right_no + 1) / (people_no + 2)
    a = specificity * (1 - specificity) / (people_no + 2)
    b = sensitivity * (1 - sensitivity) / (people_yes + 2)
    moved = _invert(p, sensitivity, specificity)
    error = math.sqrt(p * (1 - p) / n + (1 - moved) ** 2 * a + moved**2 * b) / (sensitivity + specificity - 1)
    centre = moved + 2 * squared * (moved * b - (1 - moved) * a)
    return share, (max(0.0, centre - _Z * error), min(1.0, centre + _Z * error))


def _invert(share: float, sensitivity: float, specificity: float) -> float:
    return min(1.0, max(0.0, (share + specificity - 1) / (sensitivity + specificity - 1)))
