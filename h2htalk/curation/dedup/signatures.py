"""The map step of dedup: the compared texts, hashes and MinHash signatures of a part.

The result for a dialogue depends on it and the splits alone, so parts can be mapped anywhere, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from h2htalk.curation.dedup.compared_texts import lengths, plain_side, shingle_hashes, text_hash, unique_values
from h2htalk.curation.dedup.contamination import SplitIndex
from h2htalk.curation.outcomes import Record, read_dialogue
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


def map_part(records: Sequence[Record], index: SplitIndex) -> dict[str, Any]:
    """Map a part. Records that are no dialogues are left out; the stage's rule rejects them.

    Returns:
        Arrays by name. `contaminated`: a JSON line of [id, evidence] for each dialogue with an item of a split.
        Of each other dialogue: `language`, `hashes` (n, 2) of the user's and the companion's text, `quality` (n, 4)
        without the id, and `bounds` (n, 4) in `texts` (UTF-8, with lone surrogates): where its id and the two texts
        begin, and the end. Of each text by which one is compared: `dialogue`, its number; `kind`, texts of another
        kind are not compared; `key`, a hash of text and kind; `values` (texts, 128), 8 bits of each value of the
        signature (Li and König 2010).
    """
    import numpy as np

    read = [dialogue for record in records if isinstance(dialogue := read_dialogue(record), Dialogue)]
    found = list(zip(read, index.find(read), strict=True))
    notes = "".join(json.dumps([dialogue.id, evidence]) + "\n" for dialogue, evidence in found if evidence)
    dialogues = [dialogue for dialogue, evidence in found if not evidence]
    sides = [[_side(dialogue, role) for role in ("user", "companion")] for dialogue in dialogues]
    blobs = [
        text.encode("utf-8", "surrogatepass")
        for dialogue, texts in zip(dialogues, sides, strict=True)
        for text in (dialogue.id, *texts)
    ]
    ends = np.cumsum([len(blob) for blob in blobs], dtype=np.int64).reshape(-1, 3)
    rows = [
        (number, *view)
        for number, (dialogue, texts) in enumerate(zip(dialogues, sides, strict=True))
        for view in _views(dialogue.language, *texts)
    ]
    return {
        "contaminated": np.frombuffer(notes.encode(), np.uint8),
        "language": np.array([LANGUAGES.index(d.language) for d in dialogues], np.uint8),
        "hashes": np.array([[text_hash(t) for t in texts] for texts in sides], np.uint64).reshape(-1, 2),
        "quality": np.array([tuple(map(int, quality(d)[:4])) for d in dialogues], np.int64).reshape(-1, 4),
        "bounds": np.column_stack([np.append(0, ends[:, 2])[:-1], ends]),
        "texts": np.frombuffer(b"".join(blobs), np.uint8),
        "dialogue": np.array([row[0] for row in rows], np.int64),
        "kind": np.array([row[1] for row in rows], np.uint8),
        "key": np.array([text_hash(f"{kind} {text}") for _, kind, _, text in rows], np.uint64),
        "values": np.array([signature(text, width) for *_, width, text in rows], np.uint32)
        .astype(np.uint8)
        .reshape(-1, VALUES),
    }


@lru_cache(maxsize=1)
def open_index(names: tuple[str, ...], least: float) -> SplitIndex:
    """Index the texts of splits, once a process; raises what `load_split` raises."""
    return SplitIndex([load_split(name) for name in names], least)


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
