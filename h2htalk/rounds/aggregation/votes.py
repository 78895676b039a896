"""Votes as columns of numbers, and majorities with explicit ties; names and the order of votes do not matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from h2htalk.errors import RoundError, quoted

Positions = npt.NDArray[np.int64]

# Probabilities that differ by less are a tie. Rounding errors stay below 1e-10 at 100,000 items.
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Vote:
    """One annotator's label for one item."""

    item: str
    annotator: str
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class VoteTable:
    """Votes as columns, each (item, annotator) once, sorted by item, then annotator.

    Attributes:
        items, annotators, labels: the names that occur, sorted.
        item, annotator, label: positions of each vote's names in those; shape (votes,).
    """

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    labels: tuple[str, ...]
    item: Positions
    annotator: Positions
    label: Positions

    def __len__(self) -> int:
        return len(self.item)

    def votes(self, rows: Iterable[int]) -> list[Vote]:
        """Return the votes of some rows, in the order of `rows`."""
        picked = list(rows)
        columns = (
            (self.items, self.item),
            (self.annotators, self.annotator),
            (self.labels, self.label),
        )
        named = ([names[at] for at in column[picked].tolist()] for names, column in columns)
        return [Vote(*fields) for fields in zip(*named, strict=True)]

    def counts(self) -> Positions:
        """Return the numbers of votes by item and label, shape (items, labels)."""
        shape = len(self.items), len(self.labels)
        flat = np.bincount(self.item * shape[1] + self.label, minlength=shape[0] * shape[1])
        return flat.reshape(shape)


def tabulate(votes: Iterable[Vote] | VoteTable) -> VoteTable:
    """Return votes as a table; a table is returned as it is. Equal votes of an annotator on an item are one vote.

    Raise RoundError if an annotator gave two labels to one item.
    """
    if isinstance(votes, VoteTable):
        return votes
    given = list(votes)
    columns = []
    for names in ([v.item for v in given], [v.annotator for v in given], [v.label for v in given]):
        known = tuple(sorted(set(names)))
        numbers = {name: number for number, name in enumerate(known)}
        columns.append((known, np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))))
    (items, item), (annotators, annotator), (labels, label) = columns
    # One number a vote: sorting it sorts the rows. It fits 64 bits up to 2 million items, annotators and labels each.
    key = np.unique((item * len(annotators) + annotator) * max(len(labels), 1) + label)
    pair, label = np.divmod(key, max(len(labels), 1))
    item, annotator = np.divmod(pair, max(len(annotators), 1))
    twice = np.flatnonzero(pair[1:] == pair[:-1])
    if len(twice):
        first = int(twice[0])
        who = quoted(annotators[annotator[first]])
        what = quoted(items[item[first]])
        raise RoundError(
            f"item {what}: annotator {who} gave two labels; keep one vote of each annotator on each item"
        )
    return VoteTable(items, annotators, labels, item, annotator, label)


@dataclass(frozen=True, slots=True)
class VoteResult:
    """The result of the votes on one item.

    The label is None for a tie; then `tied` are the leading labels, sorted. `support` is the number of votes for the
    leading label, or each of them (under Dawid-Skene: the smallest), `posterior` its share of the votes (majority) or
    its probability (Dawid-Skene), 0 to 1; `chances` are those of all labels that occur on any item.
    """

    label: str | None
    support: int
    posterior: float
    votes: int
    tied: tuple[str, ...] = ()
    chances: Mapping[str, float] = field(default_factory=dict)


def majority(votes: Iterable[Vote] | VoteTable) -> dict[str, VoteResult]:
    """Return the most frequent label of each item that has votes, sorted by item; equal counts are a tie."""
    table = tabulate(votes)
    counts = table.counts()
    return leading_labels(table, counts / counts.sum(axis=1, keepdims=True))


def leading_labels(table: VoteTable, chances: Any) -> dict[str, VoteResult]:
    """Return the label with the largest share or probability for each item; within `TIE_TOLERANCE` several are tied.

    `chances` has the shape (items, labels).
    """
    results = {}
    for item, counts, theirs in zip(
        table.items, table.counts().tolist(), chances.tolist(), strict=True
    ):
        best = max(theirs)
        leading = [at for at, chance in enumerate(theirs) if best - chance <= TIE_TOLERANCE]
        labels = tuple(table.labels[at] for at in leading)
        results[item] = VoteResult(
            label=labels[0] if len(labels) == 1 else None,
            support=min(counts[at] for at in leading),
            posterior=best,
            votes=sum(counts),
            tied=labels if len(labels) > 1 else (),
            chances=dict(zip(table.labels, theirs, strict=True)),
        )
    return results
