"""The map step of dedup: the compared texts, hashes and MinHash signatures of a part.

The result for a dialogue depends on it and the splits alone, so parts can be mapped anywhere, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Dialogue, Role, noted_tags
from h2htalk.data.splits import load_split
from h2htalk.detect.duplicates.compared_texts import lengths, plain, text_hash, unique_values
from h2htalk.detect.duplicates.contamination import SplitIndex

# Where a side is shorter, it has few shingles, and both sides together are compared as well.
_SHORT_SIDE = 40
VALUES = 128  # of a signature
# Bands of three values: two texts with the Jaccard similarity J share one with the probability 1 - (1 - J^3)^42.
BANDS, VALUES_OF_BAND = 42, 3
_BATCH = 1 << 16  # shingles signed at once: each takes 512 bytes meanwhile
# A complete reply ends with one of these, or with a sign that is no letter (emoji).
_ENDS = frozenset(".!?。！？…~～♪」』”’\"')）】]》>*")
_CONTINUING = ",，、;；:：-"  # an empty text continues too


def quality(dialogue: Dialogue) -> tuple[bool, int, bool, int, str]:
    """A sort key, the best of duplicates first: a dialogue that safety decided, the one of most turns, one that is
    complete (the companion's last turn ends like a sentence), the one of the longest replies, the smallest id."""
    waits = dialogue.metadata.get("safety", {}).get("action") == "review"
    last = dialogue.messages[-1]
    end = last.content.rstrip()[-1:]
    ends_as_sentence = end in _ENDS or (not end.isalnum() and end not in _CONTINUING)
    complete = last.role == "companion" and ends_as_sentence
    replies = [turn.content for turn in dialogue.messages if turn.role == "companion"]
    length = sum(map(len, replies))
    return waits, -len(dialogue.messages), not complete, -length, dialogue.id


def safety_decision(metadata: Mapping[str, Any]) -> tuple[object, ...]:
    """What was decided on a dialogue's safety: whether it waits for people, its risk, a possible crisis, its tags."""
    noted = metadata.get("safety")
    safety: Mapping[str, Any] = noted if isinstance(noted, Mapping) else {}
    waits = safety.get("action") == "review"
    risk = str(safety.get("risk", "none"))
    possible = bool(safety.get("possible_crisis"))
    return waits, risk, possible, sorted(noted_tags(metadata))


def _safety_hash(metadata: Mapping[str, Any]) -> int:
    if "safety" not in metadata:
        return 0
    return text_hash(json.dumps(safety_decision(metadata)))


@dataclass(frozen=True, slots=True)
class ComparedText:
    """A text by which a dialogue is compared: the dialogue's number in its part, and a row of three arrays of
    `map_part`."""

    dialogue: int
    kind: int
    key: int
    values: NDArray[np.uint32]


def map_part(part: Sequence[Dialogue], index: SplitIndex) -> dict[str, Any]:
    """Map the dialogues of a part. Returns arrays by name.

    `contaminated`: a JSON line of [id, evidence] for each dialogue with an item of a split. Of each other dialogue:
    `language`, `hashes` (n, 2) of the user's and the companion's text, `safety`, a hash of its `safety_decision` or 0,
    `quality` (n, 4) without the id, and `bounds` (n, 4) in `texts` (UTF-8, with lone surrogates): where its id and the
    two texts begin, and the end. Of each text by which one is compared: `dialogue`, its number; `kind`, texts of
    another kind are not compared; `key`, a hash of text and kind; `values` (texts, 128), 8 bits of each value of the
    signature (Li and König 2010)."""
    contaminated = []
    dialogues = []
    for dialogue in part:
        evidence = index.find(dialogue)
        if evidence:
            contaminated.append(json.dumps([dialogue.id, evidence]) + "\n")
        else:
            dialogues.append(dialogue)
    hashes = []
    qualities = []
    stored: list[bytes] = []
    compared: list[ComparedText] = []
    for number, dialogue in enumerate(dialogues):
        user = _text_of_role(dialogue, "user")
        companion = _text_of_role(dialogue, "companion")
        hashes.append((text_hash(user), text_hash(companion)))
        qualities.append(quality(dialogue)[:4])
        for text in (dialogue.id, user, companion):
            stored.append(text.encode("utf-8", "surrogatepass"))
        compared += _compared_texts(number, dialogue.language, user, companion)
    languages = [LANGUAGES.index(dialogue.language) for dialogue in dialogues]
    safety = [_safety_hash(dialogue.metadata) for dialogue in dialogues]
    ends = np.cumsum([len(text) for text in stored], dtype=np.int64).reshape(-1, 3)
    starts = np.append(0, ends[:, 2])[:-1]
    values = np.array([text.values for text in compared], np.uint32)
    return {
        "safety": np.array(safety, np.uint64),
        "contaminated": np.frombuffer("".join(contaminated).encode(), np.uint8),
        "language": np.array(languages, np.uint8),
        "hashes": np.array(hashes, np.uint64).reshape(-1, 2),
        "quality": np.array(qualities, np.int64).reshape(-1, 4),
        "bounds": np.column_stack([starts, ends]),
        "texts": np.frombuffer(b"".join(stored), np.uint8),
        "dialogue": np.array([text.dialogue for text in compared], np.int64),
        "kind": np.array([text.kind for text in compared], np.uint8),
        "key": np.array([text.key for text in compared], np.uint64),
        "values": values.astype(np.uint8).reshape(-1, VALUES),
    }


def _text_of_role(dialogue: Dialogue, role: Role) -> str:
    """The messages of a speaker in their compared form, one a line, without empty ones."""
    messages = [turn.content for turn in dialogue.messages if turn.role == role]
    lines = [plain(message, dialogue.language) for message in messages]
    return "\n".join(filter(None, lines))


def _compared_texts(
    number: int, language: Language, user: str, companion: str
) -> Iterator[ComparedText]:
    """The texts by which a dialogue is compared: the user's, the companion's and both together, by each scale of
    shingles that fits their length."""
    sizes = lengths(language)
    views = ["", "", ""]
    if len(user) >= sizes["least_inputs"] // 2:
        views[0] = user
    if len(companion) >= sizes["least_inputs"] // 2:
        views[1] = companion
    if min(len(user), len(companion)) < _SHORT_SIDE:
        views[2] = f"{user}\n{companion}"
    for view, text in enumerate(views):
        if not text.strip():
            continue
        for scale, shingles in enumerate(sizes["scales"]):
            if shingles["least"] <= len(text) <= shingles["most"]:
                kind = LANGUAGES.index(language) << 4 | view << 1 | scale
                yield ComparedText(
                    dialogue=number,
                    kind=kind,
                    key=text_hash(f"{kind} {text}"),
                    values=signature(text, shingles["width"]),
                )


@lru_cache(maxsize=1)
def open_index(names: tuple[str, ...], least: float) -> SplitIndex:
    """Index the texts of splits, once a process; raises what `load_split` raises."""
    return SplitIndex([load_split(name) for name in names], least)


@lru_cache(maxsize=1)
def _minhash() -> Any:
    from datasketch import MinHash

    return MinHash(num_perm=VALUES, hashfunc=int)


def signature(text: str, width: int) -> NDArray[np.uint32]:
    """The MinHash signature of a non-empty text, (128,), by its n-grams of `width` characters.

    Two texts share each value with the probability of the Jaccard similarity of their n-grams (Broder 1997). A shorter
    text is one n-gram.
    """
    data = text.ljust(width, "\0").encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(data, np.uint32).astype(np.uint64)
    hashes = np.zeros(len(points) - width + 1, np.uint64)
    for position in range(width):
        hashes *= np.uint64(0x100000001B3)
        hashes += points[position : position + len(hashes)]
    # SplitMix64's finalizer (Steele, Lea and Flood 2014): every input bit changes every output bit.
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(31)
    hashes = unique_values(hashes >> np.uint64(32))
    minhash = _minhash()
    minhash.clear()
    for start in range(0, len(hashes), _BATCH):
        minhash.update_batch(hashes[start : start + _BATCH].tolist())
    return np.asarray(minhash.digest())
