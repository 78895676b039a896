"""Inter-annotator agreement: Krippendorff's alpha with an interval."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from h2htalk.errors import MissingExtraError, RoundError, quoted
from h2htalk.rounds.aggregation.vote_table import Vote, VoteTable, tabulate
from h2htalk.rounds.questions import Level

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]

INSTALL = 'pip install "h2htalk[rounds]"'
RESAMPLES = 1000
CONFIDENCE = 0.95
NO_PAIRS = "no item has two votes"
NO_VARIETY = "all votes on items with two or more votes are one label, so agreement is undefined"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Krippendorff's alpha of some votes.

    Attributes:
        level: level of measurement of the values.
        alpha: 1 for full agreement, 0 for agreement by chance, below 0 for less; None if undefined.
        interval: 95 % percentile bootstrap over items (1,000 resamples); None without alpha or with one item.
        items, votes: items with two or more votes, and their votes.
        reason: why alpha is undefined; else empty.
    """

    level: Level
    alpha: float | None
    interval: tuple[float, float] | None
    items: int
    votes: int
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "alpha": None if self.alpha is None else round(self.alpha, 6),
            "interval": None if self.interval is None else [round(edge, 4) for edge in self.interval],
            "items": self.items,
            "votes": self.votes,
            "reason": self.reason,
        }


def krippendorff_alpha(votes: Iterable[Vote] | VoteTable, level: Level) -> float:
    """Return Krippendorff's alpha, computed by the library `krippendorff`; the number of votes per item may vary.

    Args:
        votes: of one question.
        level: `nominal` for labels; `ordinal` or `interval` for ratings, whose labels are numbers as text.

    Returns:
        At most 1; nan if undefined: no item has two votes, or only one label occurs on those that have.
        Memory: about 32 bytes * items * labels^2.

    Raises:
        MissingExtraError: the library is not installed.
        RoundError: an annotator gave an item two labels, or a rating is not a number.
        ValueError: the level is unknown.
    """
    pairable = _pairable(tabulate(votes), level)
    return math.nan if pairable.reason else _alpha(pairable, level)


def agreement_of(votes: Iterable[Vote] | VoteTable, level: Level, seed: int = 0) -> Agreement:
    """Return alpha with its interval; `seed` is of the resamples, other arguments as of `krippendorff_alpha`."""
    pairable = _pairable(tabulate(votes), level)
    items, number = len(pairable.counts), int(pairable.counts.sum())
    if pairable.reason:
        return Agreement(level, None, None, items, number, pairable.reason)
    return Agreement(level, _alpha(pairable, level), _interval(pairable, level, seed), items, number)


@dataclass(frozen=True, slots=True, eq=False)
class _Pairable:
    """Counts by item (with two or more votes) and label (that occurs on them), and the values of the labels."""

    counts: Any
    values: Any
    reason: str


def _pairable(table: VoteTable, level: Level) -> _Pairable:
    import numpy as np

    if level not in get_args(Level):
        raise ValueError(f"level is {level!r}; choose from {', '.join(get_args(Level))}")
    counts = table.counts()
    values = np.arange(len(table.labels), dtype=np.float64)
    if level != "nominal":
        numbers = [_number(label) for label in table.labels]
        values = np.array(sorted(set(numbers)))
        merged = np.zeros((len(counts), len(values)), dtype=np.int64)
        for column, number in enumerate(numbers):  # "4" and "4.0" are one rating
            merged[:, np.searchsorted(values, number)] += counts[:, column]
        counts = merged
    counts = counts[counts.sum(axis=1) > 1]
    used = np.flatnonzero(counts.any(axis=0))
    if level == "nominal":  # an order of labels that does not depend on their names
        used = used[_nameless_order(counts[:, used])]
    counts, values = counts[:, used], values[used]
    # An order of items that does not depend on their ids: the last bit of sums depends on it.
    counts = counts[np.lexsort(counts.T)] if counts.size else counts
    reason = NO_PAIRS if not len(counts) else NO_VARIETY if len(values) < 2 else ""
    return _Pairable(counts, values, reason)


def _number(label: str) -> float:
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise RoundError(
            f"{quoted(label)} is not a number, so it cannot be compared at this level; use numbers, or level nominal"
        )
    return number


def _alpha(pairable: _Pairable, level: Level) -> float:
    try:
        import krippendorff
    except ModuleNotFoundError as error:
        raise MissingExtraError("Krippendorff's alpha", INSTALL) from error
    # The library's default level is `interval`.
    return float(
        krippendorff.alpha(value_counts=pairable.counts, value_domain=pairable.values, level_of_measurement=level)
    )


def _nameless_order(counts: Any) -> Any:
    """Return an order of columns by the frequency of their labels, then by their co-occurrence with others."""
    import numpy as np

    _, row_kind = np.unique(np.sort(counts, axis=1), axis=0, return_inverse=True)
    keys = []
    for column in counts.T:
        kinds = np.unique(np.stack([column, row_kind.ravel()]), axis=1, return_counts=True)
        keys.append((int(column.sum()), np.vstack([*kinds]).T.tolist()))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def _interval(pairable: _Pairable, level: Level, seed: int) -> tuple[float, float] | None:
    """Return the 2.5th and 97.5th percentile of the bootstrap, over resamples in which alpha is defined.

    Items with the same counts are drawn together: the number of draws of each kind is multinomial.
    """
    import numpy as np

    items = len(pairable.counts)
    if items < 2:
        return None
    kinds, often = np.unique(pairable.counts, axis=0, return_counts=True)
    rng = np.random.default_rng([seed, zlib.crc32(level.encode())])
    labels = kinds.shape[1]
    # Pairs of values within an item of each kind; an item weighs as much as it has votes (Krippendorff 2011).
    pairs = (kinds[:, :, None] * kinds[:, None, :] - kinds[:, :, None] * np.eye(labels)).reshape(len(kinds), -1)
    pairs /= kinds.sum(axis=1, keepdims=True) - 1
    alphas: list[Any] = []
    block = max(1, 20_000_000 // len(kinds))  # bounds the memory
    for start in range(0, RESAMPLES, block):
        drawn = rng.multinomial(items, often / items, size=min(block, RESAMPLES - start))
        coincidences = (drawn.astype(np.float64) @ pairs).reshape(-1, labels, labels)
        alphas.append(_alphas(coincidences, pairable.values, level))
    defined = np.concatenate(alphas)
    defined = defined[np.isfinite(defined)]
    if not len(defined):
        return None
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(defined, [tail, 100 - tail])
    return float(low), float(high)


def _alphas(coincidences: Numbers, values: Numbers, level: Level) -> Numbers:
    """Return alpha of each coincidence matrix, shape (resamples, labels, labels); nan if undefined."""
    import numpy as np

    each = coincidences.sum(axis=2)
    if level == "nominal":
        distance = 1 - np.eye(len(values))[None]
    elif level == "interval":
        distance = ((values[:, None] - values[None, :]) ** 2)[None]
    else:
        # Number of ratings between two values, those at the two values counted half.
        place = each.cumsum(axis=1) - each / 2
        distance = (place[:, :, None] - place[:, None, :]) ** 2
    total = each.sum(axis=1)
    observed = (coincidences * distance).sum(axis=(1, 2))
    chance = (each[:, :, None] * each[:, None, :] * distance).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - (total - 1) * observed / chance)
