"""Inter-annotator agreement: Krippendorff's alpha with an interval."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from h2htalk.distributions import CONFIDENCE
from h2htalk.errors import MissingExtraError
from h2htalk.extras import AGREEMENT
from h2htalk.rounds.aggregation.votes import Vote, VoteTable, tabulate
from h2htalk.rounds.questions import Level

RESAMPLES = 1000
NO_PAIRS = "no item has two votes"
NO_VARIETY = "all votes on items with two or more votes are one label, so agreement is undefined"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Krippendorff's alpha of the votes on items with two or more, at a level of measurement.

    Alpha is 1 for full agreement, 0 for agreement by chance, below 0 for less; None, with a reason, if undefined. The
    interval is a 95 % percentile bootstrap over items (1,000 resamples); None without alpha or with one item.
    """

    level: Level
    alpha: float | None
    interval: tuple[float, float] | None
    items: int
    votes: int
    reason: str = ""


def agreement_of(votes: Iterable[Vote] | VoteTable, level: Level, seed: int = 0) -> Agreement:
    """Return Krippendorff's alpha of the votes on one question by the library `krippendorff`; items may vary in votes.

    The level is `ordinal` for ratings, whose labels are numbers as text. Figures are rounded to 6 (alpha) and 4 digits.
    Memory: about 32 bytes * items * labels^2.
    """
    table = tabulate(votes)
    counts = table.counts()
    pairable = counts[counts.sum(axis=1) > 1]
    columns = np.flatnonzero(pairable.any(axis=0))
    values = np.arange(len(columns), dtype=np.float64)
    if level == "ordinal":
        numbers = np.array([float(table.labels[at]) for at in columns])
        columns = columns[np.argsort(numbers)]
        values = np.sort(numbers)
    pairable = pairable[:, columns]
    # The last bit of sums depends on the order of items, which must not depend on their ids.
    pairable = pairable[np.lexsort(pairable.T)] if pairable.size else pairable
    sizes = len(pairable), int(pairable.sum())
    if reason := NO_PAIRS if not len(pairable) else NO_VARIETY if len(values) < 2 else "":
        return Agreement(level, None, None, *sizes, reason)
    try:
        import krippendorff
    except ModuleNotFoundError as error:
        raise MissingExtraError(AGREEMENT.feature, AGREEMENT.install) from error
    alpha = krippendorff.alpha(
        value_counts=pairable, value_domain=values, level_of_measurement=level
    )
    return Agreement(level, round(float(alpha), 6), _interval(pairable, level, seed), *sizes)


def _interval(counts: Any, level: Level, seed: int) -> tuple[float, float] | None:
    """Return the 2.5th and 97.5th percentile of the bootstrap, over resamples in which alpha is defined.

    Items with the same counts are drawn together: the number of draws of each kind is multinomial.
    """
    items, labels = counts.shape
    if items < 2:
        return None
    kinds, often = np.unique(counts, axis=0, return_counts=True)
    rng = np.random.default_rng([seed, zlib.crc32(level.encode())])
    # Pairs of values within an item of each kind; an item weighs as much as it has votes (Krippendorff 2011).
    pairs = (kinds[:, :, None] * kinds[:, None, :] - kinds[:, :, None] * np.eye(labels)).reshape(
        len(kinds), -1
    )
    pairs /= kinds.sum(axis=1, keepdims=True) - 1
    alphas: list[Any] = []
    block = max(1, 20_000_000 // len(kinds))  # bounds the memory
    for start in range(0, RESAMPLES, block):
        drawn = rng.multinomial(items, often / items, size=min(block, RESAMPLES - start))
        coincidences = (drawn.astype(np.float64) @ pairs).reshape(-1, labels, labels)
        each = coincidences.sum(axis=2)
        # Between ratings the distance is the number of ratings between them, those at the two values counted half.
        place = each.cumsum(axis=1) - each / 2 if level == "ordinal" else None
        distance = (
            1 - np.eye(labels)[None]
            if place is None
            else (place[:, :, None] - place[:, None, :]) ** 2
        )
        observed = (coincidences * distance).sum(axis=(1, 2))
        chance = (each[:, :, None] * each[:, None, :] * distance).sum(axis=(1, 2))
        with np.errstate(invalid="ignore", divide="ignore"):
            alphas.append(1 - (each.sum(axis=1) - 1) * observed / chance)
    defined = np.concatenate(alphas)
    defined = defined[np.isfinite(defined)]
    if not len(defined):
        return None
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(defined, [tail, 100 - tail]).round(4).tolist()
    return low, high
