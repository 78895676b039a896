"""The group step of dedup: join the mapped parts, and find the pairs of dialogues that may be duplicates.

Dialogues with equal compared texts are one node. Nodes are numbered by the hashes of their texts, so the result does
not depend on the order of parts or rows.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from h2htalk.curation.dedup.dialogue_quality import Quality
from h2htalk.curation.dedup.hashing import KINDS, MappedPart, read_arrays
from h2htalk.curation.dedup.lengths import lengths
from h2htalk.curation.dedup.minhash import VALUES, unique_values
from h2htalk.curation.dedup.similarity import Sides
from h2htalk.data.files import write_problem
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class MappedDialogues:
    """All mapped dialogues, numbered through all parts. Each takes some 70 bytes of memory, and its texts in a file."""

    def __init__(self, parts: Sequence[Path | MappedPart], texts: Path | None) -> None:
        """Read the parts, or their files (`MappedPart.save`), and join their texts in the file `texts`, or in memory.

        Raises:
            DataError: a file is damaged, or `texts` cannot be written.
        """
        import numpy as np

        names = ("language", "hashes", "quality", "ends")
        tables: list[list[Any]] = [
            [np.empty(0, np.uint8)],
            [np.empty((0, 2), np.uint64)],
            [np.empty((0, 4), np.int64)],
            [np.empty((0, 3), np.int64)],
        ]
        self.contaminated: dict[int, Any] = {}
        self.starts: list[int] = []
        count, offset, memory = 0, 0, BytesIO()
        try:
            with texts.open("wb") if texts else memory as file:
                for part in parts:
                    *found, text, notes = read_arrays(part, *names, "texts", "contaminated")
                    found[3] = found[3] + offset
                    for table, array in zip(tables, found, strict=True):
                        table.append(array)
                    for line in notes.tobytes().splitlines():
                        number, evidence = json.loads(line)
                        self.contaminated[count + number] = evidence
                    self.starts.append(count)
                    count, offset = count + len(found[0]), offset + file.write(text.tobytes())
                self._texts: Path | bytes = texts or memory.getvalue()
        except OSError as error:
            raise DataError(f"{texts}: {write_problem(error)}") from error
        self.language, self.hashes, self.quality, self.ends = (np.concatenate(table) for table in tables)

    def __len__(self) -> int:
        return len(self.language)

    @cached_property
    def _bytes(self) -> mmap.mmap | bytes:
        if isinstance(self._texts, bytes):
            return self._texts
        with self._texts.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if len(self) else b""

    def id(self, number: int) -> str:
        return self._text(int(self.ends[number - 1, 2]) if number else 0, int(self.ends[number, 0]))

    def sides(self, number: int) -> Sides:
        """The compared texts of a dialogue."""
        identity, user, companion = map(int, self.ends[number])
        return Sides(LANGUAGES[int(self.language[number])], self._text(identity, user), self._text(user, companion))

    def quality_of(self, number: int) -> Quality:
        review, turns, cut, reply = map(int, self.quality[number])
        return Quality(bool(review), turns, bool(cut), reply, self.id(number))

    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each dialogue's user's and companion's side, (n, 2)."""
        import numpy as np

        return np.diff(self.ends, axis=1)

    def _text(self, start: int, end: int) -> str:
        return self._bytes[start:end].decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Nodes:
    """Groups of equal dialogues: `node` (n,) of each, -1 for contaminated ones; `first` (nodes,), one of each."""

    node: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, mapped: MappedDialogues) -> Nodes:
        """The dialogues with equal language and texts are one node; nodes are in the order of their hashes."""
        import numpy as np

        clean = np.ones(len(mapped), bool)
        clean[list(mapped.contaminated)] = False
        places = np.flatnonzero(clean)
        keys = np.column_stack([mapped.language[places].astype(np.uint64), mapped.hashes[places]])
        _, first, node = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        nodes = np.full(len(mapped), -1, np.int64)
        nodes[places] = node.reshape(-1)
        return cls(nodes, places[first])


class Pairs(NamedTuple):
    """Pairs of nodes, `first < second`, ascending."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]


def group(parts: Sequence[Path | MappedPart], mapped: MappedDialogues, nodes: Nodes) -> Pairs:
    """The pairs of nodes that may be duplicates: equal on one side, or with similar signatures."""
    import numpy as np

    found = [_code(*_equal_sides(mapped, nodes, side)) for side in (0, 1)]
    found += [_code(*pair) for pair in _by_signatures(parts, mapped, nodes)]
    codes = unique_values(np.concatenate(found))
    first, second = codes >> 32, codes & 0xFFFFFFFF
    other = first != second
    return Pairs(first[other], second[other])


def _code(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each pair as one number, to save memory: the smaller node, then the larger."""
    import numpy as np

    return np.minimum(first, second) << 32 | np.maximum(first, second)


def _equal_sides(mapped: MappedDialogues, nodes: Nodes, side: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each node and the next one that is equal on a side.

    Sizes are in bytes here, so some sides that are too short are included; `similarity.match` decides.
    """
    import numpy as np

    members = nodes.first
    language, hashes = mapped.language[members], mapped.hashes[members, side]
    name = "least_references" if side else "least_inputs"
    least = np.array([getattr(lengths(known), name) for known in LANGUAGES])
    enough = mapped.sizes()[members, side] >= least[language]
    places = np.flatnonzero(enough)
    order = places[np.lexsort((places, hashes[places], language[places]))]
    same = (hashes[order][1:] == hashes[order][:-1]) & (language[order][1:] == language[order][:-1])
    return order[:-1][same], order[1:][same]


def _by_signatures(
    sources: Sequence[Path | MappedPart], mapped: MappedDialogues, nodes: Nodes
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The pairs of every kind of signature."""
    import numpy as np

    names = ("row_dialogue", "row_kind", "row_hash", "row_signature")
    parts = [read_arrays(source, *names) for source in sources]
    for part, start in zip(parts, mapped.starts, strict=True):
        part[0] = part[0] + start
    owner, kind, digest, signature = map(np.concatenate, zip(*parts, strict=True))
    del parts
    node = nodes.node[owner]
    for wanted in range(KINDS):
        places = np.flatnonzero((kind == wanted) & (node >= 0))
        # One node for each text: nodes that share it are pairs already, or the text is too short for a pair.
        order = places[np.lexsort((node[places], digest[places]))]
        new = np.ones(len(order), bool)
        new[1:] = digest[order][1:] != digest[order][:-1]
        rows = order[new]
        first, second = candidate_pairs(signature[rows], digest[rows])
        yield node[rows[first]], node[rows[second]]


# --- MinHash LSH ---

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
    """Pairs of texts that may be near duplicates; they depend on the set of texts, not on their order.

    Texts that share a value of their signatures are compared; where too many share it, only those that share the next
    value too, and so on, as in LSH Forest (Bawa, Condie and Ganesan 2005). So a rare n-gram is enough to compare two
    texts, and a common phrase is not, for a thousand texts and for a million. Plain banding (datasketch, rensa,
    datatrove) either misses pairs of short texts or compares thousands of pairs a text: `docs/measurements.md`.

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
