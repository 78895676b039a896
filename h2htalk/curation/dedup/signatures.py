"""The map step of dedup: the compared texts, hashes and MinHash signatures of a part, in two files.

The result for a dialogue depends on it and the splits alone, so parts can be mapped anywhere, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from h2htalk.curation.dedup.compared_texts import (
    lengths,
    mixed,
    plain_side,
    shingle_hashes,
    text_hash,
    unique_values,
)
from h2htalk.curation.dedup.contamination import SplitIndex
from h2htalk.curation.outcomes import Record, read_dialogue
from h2htalk.data.files import replacing
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Dialogue
from h2htalk.data.splits import load_split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Where a side is shorter, it has few shingles, and both sides together are compared as well.
_SHORT_SIDE = 40
VALUES = 128  # of a signature
# Bands of three values: two texts with the Jaccard similarity J share one with the probability 1 - (1 - J^3)^42.
BANDS, VALUES_OF_BAND = 42, 3
_BATCH = 1 << 16  # shingles signed at once: each takes 512 bytes meanwhile
# A complete reply ends with one of these, or with a sign that is no letter (emoji).
_ENDS = frozenset(".!?。！？…~～♪」』”’\"')）】]》>*")


class Quality(NamedTuple):
    """Which of two duplicates is better, compared field by field: the smallest is the best."""

    review: bool  # safety could not decide
    turns: int  # negative number of turns
    cut: bool  # ends with the user, or within a sentence
    reply: int  # negative number of characters of the companion's turns
    id: str


def quality(dialogue: Dialogue) -> Quality:
    """The quality of a dialogue, a function of the dialogue alone."""
    replies = [turn.content for turn in dialogue.messages if turn.role == "companion"]
    return Quality(
        dialogue.metadata.get("safety", {}).get("action") == "review",
        -len(dialogue.messages),
        not is_complete(dialogue),
        -sum(map(len, replies)),
        dialogue.id,
    )


def is_complete(dialogue: Dialogue) -> bool:
    """Whether the last turn is the companion's and ends like a sentence."""
    last = dialogue.messages[-1]
    end = last.content.rstrip()[-1:]
    return last.role == "companion" and (end in _ENDS or (not end.isalnum() and end not in ",，、;；:：-"))


@dataclass(frozen=True, slots=True)
class MappedPart:
    """The data of a part for comparisons. Arrays by dialogue (n), by text of a view (rows), and bytes.

    `texts` holds for each dialogue its id, the user's side and the companion's side in UTF-8 (with lone surrogates),
    and `ends` (n, 3) their ends. `quality` (n, 4) is `Quality` without the id. `contaminated` holds JSON lines of
    [number, evidence]. `row_*`: the dialogue of a row, the hash of its text and kind, and 8 bits of each value
    of its signature (Li and König 2010). `bands`: `key` and `row` of each band, by key.
    """

    language: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    quality: NDArray[np.int64]
    ends: NDArray[np.int64]
    texts: NDArray[np.uint8]
    contaminated: NDArray[np.uint8]
    row_dialogue: NDArray[np.int64]
    row_hash: NDArray[np.uint64]
    row_values: NDArray[np.uint8]
    bands: NDArray[np.void]

    def save(self, path: Path) -> None:
        """Write the bands, then the other arrays; each file completely or not at all."""
        import numpy as np

        with replacing(bands_file(path)) as temporary, temporary.open("wb") as file:
            np.save(file, self.bands)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **{name: getattr(self, name) for name in self.__slots__ if name != "bands"})


def bands_file(part: Path) -> Path:
    """The file of a mapped part's bands."""
    return part.with_suffix(".bands.npy")


def read_arrays(part: Path | MappedPart, *names: str) -> list[Any]:
    """Get arrays of a mapped part, or its file, by their names."""
    import numpy as np

    if isinstance(part, MappedPart):
        return [getattr(part, name) for name in names]
    with np.load(part, allow_pickle=False) as file:
        return [file[name] for name in names]


def map_part(records: Sequence[Record], index: SplitIndex) -> MappedPart:
    """Map a part. Records that are no dialogues are left out; the stage's rule rejects them."""
    import numpy as np

    read = (read_dialogue(record) for record in records)
    dialogues = [dialogue for dialogue in read if isinstance(dialogue, Dialogue)]
    sides = [[_side(dialogue, role) for role in ("user", "companion")] for dialogue in dialogues]
    blobs = [
        text.encode("utf-8", "surrogatepass")
        for dialogue, texts in zip(dialogues, sides, strict=True)
        for text in (dialogue.id, *texts)
    ]
    found = enumerate(index.find(dialogues))
    notes = "".join(json.dumps([number, item]) + "\n" for number, item in found if item)
    rows = [
        (number, *view)
        for number, (dialogue, texts) in enumerate(zip(dialogues, sides, strict=True))
        for view in _views(dialogue.language, *texts)
    ]
    kinds = mixed(np.array([row[1] + 1 for row in rows], np.uint64))
    signatures = np.array([signature(text, width) for _, _, width, text in rows], np.uint32).reshape(-1, VALUES)
    return MappedPart(
        language=np.array([LANGUAGES.index(d.language) for d in dialogues], np.uint8),
        hashes=np.array([[text_hash(t) for t in texts] for texts in sides], np.uint64).reshape(-1, 2),
        quality=np.array([tuple(map(int, quality(d)[:4])) for d in dialogues], np.int64).reshape(-1, 4),
        ends=np.cumsum([len(blob) for blob in blobs], dtype=np.int64).reshape(-1, 3),
        texts=np.frombuffer(b"".join(blobs), np.uint8),
        contaminated=np.frombuffer(notes.encode(), np.uint8),
        row_dialogue=np.array([row[0] for row in rows], np.int64),
        row_hash=np.array([text_hash(row[3]) for row in rows], np.uint64) ^ kinds,
        row_values=(signatures >> np.uint32(8)).astype(np.uint8),
        bands=_bands(signatures, kinds),
    )


@lru_cache(maxsize=1)
def open_index(names: tuple[str, ...], least: float) -> SplitIndex:
    """Index the texts of splits, once a process; raises what `load_split` raises."""
    splits = [load_split(name) for name in names]
    return SplitIndex([(split.name, split) for split in splits], least)


def _side(dialogue: Dialogue, role: str) -> str:
    return plain_side([turn.content for turn in dialogue.messages if turn.role == role], dialogue.language)


def _views(language: Language, user: str, companion: str) -> Iterator[tuple[int, int, str]]:
    """(kind, width of shingles, text) of each text by which a dialogue is compared, with texts of the same kind."""
    known = lengths(language)
    views = [text if len(text) >= known.least_inputs // 2 else "" for text in (user, companion)]
    views.append(f"{user}\n{companion}" if min(len(user), len(companion)) < _SHORT_SIDE and user + companion else "")
    for view, text in enumerate(views):
        for scale, (width, least, most) in enumerate(known.scales):
            if text and least <= len(text) <= most:
                yield LANGUAGES.index(language) << 4 | view << 1 | scale, width, text


@lru_cache(maxsize=1)
def _minhash() -> Any:
    from datasketch import MinHash

    return MinHash(num_perm=VALUES, hashfunc=int)


def signature(text: str, width: int) -> NDArray[np.uint32]:
    """The MinHash signature of a non-empty text, (128,).

    Two texts share each value with the probability of the Jaccard similarity of their shingles (Broder 1997).
    """
    import numpy as np

    minhash = _minhash()
    minhash.clear()
    hashes = unique_values(shingle_hashes([text], width)[0] >> np.uint64(32))
    for start in range(0, len(hashes), _BATCH):
        minhash.update_batch(hashes[start : start + _BATCH].tolist())
    found: NDArray[np.uint32] = minhash.digest()
    return found


def _bands(signatures: NDArray[np.uint32], kinds: NDArray[np.uint64]) -> NDArray[np.void]:
    """The key of each band of each row: a hash of its kind, its number and its values."""
    import numpy as np

    values = signatures[:, : BANDS * VALUES_OF_BAND].reshape(-1, BANDS, VALUES_OF_BAND).astype(np.uint64)
    keys: Any = kinds[:, None] + np.arange(BANDS, dtype=np.uint64)
    for place in range(VALUES_OF_BAND):
        keys = mixed(keys ^ values[:, :, place])
    found = np.empty(keys.size, [("key", np.uint64), ("row", np.uint32)])
    found["key"] = keys.reshape(-1)
    found["row"] = np.repeat(np.arange(len(keys)), BANDS)
    return found[np.argsort(found["key"], kind="stable")]
