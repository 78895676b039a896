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


class MappedDialogues:
    """All mapped dialogues without items of splits. Each takes some 70 bytes of memory, and its texts in a file.

    `contaminated` is the evidence of each dialogue with an item of a split, by id. Of each distinct text there are its
    `owner`, one dialogue that stands for all (others that share it are pairs by their equal sides, or it is too short),
    its kind (`kinds`; texts of one kind are compared), and `values` (texts, 128), 8 bits of each value of its
    signature; None where they are in files of `folder`.
    """

    def __init__(self, parts: Iterable[Mapping[str, Any]], folder: Path | None = None) -> None:
        """Join parts (`map_part`); their texts and signatures in files of `folder`, or in memory."""
        found = {name: [array] for name, array in map_part([], SplitIndex([], 1)).items()}
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
                count = count + len(arrays["language"])
                size = size + file.write(arrays.pop("texts").tobytes())
                for name, array in arrays.items():
                    found[name].append(array)
            file.flush()
            in_memory = file.getvalue() if isinstance(file, BytesIO) else b""
            self._texts: Any = (
                mmap(file.fileno(), 0, access=ACCESS_READ) if folder and size else in_memory
            )
        joined = {name: np.concatenate(found.pop(name)) for name in [*found]}
        self.contaminated: dict[str, Any] = dict(
            map(json.loads, joined["contaminated"].tobytes().splitlines())
        )
        order = np.lexsort((*joined["hashes"].T[::-1], joined["language"]))
        self.language, self.hashes = joined["language"][order], joined["hashes"][order]
        self._safety = joined["safety"][order]
        self._quality = joined["quality"][order]
        self._bounds = joined["bounds"][order]
        owner = np.argsort(order)[joined["dialogue"]]
        rows = np.lexsort((owner, joined["key"]))
        rows = rows[np.diff(joined["key"][rows], prepend=~joined["key"][rows[:1]]) != 0]
        self.owner, self.folder = owner[rows], folder
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
        places = np.arange(len(self))
        if len(sides) == 1:
            name = ("least_inputs", "least_references")[sides[0]]
            least = np.array([lengths(known)[name] for known in LANGUAGES])
            places = np.flatnonzero(np.diff(self._bounds)[:, 1 + sides[0]] >= least[self.language])
        keys = [self.language[places], *self.hashes[places][:, sides].T]
        order = np.lexsort((places, *keys))
        same = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
        return places[order][:-1][same], places[order][1:][same]


def find_pairs(mapped: MappedDialogues, processes: int = 1) -> Pairs:
    """The pairs of dialogues that may be duplicates: equal on a side, or with similar signatures.

    Two arrays of numbers of dialogues, `first < second`, each pair once, ascending. `processes` read bands from files.
    """
    bands: Iterable[NDArray[np.int64]] = (
        band_pairs(band, mapped.kinds, mapped.values) for band in range(BANDS)
    )
    if mapped.folder:
        bands = map(
            np.load,
            in_processes(write_band_pairs, [(n, mapped.folder) for n in range(BANDS)], processes),
        )
    # The pairs of all bands, each once: for each text at least the 32 that share most values.
    codes = np.empty(0, np.int64)
    pending = []
    for of_band in bands:
        pending.append(of_band)
        if sum(map(len, pending)) > _PENDING:
            codes = unique_values(np.concatenate([codes, *pending]))
            pending = []
    codes = unique_values(np.concatenate([codes, *pending]))
    strong = np.zeros(len(codes), bool)
    places = (_TEXT + _SHARED, _SHARED)
    for place in places:
        text = (codes >> place).astype(np.int32) & (1 << _TEXT) - 1
        order = np.lexsort((~codes.astype(np.uint8), text))
        sizes = np.bincount(text)
        strong[
            order[np.arange(len(text)) - np.repeat(np.cumsum(sizes) - sizes, sizes) < STRONGEST]
        ] = True
        del text, order  # of a million dialogues an array takes 350 MB
    codes = codes[strong]
    found = [tuple(mapped.owner[codes >> place & (1 << _TEXT) - 1] for place in places)]
    found += [mapped.equal_sides(*sides) for sides in ((0,), (1,), (0, 1))]
    # Each pair as one number, to save memory.
    codes = unique_values(
        np.concatenate([np.minimum(*pair) << 32 | np.maximum(*pair) for pair in found])
    )
    codes = codes[codes >> 32 != codes & 0xFFFFFFFF]
    return codes >> 32, codes & 0xFFFFFFFF


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
    found = [np.empty(0, np.int64)]
    column = band * VALUES_OF_BAND
    for place in range(VALUES_OF_BAND + DEPTH):
        group = group << 8 | values[text, (column + place) % VALUES]
        if place + 1 < VALUES_OF_BAND:
            continue
        codes = np.sort(group << _TEXT | text)
        text = codes & (1 << _TEXT) - 1
        group = codes >> _TEXT
        group = np.cumsum(np.diff(group, prepend=group[:1]) != 0)
        last = place + 1 == VALUES_OF_BAND + DEPTH
        small = np.bincount(group)[group] <= (len(text) if last else most)
        members = text[small]
        groups = group[small]
        for offset in range(1, NEIGHBOURS + 1 if last else most):
            same = np.flatnonzero(groups[offset:] == groups[:-offset])
            if not len(same):
                break
            for start in range(0, len(same), _CHUNK):
                places = same[start : start + _CHUNK]
                first = members[places]
                second = members[places + offset]
                shared = (values[first] == values[second]).sum(axis=1)
                pair = (
                    np.minimum(first, second) << (_TEXT + _SHARED)
                    | np.maximum(first, second) << _SHARED
                    | shared
                )
                found.append(pair[shared >= least])
        text = text[~small]
        group = group[~small]
    return unique_values(np.concatenate(found))
