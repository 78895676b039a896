"""Comparisons of a candidate's references: which are made, the calls they take, and what the replies come to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from h2htalk.chat.protocol import Request
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.model_calls.stored_calls import Answers
from h2htalk.curation.review.faireval import ORDERS, calibrate
from h2htalk.curation.review.review_outcome import Pair
from h2htalk.curation.review.reviewer import Reviewer, pair_name, read_pair

# Comparisons grow with the square of the references.
MOST_COMPARED = 4


def compared(candidate: Candidate) -> list[tuple[int, int]]:
    """The pairs of references that are compared: each with each, of the first four."""
    return list(combinations(range(min(len(candidate.references), MOST_COMPARED)), 2))


def comparisons(reviewer: Reviewer, candidate: Candidate, samples: int) -> Iterator[Request]:
    """The calls that compare a candidate's references: every pair, in both orders, `samples` times each."""
    for pair in compared(candidate):
        for order in ORDERS:
            for sample in range(samples):
                yield reviewer.comparison(candidate, pair, order, sample)


def read_comparisons(candidate: Candidate, replies: Answers, samples: int, margin: float) -> tuple[Pair, ...]:
    """What the replies to `comparisons` come to, a pair at a time."""
    pairs = []
    for pair in compared(candidate):
        found = tuple(
            read_pair(replies[pair_name(candidate.id, pair, order), sample], order)
            for order in ORDERS
            for sample in range(samples)
        )
        pairs.append(Pair(*pair, found, calibrate(found, margin=margin)))
    return tuple(pairs)
