"""Who was erased from a workspace and must not come back: `tombstones.jsonl`, one line for each id.

    {"id": "bank-000002", "of": "memory_bank/9f86d0...", "marks": ["5e88..."], "items": ["bank-000002:dialogue_base"]}

An id numbers a row of one file, so it holds for the file that `of` names (format and SHA-256): where lines were deleted
from a file, the same row is another item. `marks` are hashes, keyed with the workspace's erasure key, of the raw id of
a person or a dialogue and of the words. They identify a person when the file is read again. A line without `of`
(simulated dialogues) holds always. `items` are the candidates that held its words.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from h2htalk.curation.outcomes import Record
from h2htalk.data.files import json_line, read_jsonl, replacing

_DIGEST = 12  # bytes: among 10^9 items no two have the same by chance


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The content of `tombstones.jsonl`."""

    lines: tuple[Record, ...]
    marks: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file; without one there are no tombstones. Raises DataError."""
        lines = tuple(record for _, record in read_jsonl(path)) if path.exists() else ()
        marks = frozenset(mark for line in lines for mark in line.get("marks", ()))
        return cls(lines, marks)

    def ids(self, files: Mapping[str, str]) -> frozenset[str]:
        """The ids that hold for these files (`Workspace.source_files`)."""
        return frozenset(
            name for line in self.lines if line.get("of") in (None, files.get(source_of(name := str(line.get("id")))))
        )

    def of_source(self, source: str) -> bool:
        """Whether anybody was erased from a source."""
        return any(source_of(str(line.get("id"))) == source for line in self.lines)


def write_tombstones(path: Path, lines: Iterable[Record]) -> None:
    """Replace the file durably: it holds all lines of an erasure, or none. Raises DataError."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(map(json_line, lines))
        file.flush()
        os.fsync(file.fileno())


def erasure_key(key: bytes) -> bytes:
    """The key of marks, from the workspace's secret key, which it does not give away."""
    return hashlib.sha256(b"h2htalk erasure\0" + key).digest()


def source_of(item_id: str) -> str:
    """The source of a dialogue or a person: `chat-b` of `chat-b-000001` and of `chat-b-p0001`."""
    return item_id.rpartition("-")[0]


def marks_of(key: bytes, source: str, raw_id: object, person: object, words: object) -> frozenset[str]:
    """The marks that identify an item of a raw file, by its id, the user that it names, and its words, if it has them.

    `words`: JSON of its cleaned messages, [[role, text], ...]; whatever the names of source and item are, the same
    words of the same person have the same mark.
    """
    known = [("id", source, raw_id), ("person", source, person), ("words", person, words or None)]
    return frozenset(mark(key, *what) for what in known if what[2] not in (None, ""))


def mark(key: bytes, *what: object) -> str:
    """The hash of `id`, `person` or `words` with source or person, and text; names in form NFC, as keyboards differ."""
    names = [unicodedata.normalize("NFC", str(one)) if isinstance(one, str | int) else one for one in what]
    text = json.dumps(names, ensure_ascii=True).encode()
    return hashlib.blake2b(text, key=key, digest_size=_DIGEST, person=b"h2htalk erased").hexdigest()
