"""The group step of dedup: join the mapped parts, and find the pairs of dialogues that may be duplicates.

Dialogues with equal compared texts are one node. Nodes and texts are numbered by their hashes, so the result does not
depend on the order of parts or rows. The bands of all signatures are divided into buckets by their keys; each bucket is
a task of its own (`bucket_pairs`).
"""

from __future__ import annotations

import json
import mmap
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.curation.dedup.compared_texts import Sides, lengths, unique_values
from h2htalk.curation.dedup.signatures import (
    BANDS,
    VALUES,
    MappedPart,
    Quality,
    bands_file,
    read_arrays,
)
from h2htalk.curation.run import in_processes
from h2htalk.data.files import writing
from h2htalk.data.languages import LANGUAGES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 3  # bands that divide a large group
NEIGHBOURS = 8  # compared in a group that is still large then
# Values of 128 that candidates share. More in a large set, where many pairs share values by chance.
LEAST_SHARED, LEAST_SHARED_OF_MANY, MANY = 12, 16, 10_000
STRONGEST = 32  # candidates of a text
_BUCKET = 1 << 22  # bands in a bucket: some 40 bytes each
_CHUNK = 1 << 16  # pairs compared at once
_PENDING = 1 << 23  # pairs held before they are made distinct
_VALUES = "values.npy"
_TEXT, _SHARED = 28, 8  # bits of a pair's code: first text, second text, values that they share


class MappedDialogues:
    """All mapped dialogues, numbered through all parts. Each takes some 70 bytes of memory, and its texts in a file.

    Attributes:
        node: (n,) the group of equal dialogues of each, -1 for contaminated ones.
        first: (nodes,) one dialogue of each node.
    """

    def __init__(self, parts: Sequence[Path | MappedPart], texts: Path | None) -> None:
        """Read the parts, or their files (`MappedPart.save`), and join their texts in the file `texts`, or in memory.

        Raises:
            DataError: a file is damaged, or `texts` cannot be written.
        """
        import numpy as np

        tables: list[list[Any]] = [
            [np.empty(0, np.uint8)],
            [np.empty((0, 2), np.uint64)],
            [np.empty((0, 4), np.int64)],
            [np.empty((0, 3), np.int64)],
        ]
        self.contaminated: dict[int, Any] = {}
        self.starts: list[int] = []
        count, offset, memory = 0, 0, BytesIO()
        with writing(texts or Path()), texts.open("wb") if texts else memory as file:
            for part in parts:
                *found, text, notes = read_arrays(
                    part, "language", "hashes", "quality", "ends", "texts", "contaminated"
                )
                found[3] = found[3] + offset
                for table, array in zip(tables, found, strict=True):
                    table.append(array)
                for line in notes.tobytes().splitlines():
                    number, evidence = json.loads(line)
                    self.contaminated[count + number] = evidence
                self.starts.append(count)
                count, offset = count + len(found[0]), offset + file.write(text.tobytes())
            self._texts: Path | bytes = texts or memory.getvalue()
        self.language, self.hashes, self.quality, self.ends = (np.concatenate(table) for table in tables)
        clean = np.ones(len(self), bool)
        clean[list(self.contaminated)] = False
        places = np.flatnonzero(clean)
        keys = np.column_stack([self.language[places].astype(np.uint64), self.hashes[places]])
        _, first, node = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        self.first: NDArray[np.int64] = places[first]
        self.node = np.full(len(self), -1, np.int64)
        self.node[places] = node.reshape(-1)

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

    def _text(self, start: int, end: int) -> str:
        return self._bytes[start:end].decode("utf-8", "surrogatepass")

    def equal_sides(self, side: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each node and the next one that is equal on a side.

        Sizes are in bytes here, so some sides that are too short are included; `removals.match` decides.
        """
        import numpy as np

        language, hashes = self.language[self.first], self.hashes[self.first, side]
        name = "least_references" if side else "least_inputs"
        least = np.array([getattr(lengths(known), name) for known in LANGUAGES])
        places = np.flatnonzero(np.diff(self.ends, axis=1)[self.first, side] >= least[language])
        order = places[np.lexsort((places, hashes[places], language[places]))]
        same = (hashes[order][1:] == hashes[order][:-1]) & (language[order][1:] == language[order][:-1])
        return order[:-1][same], order[1:][same]


@dataclass(frozen=True, slots=True)
class Texts:
    """The distinct compared texts: `node` (texts,) of one dialogue of each, `of_row` the text of each row or -1.

    One node stands for all with the same text: nodes that share it are pairs by `equal_sides`, or it is too short.
    """

    node: NDArray[np.int64]
    of_row: NDArray[np.int32]
    row_starts: tuple[int, ...]

    @classmethod
    def of(cls, parts: Sequence[Path | MappedPart], mapped: MappedDialogues) -> Texts:
        import numpy as np

        arrays = [read_arrays(part, "row_dialogue", "row_hash") for part in parts]
        sizes = [len(array[0]) for array in arrays]
        owner = np.concatenate([array[0] + start for array, start in zip(arrays, mapped.starts, strict=True)])
        digest = np.concatenate([array[1] for array in arrays])
        node = mapped.node[owner]
        places = np.flatnonzero(node >= 0)
        order = places[np.lexsort((node[places], digest[places]))]
        new = np.ones(len(order), bool)
        new[1:] = digest[order][1:] != digest[order][:-1]
        of_row = np.full(len(owner), -1, np.int32)
        of_row[order] = np.cumsum(new) - 1
        return cls(node[order[new]], of_row, tuple(np.cumsum([0, *sizes])[:-1].tolist()))

    def keyed(self, bands: Sequence[NDArray[np.void]]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The keys and texts of bands, one array of each part; without the rows of contaminated dialogues."""
        import numpy as np

        text = [self.of_row[table["row"] + start] for table, start in zip(bands, self.row_starts, strict=True)]
        joined = np.concatenate(text).astype(np.int64)
        return np.concatenate([table["key"] for table in bands])[joined >= 0], joined[joined >= 0]

    def values(self, parts: Sequence[Path | MappedPart]) -> NDArray[np.uint8]:
        """The values of each text's signature, (texts, 128)."""
        import numpy as np

        found = np.empty((len(self.node), VALUES), np.uint8)
        for part, start in zip(parts, self.row_starts, strict=True):
            (values,) = read_arrays(part, "row_values")
            text = self.of_row[start : start + len(values)]
            found[text[text >= 0]] = values[text >= 0]
        return found


# --- Buckets ---


def find_pairs(
    parts: Sequence[Path | MappedPart], mapped: MappedDialogues, work: Path | None = None, processes: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of nodes that may be duplicates: equal on one side, or with similar signatures.

    Args:
        parts: the mapped parts, or their files.
        mapped: what they hold.
        work: a folder for tables that processes read; not used for parts in memory.
        processes: in which buckets are read.

    Returns:
        (first, second), nodes, `first < second`, each pair once, ascending.
    """
    import numpy as np

    texts = Texts.of(parts, mapped)
    values, count = texts.values(parts), len(texts.of_row) * BANDS // _BUCKET + 1
    found = [_code(*mapped.equal_sides(side)) for side in (0, 1)]
    if work is None:
        bands = [read_arrays(part, "bands")[0] for part in parts]
        codes: Any = iter([bucket_pairs(texts.keyed(bands), values)])
    else:
        np.save(work / _VALUES, values)
        jobs = [(tuple(parts), work, texts, bucket, count) for bucket in range(count)]
        codes = in_processes(_read_bucket, jobs, min(processes, count))
    first, second = strongest_pairs(codes)
    found.append(_code(texts.node[first], texts.node[second]))
    pairs = unique_values(np.concatenate(found))
    first, second = pairs >> 32, pairs & 0xFFFFFFFF
    return first[first != second], second[first != second]


def _code(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each pair as one number, to save memory: the smaller node, then the larger."""
    import numpy as np

    return np.minimum(first, second) << 32 | np.maximum(first, second)


def _read_bucket(parts: Sequence[Path], work: Path, texts: Texts, bucket: int, count: int) -> NDArray[np.int64]:
    """The pairs of one of `count` buckets, which divide the keys evenly."""
    import numpy as np

    bands = []
    for part in parts:
        table = np.load(bands_file(part), mmap_mode="r")
        ends = [bisect_left(table["key"], (bucket + one << 64) // count) for one in (0, 1)]
        bands.append(np.array(table[slice(*ends)]))
    return bucket_pairs(texts.keyed(bands), np.load(work / _VALUES, mmap_mode="r"))


def bucket_pairs(bands: tuple[NDArray[np.uint64], NDArray[np.int64]], values: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The pairs of texts that share a band, as one number each: both texts, and how many values they share.

    Where too many texts share a band, only those that share the next value too are compared, and so on, as in LSH
    Forest (Bawa, Condie and Ganesan 2005): a common phrase makes no pairs, for a thousand texts and for a million.

    Args:
        bands: the key and the text of each band.
        values: (texts, 128), 8 bits of each value of a signature.
    """
    import numpy as np

    key, text = bands
    order = np.lexsort((text, key))
    key, text = key[order], text[order]
    new = np.ones(len(key), bool)
    new[1:] = (key[1:] != key[:-1]) | (text[1:] != text[:-1])
    key, text = key[new], text[new]
    group = np.cumsum(np.diff(key, prepend=key[:1]) != 0)
    # A small set can afford to compare larger groups.
    most = max(16, min(100, 1_000_000 // max(len(values), 1)))
    least = LEAST_SHARED if len(values) <= MANY else LEAST_SHARED_OF_MANY
    found = [np.empty(0, np.int64)]
    for depth in range(DEPTH + 1):
        small = np.bincount(group)[group] <= most if depth < DEPTH else np.ones(len(group), bool)
        members, groups = text[small], group[small]
        for offset in range(1, most if depth < DEPTH else NEIGHBOURS + 1):
            same = np.flatnonzero(groups[offset:] == groups[:-offset])
            if not len(same):
                break
            for start in range(0, len(same), _CHUNK):
                places = same[start : start + _CHUNK]
                found.append(_similar(members[places], members[places + offset], values, least))
        key, text, group = key[~small], text[~small], group[~small]
        if not len(text):
            break
        divided = group << 8 | values[text, (key % VALUES + depth) % VALUES]
        order = np.argsort(divided, kind="stable")  # keeps the order of texts within a group
        key, text, divided = key[order], text[order], divided[order]
        group = np.cumsum(np.diff(divided, prepend=divided[:1]) != 0)
    return unique_values(np.concatenate(found))


def _similar(
    first: NDArray[np.int64], second: NDArray[np.int64], values: NDArray[np.uint8], least: int
) -> NDArray[np.int64]:
    """The codes of the pairs that share enough values."""
    import numpy as np

    shared = (values[first] == values[second]).sum(axis=1)
    enough = shared >= least
    low, high = np.minimum(first, second)[enough], np.maximum(first, second)[enough]
    codes: NDArray[np.int64] = low << (_TEXT + _SHARED) | high << _SHARED | shared[enough]
    return codes


def strongest_pairs(buckets: Iterable[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of all buckets, each once: for each text at least the 32 that share most values."""
    import numpy as np

    codes, pending = np.empty(0, np.int64), []
    for found in buckets:
        pending.append(found)
        if sum(map(len, pending)) > _PENDING:
            codes, pending = unique_values(np.concatenate([codes, *pending])), []
    codes = unique_values(np.concatenate([codes, *pending]))
    first, second = codes >> (_TEXT + _SHARED), codes >> _SHARED & (1 << _TEXT) - 1
    strong = np.zeros(len(codes), bool)
    for text in (first, second):
        order = np.lexsort((-(codes & (1 << _SHARED) - 1), text))
        sizes = np.bincount(text)
        rank = np.arange(len(text)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        strong[order[rank < STRONGEST]] = True
    return first[strong], second[strong]
