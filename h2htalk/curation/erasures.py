"""Who was taken out of a workspace, and how they are known again when their raw file changed.

`erased.jsonl`, a line an id:

    {"id": "bank-p0002", "of": "memory_bank/9f86d0...", "marks": ["5e88..."]}

An id is a row of one file, so it holds for the file that `of` names (form and SHA-256); once lines were deleted there,
the same row is somebody else. The marks are hashes, keyed with the workspace's secret, of what the raw file calls a
person or a dialogue, and of the words. A line without `of` (simulated dialogues) holds always.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from h2htalk.curation.outcomes import Record
from h2htalk.data.files import read_jsonl

_DIGEST = 12  # bytes: no two of 10^9 items share one by chance


@dataclass(frozen=True, slots=True)
class Erasures:
    """What `erased.jsonl` holds."""

    lines: tuple[Record, ...]
    names: frozenset[str]
    marks: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> Erasures:
        """Read the file; nobody where there is none. A line torn by a kill does not count. Raises DataError."""
        lines = tuple(record for _, record in read_jsonl(path, torn_tail=True)) if path.exists() else ()
        marks = frozenset(mark for line in lines for mark in line.get("marks", ()))
        return cls(lines, frozenset(str(line.get("id")) for line in lines), marks)

    def ids(self, files: Mapping[str, str]) -> frozenset[str]:
        """The ids that hold now. `files`: what numbers each source (`Workspace.source_files`)."""
        return frozenset(
            name
            for line in self.lines
            if line.get("of") in (None, files.get(source_of(name := str(line.get("id")))))
        )


def source_of(item_id: str) -> str:
    """The source of a dialogue or a person: `chat-b` of `chat-b-000001` and of `chat-b-p0001`."""
    return item_id.rpartition("-")[0]


def marks_of(
    key: bytes, source: str, raw_id: str | None, person: str | None, words: object
) -> frozenset[str]:
    """The marks that an item of a raw file can be known by.

    Args:
        key: the workspace's secret.
        source: its name.
        raw_id: what the file calls the item, or None.
        person: whom the file names as its user, or None.
        words: JSON that holds its cleaned messages, [[role, text], ...], or None where it has none.
    """
    made = [
        _mark(key, "id", source, raw_id) if raw_id is not None else "",
        _mark(key, "person", source, person) if person is not None else "",
        # Whatever source and item are called by then: the same words of the same person.
        _mark(key, "words", person, words) if words else "",
    ]
    return frozenset(filter(None, made))


def _mark(key: bytes, *what: object) -> str:
    text = json.dumps(what, ensure_ascii=True).encode()
    return hashlib.blake2b(text, key=key, digest_size=_DIGEST, person=b"h2htalk erased").hexdigest()
