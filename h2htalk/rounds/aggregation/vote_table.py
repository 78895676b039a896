"""Votes as columns of numbers, the input of all arithmetic on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from h2htalk.errors import RoundError, quoted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Positions = npt.NDArray[np.int64]

# Votes read from an iterator at a time: bounds the memory beside the columns.
CHUNK = 10_000


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
        columns = ((self.items, self.item), (self.annotators, self.annotator), (self.labels, self.label))
        named = ([names[at] for at in column[picked].tolist()] for names, column in columns)
        return [Vote(*fields) for fields in zip(*named, strict=True)]

    def counts(self) -> Positions:
        """Return the numbers of votes by item and label, shape (items, labels)."""
        import numpy as np

        shape = len(self.items), len(self.labels)
        flat = np.bincount(self.item * shape[1] + self.label, minlength=shape[0] * shape[1])
        return flat.reshape(shape)


def tabulate(votes: Iterable[Vote] | VoteTable) -> VoteTable:
    """Return votes as a table; a table is returned as it is, so that several statistics can share one.

    Two equal votes of an annotator on an item are one vote.

    Args:
        votes: in any order; an iterator is read in chunks.

    Raises:
        RoundError: an annotator gave two labels to one item.
    """
    if isinstance(votes, VoteTable):
        return votes
    import numpy as np

    # Looking up a new name gives it the next number.
    numbers: list[defaultdict[str, int]] = [defaultdict() for _ in range(3)]
    for known in numbers:
        known.default_factory = known.__len__
    pieces: list[list[Positions]] = [[np.empty(0, dtype=np.int64)] for _ in range(3)]
    rest = iter(votes)
    while chunk := list(islice(rest, CHUNK)):
        fields = [v.item for v in chunk], [v.annotator for v in chunk], [v.label for v in chunk]
        for named, known, columns in zip(fields, numbers, pieces, strict=True):
            columns.append(np.fromiter(map(known.__getitem__, named), np.int64, len(named)))
    names, ranked = zip(
        *(_by_name(tuple(known), np.concatenate(columns)) for known, columns in zip(numbers, pieces, strict=True)),
        strict=True,
    )
    return _sorted_table(names, ranked)


def _by_name(names: tuple[str, ...], column: Any) -> tuple[tuple[str, ...], Any]:
    """Return sorted names, and a column of positions in the old order as positions in the sorted one."""
    import numpy as np

    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return tuple(names[at] for at in order), rank[column]


def _sorted_table(names: tuple[tuple[str, ...], ...], columns: tuple[Any, ...]) -> VoteTable:
    import numpy as np

    items, annotators, labels = names
    item, annotator, label = columns
    # One number a vote: sorting it sorts the rows. It fits 64 bits up to 2 million items, annotators and labels each.
    key = (item * len(annotators) + annotator) * max(len(labels), 1) + label
    key.sort()
    if len(key):
        key = key[np.append(True, key[1:] != key[:-1])]
    pair, label = np.divmod(key, max(len(labels), 1))
    item, annotator = np.divmod(pair, max(len(annotators), 1))
    twice = np.flatnonzero(pair[1:] == pair[:-1])
    if len(twice):
        first = int(twice[0])
        both = f"{quoted(labels[label[first]])} and {quoted(labels[label[first + 1]])}"
        more = f" (and {len(twice) - 1:,} more cases)" if len(twice) > 1 else ""
        raise RoundError(
            f"item {quoted(items[item[first]])}: annotator {quoted(annotators[annotator[first]])} gave {both}{more}; "
            "keep one vote of each annotator on each item"
        )
    return VoteTable(items, annotators, labels, item, annotator, label)
