"""Which texts may be near duplicates: MinHash LSH over signatures, in memory that grows with their number alone.

Each of the 64 values opens a tree, as in LSH Forest (Bawa, Condie and Ganesan 2005): texts that share the value stand
together; where too many do, they are told apart by the next value, and the next. So a rare run of characters is
enough to bring two texts together, and one that everybody writes is not, at a thousand texts and at a million.

The pairs depend on the set of texts, never on their order. They are candidates: `dedup_similarity` decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from h2htalk.curation.dedup_shingles import VALUES, unique_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 4  # values that tell a crowd apart
NEIGHBOURS = 8  # compared of a crowd that no value tells apart
LEAST_SHARED = 4  # values of 64: a Jaccard similarity of some 0.06
# In a large set, where chance brings many pairs together that share so few; 15 % edited characters leave some 15.
LEAST_SHARED_OF_MANY, MANY = 6, 50_000
LEAST_COMMON = 9  # where only common phrases are shared; 0.14, more than which 85 % similar texts have
STRONGEST = 32  # candidates of a text
RARE = 16  # texts: what more than these share is a phrase of the whole set
_CHUNK = 1 << 16  # pairs looked at together
_PENDING = 1 << 23  # pairs held before they are made distinct


@dataclass(frozen=True, slots=True)
class LikelyPairs:
    """Pairs of rows, `first < second` in content order, and whether more than common phrases unites each."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    telling: NDArray[np.bool_]


def candidate_pairs(signatures: NDArray[np.uint32], hashes: NDArray[np.uint64]) -> LikelyPairs:
    """Pairs of texts that may be near duplicates.

    Args:
        signatures: (n, 64), of distinct texts of one kind (`dedup_shingles.signatures`).
        hashes: (n,) of the texts, distinct (`text_hash`): they give the order in which ties are settled.

    Returns:
        each pair once, as row numbers of the arguments; at most 64 a text on average, those that share most.
    """
    import numpy as np

    order = np.argsort(hashes, kind="stable")
    rows = signatures[order]
    rare = _rare(rows)
    codes = _shared_enough(rows, rare)
    shared, telling = np.empty(len(codes), np.uint8), np.empty(len(codes), bool)
    for start in range(0, len(codes), _CHUNK):
        part = slice(start, start + _CHUNK)
        shared[part], telling[part] = _told(rows, rare, *_halves(codes[part]))
    strong = _strongest(codes, shared, len(rows))
    first, second = _halves(codes[strong])
    return LikelyPairs(order[first], order[second], telling[strong])


def _shared_enough(rows: NDArray[np.uint32], rare: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Codes (first << 32 | second, ascending) of the pairs of all trees that share enough values."""
    import numpy as np

    done = np.empty(0, np.uint64)
    pending: list[Any] = []
    waiting = 0
    for tree in range(VALUES if len(rows) > 1 else 0):
        for first, second in _in_chunks(_tree_pairs(rows, tree)):
            pending.append(_codes(rows, rare, first, second))
            waiting += len(pending[-1])
            if waiting > _PENDING:
                done, pending, waiting = unique_values(np.concatenate([done, *pending])), [], 0
    return unique_values(np.concatenate([done, *pending]))


def _in_chunks(
    pairs: Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The same pairs, many small arrays put together, large ones cut."""
    import numpy as np

    held: list[Any] = []
    waiting = 0
    for pair in pairs:
        held.append(np.stack(pair))
        waiting += len(pair[0])
        if waiting >= _CHUNK:
            both = np.concatenate(held, axis=1)
            held, waiting = [], 0
            for start in range(0, both.shape[1], _CHUNK):
                yield both[0, start : start + _CHUNK], both[1, start : start + _CHUNK]
    if held:
        both = np.concatenate(held, axis=1)
        yield both[0], both[1]


def _codes(
    rows: NDArray[np.uint32], rare: NDArray[np.bool_], first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The codes of the pairs that share enough: more where common phrases are all that unites them."""
    import numpy as np

    least = LEAST_SHARED if len(rows) <= MANY else LEAST_SHARED_OF_MANY
    enough = (rows[first] == rows[second]).sum(axis=1) >= least
    first, second = first[enough], second[enough]
    shared, telling = _told(rows, rare, first, second)
    enough = telling | (shared >= LEAST_COMMON)
    low, high = np.minimum(first, second)[enough], np.maximum(first, second)[enough]
    return low.astype(np.uint64) << np.uint64(32) | high.astype(np.uint64)


def _tree_pairs(rows: NDArray[np.uint32], tree: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs that stand together in a tree."""
    import numpy as np

    # A small set can afford to compare larger crowds.
    crowd = max(16, min(100, 1_000_000 // len(rows)))
    active = np.arange(len(rows))
    group = np.zeros(len(rows), np.uint64)
    for depth in range(DEPTH):
        key = group << np.uint64(32) | rows[active, (tree + depth) % VALUES].astype(np.uint64)
        order = np.argsort(key, kind="stable")  # content order stays within a group
        active, key = active[order], key[order]
        group = np.concatenate([[0], np.cumsum(key[1:] != key[:-1])]).astype(np.uint64)
        sizes = np.bincount(group.astype(np.int64))[group.astype(np.int64)]
        small = (sizes > 1) & (sizes <= crowd)
        yield from _pairs_within(active[small], group[small], crowd)
        active, group = active[sizes > crowd], group[sizes > crowd]
        if not len(active):
            return
    yield from _pairs_within(active, group, NEIGHBOURS + 1)


def _pairs_within(
    members: NDArray[np.int64], group: NDArray[np.uint64], reach: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of members of one group that stand less than `reach` apart."""
    for offset in range(1, min(reach, len(members))):
        same = group[offset:] == group[:-offset]
        if not same.any():
            return
        yield members[:-offset][same], members[offset:][same]


def _rare(rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which values few texts have, like `rows`."""
    import numpy as np

    rare = np.empty(rows.shape, bool)
    for value in range(VALUES):
        order = np.argsort(rows[:, value], kind="stable")
        column = rows[order, value]
        group = np.cumsum(np.r_[False, column[1:] != column[:-1]])
        rare[order, value] = (np.bincount(group) <= RARE)[group]
    return rare


def _told(
    rows: NDArray[np.uint32], rare: NDArray[np.bool_], first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """How many values each pair shares, and whether what it shares is its own.

    Where a text has values that few others have, and a pair shares hardly any of these, it is a form letter's frame
    that unites the two, filled with other content.
    """
    import numpy as np

    equal = rows[first] == rows[second]
    own = (rare[first] | rare[second]).sum(axis=1)
    both = (equal & rare[first]).sum(axis=1)
    telling = (own < VALUES // 4) | (both >= np.maximum(2, 0.08 * own))
    return equal.sum(axis=1).astype(np.uint8), telling


def _strongest(codes: NDArray[np.uint64], shared: NDArray[np.uint8], rows: int) -> NDArray[np.bool_]:
    """Which pairs are among the strongest of one of their texts; ties by content order."""
    import numpy as np

    kept = np.zeros(len(codes), bool)
    for side in _halves(codes):
        order = np.lexsort((codes, 255 - shared, side))
        sizes = np.bincount(side, minlength=rows)
        rank = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept[order[rank < STRONGEST]] = True
    return kept


def _halves(codes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    import numpy as np

    return (codes >> np.uint64(32)).astype(np.int64), (codes & np.uint64(0xFFFFFFFF)).astype(np.int64)
