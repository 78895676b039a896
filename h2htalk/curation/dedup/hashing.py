"""The map step of dedup: the hashes, signatures and compared texts of a part, in one file.

The result for a dialogue depends on it and the splits alone, so parts can be mapped anywhere, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from h2htalk.curation.dedup.contamination import SplitIndex
from h2htalk.curation.dedup.dialogue_quality import Quality, quality
from h2htalk.curation.dedup.lengths import lengths
from h2htalk.curation.dedup.minhash import VALUES, plain_side, signatures, text_hash
from h2htalk.curation.outcomes import Record, read_dialogue
from h2htalk.data.files import replacing
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Dialogue
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VIEWS = ("user", "companion", "whole")
KINDS = len(LANGUAGES) * len(VIEWS) * 2  # of signatures that may be compared: a language, a view, a scale
# Where a side is shorter, it has few shingles, and both sides together are compared as well.
_SHORT_SIDE = 40


@dataclass(frozen=True, slots=True)
class MappedPart:
    """The data of a part for comparisons. Arrays by dialogue (n), by text of a view (rows), and bytes.

    `texts` holds for each dialogue its id, the user's side and the companion's side in UTF-8 (with lone surrogates),
    and `ends` (n, 3) their ends. `quality` (n, 4) is `Quality` without the id. `contaminated` holds JSON lines of
    [number, evidence]. `row_*`: the dialogue of a row, its kind, the hash and the signature of its text.
    """

    language: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    quality: NDArray[np.int64]
    ends: NDArray[np.int64]
    texts: NDArray[np.uint8]
    contaminated: NDArray[np.uint8]
    row_dialogue: NDArray[np.int64]
    row_kind: NDArray[np.uint8]
    row_hash: NDArray[np.uint64]
    row_signature: NDArray[np.uint32]

    def save(self, path: Path) -> None:
        """Write the file, completely or not at all; raises DataError."""
        import numpy as np

        arrays = {name: getattr(self, name) for name in self.__slots__}
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)


def read_arrays(part: Path | MappedPart, *names: str) -> list[Any]:
    """Get arrays of a mapped part, or its file, by their names; raises DataError where the file is damaged."""
    import numpy as np

    if isinstance(part, MappedPart):
        return [getattr(part, name) for name in names]
    try:
        with np.load(part, allow_pickle=False) as file:
            return [file[name] for name in names]
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise DataError(f"{part}: damaged; remove it and start the same command again") from error


def map_part(records: Sequence[Record], index: SplitIndex) -> MappedPart:
    """Map a part. Records that are no dialogues are left out; the stage's rule rejects them."""
    import numpy as np

    read = (read_dialogue(record) for record in records)
    dialogues = [dialogue for dialogue in read if isinstance(dialogue, Dialogue)]
    sides = [(_side(dialogue, "user"), _side(dialogue, "companion")) for dialogue in dialogues]
    rows = [
        (number, *view)
        for number, (dialogue, texts) in enumerate(zip(dialogues, sides, strict=True))
        for view in _views(dialogue.language, *texts)
    ]
    blobs = [
        [text.encode("utf-8", "surrogatepass") for text in (dialogue.id, *texts)]
        for dialogue, texts in zip(dialogues, sides, strict=True)
    ]
    lengths = np.array([len(blob) for three in blobs for blob in three], np.int64)
    found = enumerate(index.find(dialogues))
    notes = "".join(json.dumps([number, item.evidence()]) + "\n" for number, item in found if item)
    return MappedPart(
        language=np.array([LANGUAGES.index(d.language) for d in dialogues], np.uint8),
        hashes=np.array([[text_hash(t) for t in texts] for texts in sides], np.uint64).reshape(-1, 2),
        quality=np.array([_numbers(quality(d)) for d in dialogues], np.int64).reshape(-1, 4),
        ends=np.cumsum(lengths).reshape(-1, 3),
        texts=np.frombuffer(b"".join(blob for three in blobs for blob in three), np.uint8),
        contaminated=np.frombuffer(notes.encode(), np.uint8),
        row_dialogue=np.array([row[0] for row in rows], np.int64),
        row_kind=np.array([row[1] for row in rows], np.uint8),
        row_hash=np.array([text_hash(row[3]) for row in rows], np.uint64),
        row_signature=_signed([(row[2], row[3]) for row in rows]),
    )


@lru_cache(maxsize=1)
def open_index(names: tuple[str, ...], least: float) -> SplitIndex:
    """Index the texts of splits, once a process; raises what `load_split` raises."""
    splits = [load_split(name) for name in names]
    return SplitIndex([(split.name, split) for split in splits], least)


def _side(dialogue: Dialogue, role: str) -> str:
    return plain_side([turn.content for turn in dialogue.messages if turn.role == role], dialogue.language)


def _numbers(found: Quality) -> tuple[int, ...]:
    return (int(found.review), found.turns, int(found.cut), found.reply)


def _views(language: Language, user: str, companion: str) -> list[tuple[int, int, str]]:
    """(kind, width of shingles, text) of each text by which a dialogue is compared."""
    least = lengths(language).least_inputs // 2
    texts = {"user": user, "companion": companion}
    views = {view: text for view, text in texts.items() if len(text) >= least}
    if min(len(user), len(companion)) < _SHORT_SIDE and (user or companion):
        views["whole"] = f"{user}\n{companion}"
    return [
        (
            (LANGUAGES.index(language) * len(VIEWS) + VIEWS.index(view)) * 2 + number,
            scale.width,
            text,
        )
        for view, text in views.items()
        for number, scale in enumerate(lengths(language).scales)
        if scale.fits(len(text))
    ]


def _signed(rows: Sequence[tuple[int, str]]) -> NDArray[np.uint32]:
    """The signatures of (width of shingles, text), in order."""
    import numpy as np

    found = np.empty((len(rows), VALUES), np.uint32)
    for width in {width for width, _ in rows}:
        places = [place for place, row in enumerate(rows) if row[0] == width]
        found[places] = signatures([rows[place][1] for place in places], width)
    return found
