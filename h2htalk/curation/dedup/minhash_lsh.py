"""MinHash LSH: pairs of texts that may be near duplicates.

Texts that share a value of their signatures are compared; where too many share it, only those that share the next value
too, and so on, as in LSH Forest (Bawa, Condie and Ganesan 2005). So a rare n-gram is enough to compare two texts, and a
common phrase is not, for a thousand texts and for a million. Plain banding (datasketch, rensa, datatrove) either misses
pairs of short texts or compares thousands of pairs a text: `docs/measurements.md`.

The pairs depend on the set of texts, not on their order. `similarity` decides over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from h2htalk.curation.dedup.minhash import VALUES, unique_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 4  # further values that divide a large group
NEIGHBOURS = 8  # compared in a group that is still large then
# Values of 64 that candidates share: 15 % edited characters leave some 15. More in a large set, where many pairs share
# values by chance: pairs that share only 6 would double the CPU time.
LEAST_SHARED, LEAST_SHARED_OF_MANY, MANY = 6, 8, 10_000
STRONGEST = 32  # candidates of a text
_CHUNK = 1 << 16  # pairs compared at once
_PENDING = 1 << 23  # pairs held before they are made distinct
_ROW, _SHARED = 28, 7  # bits of a pair's code: first row, second row, values that they share


def candidate_pairs(
    signatures: NDArray[np.uint32], hashes: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of texts that may be near duplicates.

    Args:
        signatures: (n, 64), of distinct texts of one kind (`minhash.signatures`).
        hashes: (n,) of the texts, distinct (`text_hash`); their order decides ties.

    Returns:
        (first, second), each pair once, as row numbers of the arguments; for each text at least the 32 pairs that
        share most values.
    """
    import numpy as np

    order = np.argsort(hashes, kind="stable")
    rows = signatures[order]
    codes = np.empty(0, np.int64)
    pending: list[Any] = []
    for value in range(VALUES if len(rows) > 1 else 0):
        for first, second in _together(rows, value):
            for start in range(0, len(first), _CHUNK):
                pending.append(_codes(rows, first[start : start + _CHUNK], second[start : start + _CHUNK]))
        if sum(map(len, pending)) > _PENDING or value == VALUES - 1:
            codes, pending = unique_values(np.concatenate([codes, *pending])), []
    first, second = codes >> (_ROW + _SHARED), codes >> _SHARED & (1 << _ROW) - 1
    shared = codes & (1 << _SHARED) - 1
    strong = _strongest(first, shared) | _strongest(second, shared)
    return order[first[strong]], order[second[strong]]


def _together(rows: NDArray[np.uint32], value: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of rows that share a value; in a large group those that share the next values too."""
    import numpy as np

    # A small set can afford to compare larger groups.
    most = max(16, min(100, 1_000_000 // len(rows)))
    active = np.arange(len(rows))
    group = np.zeros(len(rows), np.uint64)
    for depth in range(DEPTH + 1):
        small = np.ones(len(active), bool)
        if depth < DEPTH:
            key = group << np.uint64(32) | rows[active, (value + depth) % VALUES].astype(np.uint64)
            order = np.argsort(key, kind="stable")  # keeps the order of hashes within a group
            active, key = active[order], key[order]
            group = np.cumsum(np.r_[False, key[1:] != key[:-1]]).astype(np.uint64)
            small = np.bincount(group.astype(np.int64))[group.astype(np.int64)] <= most
        members, groups = active[small], group[small]
        for offset in range(1, min(most if depth < DEPTH else NEIGHBOURS + 1, len(members))):
            same = groups[offset:] == groups[:-offset]
            if not same.any():
                break
            yield members[:-offset][same], members[offset:][same]
        active, group = active[~small], group[~small]
        if not len(active):
            return


def _codes(rows: NDArray[np.uint32], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs that share enough values, each encoded as one number."""
    import numpy as np

    shared = (rows[first] == rows[second]).sum(axis=1)
    enough = shared >= (LEAST_SHARED if len(rows) <= MANY else LEAST_SHARED_OF_MANY)
    low, high = np.minimum(first, second)[enough], np.maximum(first, second)[enough]
    codes: NDArray[np.int64] = low << (_ROW + _SHARED) | high << _SHARED | shared[enough]
    return codes


def _strongest(row: NDArray[np.int64], shared: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each pair is among those of its row that share most values; ties by the order of hashes."""
    import numpy as np

    order = np.lexsort((-shared, row))
    sizes = np.bincount(row)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    strong = np.zeros(len(row), bool)
    strong[order[rank < STRONGEST]] = True
    return strong
