"""Adaptive overlap: how many more votes each item needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from h2htalk.rounds.aggregation.vote_table import Vote, VoteTable, tabulate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Counts = npt.NDArray[np.int64]

# Bound of the rounding error in a number of votes.
_ROUNDING = 1e-9


def needs_more(
    votes: Iterable[Vote] | VoteTable,
    items: Iterable[str],
    *,
    minimum: int = 3,
    lead: int = 4,
    maximum: int = 20,
) -> dict[str, int]:
    """Return how many more votes each item needs until one label leads by `lead` votes.

    This is the smallest number that can be enough, if all of them are for the leading label. Requesting them together
    gathers no more votes than requesting them one by one.

    Args:
        votes: those so far, of one question; votes on other items are ignored.
        items: the items to decide.
        minimum: votes that every item gets.
        lead: votes by which the most frequent label must lead the next; at least 1.
        maximum: votes after which no more are requested.

    Returns:
        Item -> number of votes, in the order of `items`; 0 for an item that is clear or at its maximum.

    Raises:
        RoundError: an annotator gave an item two labels.
        ValueError: an argument out of range.
    """
    _check(minimum, maximum)
    if lead < 1:
        raise ValueError(f"lead is {lead}; it must be 1 or more")
    return _needs(votes, items, minimum, maximum, lambda counts: lead - _lead(counts))


def needs_more_by_posterior(
    votes: Iterable[Vote] | VoteTable,
    items: Iterable[str],
    *,
    accuracy: float,
    labels: int,
    confidence: float = 0.95,
    minimum: int = 3,
    maximum: int = 20,
) -> dict[str, int]:
    """As `needs_more`, until one label is as probable as `confidence` (a sequential probability ratio test).

    Every annotator is assumed to be right with the same probability p and, if wrong, to give each of the other K - 1
    labels with the same probability. Then P(label) ~ r^votes(label), r = p (K - 1) / (1 - p); with two labels this is a
    lead of ln(t / (1 - t)) / ln(r) votes, t the confidence (p = 0.7, t = 0.95: 4 votes).

    Args:
        accuracy: p, the accuracy of single votes: above 1 / labels, below 1. If it is too high, requests stop too
            early: 0.8 in place of 0.7 is a lead of 3 in place of 4, and 2.6 points of accuracy less on public votes
            (`tools/eval_votes.py`).
        labels: K, the number of possible labels; 2 or more, and at least as many as occur.
        confidence: 0.5 to below 1.
        votes, items, minimum, maximum: as of `needs_more`, as are results and errors.
    """
    import numpy as np

    _check(minimum, maximum)
    table = tabulate(votes)
    if labels < max(2, len(table.labels)) or not 1 / labels < accuracy < 1 or not 0.5 <= confidence < 1:
        raise ValueError(
            f"accuracy {accuracy}, labels {labels}, confidence {confidence}: accuracy must be between "
            f"1 / labels and 1, confidence from 0.5 to below 1, and labels at least {len(table.labels)}"
        )
    growth = math.log(accuracy * (labels - 1) / (1 - accuracy))
    odds = math.log(confidence / (1 - confidence))

    def missing(counts: Counts) -> Counts:
        # Odds of the leading label against all others, including labels without votes.
        padded = np.pad(counts, ((0, 0), (0, labels - counts.shape[1])))
        behind = np.sort(padded, axis=1)[:, :-1] - padded.max(axis=1, keepdims=True)
        against = np.log(np.exp(growth * behind).sum(axis=1))
        return np.asarray(np.ceil((odds + against) / growth - _ROUNDING), dtype=np.int64)

    return _needs(table, items, minimum, maximum, missing)


def _check(minimum: int, maximum: int) -> None:
    if not 1 <= minimum <= maximum:
        raise ValueError(f"minimum is {minimum} and maximum {maximum}; they must be 1 <= minimum <= maximum")


def _needs(
    votes: Iterable[Vote] | VoteTable,
    items: Iterable[str],
    minimum: int,
    maximum: int,
    missing: Callable[[Counts], Counts],
) -> dict[str, int]:
    import numpy as np

    table = tabulate(votes)
    names = list(dict.fromkeys(items))
    rows = {item: row for row, item in enumerate(table.items)}
    # A last row for items without votes, and a second column if only one label occurs.
    counts = np.zeros((len(rows) + 1, max(len(table.labels), 2)), dtype=np.int64)
    counts[:-1, : len(table.labels)] = table.counts()
    counts = counts[[rows.get(item, len(rows)) for item in names]]
    given = counts.sum(axis=1)
    more = np.clip(np.maximum(minimum - given, missing(counts)), 0, np.maximum(maximum - given, 0))
    return dict(zip(names, more.tolist(), strict=True))


def _lead(counts: Counts) -> Any:
    """Return by how many votes the most frequent label leads the next, shape (items,)."""
    import numpy as np

    highest = np.partition(counts, -2, axis=1)
    return highest[:, -1] - highest[:, -2]
