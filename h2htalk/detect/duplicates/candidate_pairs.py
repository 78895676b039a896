"""The group step of dedup: join the mapped parts, and find the pairs of dialogues that may be duplicates.

Dialogues and texts are numbered by their hashes, so the result does not depend on the order of parts or rows. Each band
of the signatures is a task of its own (`band_pairs`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2htalk.data.files import replacing, writing
from h2htalk.data.languages import LANGUAGES
from h2htalk.detect.duplicates.compared_texts import Sides, lengths, unique_values
from h2htalk.detect.duplicates.contamination import SplitIndex
from h2htalk.detect.duplicates.signatures import BANDS, VALUES, VALUES_OF_BAND, map_part
from h2htalk.parallel import in_processes

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

DEPTH = 3  # further values that divide a large group
NEIGHBOURS = 8  # compared in a group that is still large then
# Values of 128 that candidates share. More in a large set, where many pairs share values by chance.
LEAST_SHARED, LEAST_SHARED_OF_MANY, MANY = 12, 16, 10_000
STRONGEST = 32  # candidates of a text
_CHUNK = 1 << 16  # pairs compared at once
_PENDING = 1 << 23  # pairs held before they are made distinct
_TEXT, _SHARED = 28, 8  # bits of a pair's code: first text, second text, values that they share
_FIRST, _SECOND = _TEXT + _SHARED, _SHARED  # by how much a code is shifted to read its texts
_ONE_TEXT = (1 << _TEXT) - 1
# The name in `lengths` of how long the user's side, and the companion's, must be to be compared alone.
_LEAST_OF_SIDE = {0: "least_inputs", 1: "least_references"}


class MappedDialogues:
    """All mapped dialogues without items of splits. Each takes some 70 bytes of memory, and its texts in a file.

    `contaminated` is the evidence of each dialogue with an item of a split, by id. Of each distinct text there are its
    `owner`, one dialogue that stands for all (others that share it are pairs by their equal sides, or it is too short),
    its kind (`kinds`; texts of one kind are compared), and `values` (texts, 128), 8 bits of each value of its
    signature; None where they are in files of `folder`.
    """

    def __init__(self, parts: Iterable[Mapping[str, Any]], folder: Path | None = None) -> None:
        """Join parts (`map_part`); their texts and signatures in files of `folder`, or in memory."""
        arrays_of_parts = {name: [array] for name, array in map_part([], SplitIndex([], 1)).items()}
        count = size = 0
        with (
            writing(folder or Path()),
            (folder / "texts.bin").open("w+b") if folder else BytesIO() as file,
        ):
            for part in parts:
                arrays = {
                    **part,
                    "bounds": part["bounds"] + size,
                    "dialogue": part["dialogue"] + count,
                }
                count += len(arrays["language"])
                size += file.write(arrays.pop("texts").tobytes())
                for name, array in arrays.items():
                    arrays_of_parts[name].append(array)
            file.flush()
            self._texts: Any = b""
            if isinstance(file, BytesIO):
                self._texts = file.getvalue()
            elif size:
                self._texts = mmap(file.fileno(), 0, access=ACCESS_READ)
        joined = {name: np.concatenate(arrays_of_parts.pop(name)) for name in [*arrays_of_parts]}
        evidence = joined["contaminated"].tobytes().splitlines()
        self.contaminated: dict[str, Any] = dict(map(json.loads, evidence))
        order = np.lexsort((*joined["hashes"].T[::-1], joined["language"]))
        self.language = joined["language"][order]
        self.hashes = joined["hashes"][order]
        self._safety = joined["safety"][order]
        self._quality = joined["quality"][order]
        self._bounds = joined["bounds"][order]
        owner = np.argsort(order)[joined["dialogue"]]
        rows = np.lexsort((owner, joined["key"]))
        keys = joined["key"][rows]
        rows = rows[np.diff(keys, prepend=~keys[:1]) != 0]
        self.owner = owner[rows]
        self.folder = folder
        self.kinds: Any = joined["kind"][rows]
        self.values: Any = joined["values"][rows]
        if folder:
            np.save(folder / "kinds.npy", self.kinds)
            np.save(folder / "values.npy", self.values)
            self.kinds = self.values = None

    def __len__(self) -> int:
        return len(self.language)

    def id(self, number: int) -> str:
        return self._text(*self._bounds[number, :2].tolist())

    def sides(self, number: int) -> Sides:
        """The compared texts of a dialogue."""
        _, user, companion, end = self._bounds[number].tolist()
        return Sides(
            language=LANGUAGES[int(self.language[number])],
            user=self._text(user, companion),
            companion=self._text(companion, end),
            safety=int(self._safety[number]),
        )

    def quality_of(self, number: int) -> tuple[int | str, ...]:
        """As `signatures.quality`."""
        return (*self._quality[number].tolist(), self.id(number))

    def _text(self, start: int, end: int) -> str:
        return str(self._texts[start:end], "utf-8", "surrogatepass")

    def equal_sides(self, *sides: int) -> Pairs:
        """Each dialogue and the next one that is equal on a side (0: the user's) long enough, or on both.

        Sizes are in bytes here, so some sides that are too short are included; `compared_texts.match` decides.
        """
        numbers = np.arange(len(self))
        if len(sides) == 1:
            side = sides[0]
            name = _LEAST_OF_SIDE[side]
            least = np.array([lengths(language)[name] for language in LANGUAGES])
            sizes = np.diff(self._bounds)[:, 1 + side]
            numbers = np.flatnonzero(sizes >= least[self.language])
        keys = [self.language[numbers], *self.hashes[numbers][:, sides].T]
        order = np.lexsort((numbers, *keys))
        same = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
        ordered = numbers[order]
        return ordered[:-1][same], ordered[1:][same]


def find_pairs(mapped: MappedDialogues, processes: int = 1) -> Pairs:
    """The pairs of dialogues that may be duplicates: equal on a side, or with similar signatures.

    Two arrays of numbers of dialogues, `first < second`, each pair once, ascending. `processes` read bands from files.
    """
    bands: Iterable[NDArray[np.int64]]
    if mapped.folder:
        tasks = [(band, mapped.folder) for band in range(BANDS)]
        bands = map(np.load, in_processes(write_band_pairs, tasks, processes))
    else:
        bands = (band_pairs(band, mapped.kinds, mapped.values) for band in range(BANDS))
    codes = _strongest(_distinct_codes(bands))
    firsts = mapped.owner[codes >> _FIRST & _ONE_TEXT]
    seconds = mapped.owner[codes >> _SECOND & _ONE_TEXT]
    pairs = [(firsts, seconds)]
    pairs += [mapped.equal_sides(*sides) for sides in ((0,), (1,), (0, 1))]
    # Each pair as one number, to save memory.
    numbers = [np.minimum(*pair) << 32 | np.maximum(*pair) for pair in pairs]
    del codes, firsts, seconds, pairs
    distinct = unique_values(np.concatenate(numbers))
    distinct = distinct[distinct >> 32 != distinct & 0xFFFFFFFF]
    return distinct >> 32, distinct & 0xFFFFFFFF


def _distinct_codes(bands: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The codes of the pairs of all bands, each once."""
    codes = np.empty(0, np.int64)
    pending = []
    for band in bands:
        pending.append(band)
        if sum(map(len, pending)) > _PENDING:
            codes = unique_values(np.concatenate([codes, *pending]))
            pending = []
    return unique_values(np.concatenate([codes, *pending]))


def _strongest(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each text at least the 32 pairs that share most values."""
    strong = np.zeros(len(codes), bool)
    for shift in (_FIRST, _SECOND):
        text = (codes >> shift).astype(np.int32) & _ONE_TEXT
        order = np.lexsort((~codes.astype(np.uint8), text))
        sizes = np.bincount(text)
        first_ranks = np.cumsum(sizes) - sizes
        rank = np.arange(len(text)) - np.repeat(first_ranks, sizes)
        strong[order[rank < STRONGEST]] = True
        del text, order, rank  # of a million dialogues an array takes 350 MB
    return codes[strong]


def write_band_pairs(band: int, folder: Path) -> Path:
    """Write `band_pairs` of the files of `MappedDialogues` into a file of its folder."""
    kinds, values = (np.load(folder / name, mmap_mode="r") for name in ("kinds.npy", "values.npy"))
    with replacing(folder / f"pairs-{band:02}.npy") as temporary, temporary.open("wb") as file:
        np.save(file, band_pairs(band, kinds, values))
    return folder / f"pairs-{band:02}.npy"


def band_pairs(band: int, kinds: NDArray[np.uint8], values: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The pairs of texts that share a band, as one number each: both texts, and how many values they share.

    Where too many texts share a band, only those that share the next value too are compared, and so on, as in LSH
    Forest (Bawa, Condie and Ganesan 2005): a common phrase makes no pairs, for a thousand texts and for a million.
    """
    # A small set can afford to compare larger groups.
    most = max(16, min(100, 1_000_000 // max(len(kinds), 1)))
    least = LEAST_SHARED if len(kinds) <= MANY else LEAST_SHARED_OF_MANY
    text = np.arange(len(kinds))
    group = kinds.astype(np.int64)
    found_codes = [np.empty(0, np.int64)]
    for depth in range(1, VALUES_OF_BAND + DEPTH + 1):
        column = band * VALUES_OF_BAND + depth - 1
        group = group << 8 | values[text, column % VALUES]
        if depth < VALUES_OF_BAND:
            continue
        codes = np.sort(group << _TEXT | text)
        text = codes & _ONE_TEXT
        group = codes >> _TEXT
        group = np.cumsum(np.diff(group, prepend=group[:1]) != 0)
        last = depth == VALUES_OF_BAND + DEPTH
        small = np.bincount(group)[group] <= (len(text) if last else most)
        members = text[small]
        groups = group[small]
        for offset in range(1, NEIGHBOURS + 1 if last else most):
            same = np.flatnonzero(groups[offset:] == groups[:-offset])
            if not len(same):
                break
            for start in range(0, len(same), _CHUNK):
                indices = same[start : start + _CHUNK]
                first = members[indices]
                second = members[indices + offset]
                shared = (values[first] == values[second]).sum(axis=1)
                smaller = np.minimum(first, second)
                larger = np.maximum(first, second)
                pair = smaller << _FIRST | larger << _SECOND | shared
                found_codes.append(pair[shared >= least])
        text = text[~small]
        group = group[~small]
    return unique_values(np.concatenate(found_codes))
