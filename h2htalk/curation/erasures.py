"""Who was taken out of a workspace, and how they are known again when their raw file changed.

`erased.jsonl`, a line an id:

    {"id": "bank-p0002", "of": "memory_bank/9f86d0...", "marks": ["5e88..."]}

An id is a row of one file, so it holds for the file that `of` names (form and SHA-256); once lines were deleted there,
the same row is somebody else. The marks are hashes, keyed with the workspace's secret, of what the raw file calls a
person or a dialogue, and of the words. A line without `of` (simulated dialogues) holds always.

`erasing.json` is there while an erasure is under way: everything that is to be done, so that whoever comes after a kill
can finish it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from h2htalk.curation.outcomes import Record
from h2htalk.data.files import read_json_object, read_jsonl, write_json
from h2htalk.errors import DataError

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


@dataclass(frozen=True, slots=True)
class Pending:
    """An erasure that was begun, as `erasing.json` holds it.

    Attributes:
        asked: a hash of the id that it was asked for, keyed with the workspace's secret while there is one.
        ids, copies, raw: as `erase.Erased` has them.
        lines: what `erased.jsonl` is to hold of them.
    """

    asked: str
    ids: tuple[str, ...]
    copies: tuple[str, ...]
    raw: tuple[str, ...]
    lines: tuple[Record, ...]

    @classmethod
    def of(
        cls,
        source_id: str,
        key: bytes | None,
        *,
        ids: tuple[str, ...],
        copies: tuple[str, ...],
        raw: tuple[str, ...],
        lines: tuple[Record, ...],
    ) -> Self:
        """One that is asked for by this id."""
        return cls(_mark(key or b"", "asked", source_id), ids, copies, raw, lines)

    def is_of(self, source_id: str, key: bytes | None) -> bool:
        """Whether it was asked for by this id."""
        return self.asked == _mark(key or b"", "asked", source_id)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The one that is under way; None where none is. Raises DataError where the file is damaged."""
        try:
            raw = read_json_object(path)
        except FileNotFoundError:
            return None
        texts = [raw.get(name) for name in ("ids", "copies", "raw")]
        lines = raw.get("lines")
        whole = all(isinstance(found, list) and all(isinstance(t, str) for t in found) for found in texts)
        if not whole or not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
            raise DataError(f"{path}: not an erasure; remove the file and ask for the erasure again")
        ids, copies, places = (tuple(found or ()) for found in texts)
        return cls(str(raw.get("asked")), ids, copies, places, tuple(lines))

    def write(self, path: Path) -> None:
        """Write it down, whole or not at all. Raises DataError."""
        told = {"asked": self.asked, "ids": self.ids, "copies": self.copies, "raw": self.raw}
        write_json(path, {**told, "lines": self.lines})


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
