"""Who was erased from a workspace and must not come back: `tombstones.jsonl`, a line an id.

    {"id": "bank-p0002", "of": "memory_bank/9f86d0...", "marks": ["5e88..."]}

An id is a row of one file, so it holds for the file that `of` names (form and SHA-256); once lines were deleted there,
the same row is somebody else. The marks are hashes, keyed with the workspace's secret, of what the raw file calls a
person or a dialogue, and of the words: by them a person is recognised when the file is read again. A line without `of`
(simulated dialogues) holds always.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from h2htalk.curation.outcomes import Record
from h2htalk.data.files import json_line, read_jsonl, write_problem
from h2htalk.errors import DataError

_DIGEST = 12  # bytes: no two of 10^9 items share one by chance


@dataclass(frozen=True, slots=True)
class Tombstones:
    """What `tombstones.jsonl` holds."""

    lines: tuple[Record, ...]
    names: frozenset[str]
    marks: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file; empty where there is none. Raises DataError."""
        lines = tuple(record for _, record in read_jsonl(path)) if path.exists() else ()
        marks = frozenset(mark for line in lines for mark in line.get("marks", ()))
        return cls(lines, frozenset(str(line.get("id")) for line in lines), marks)

    def ids(self, files: Mapping[str, str]) -> frozenset[str]:
        """The ids that hold now. `files`: what numbers each source (`Workspace.source_files`)."""
        return frozenset(
            name
            for line in self.lines
            if line.get("of") in (None, files.get(source_of(name := str(line.get("id")))))
        )

    def of_source(self, source: str) -> bool:
        """Whether anybody was erased from a source."""
        return any(source_of(name) == source for name in self.names)

    def called(self, name: str, key: bytes) -> frozenset[str]:
        """The erased ids that the raw data call by this name (`NAME` or `SOURCE:NAME`)."""
        found = set()
        for line in self.lines:
            source = source_of(str(line["id"]))
            for raw in {name, name.removeprefix(f"{source}:")}:
                if not marks_of(key, source, raw, raw, None).isdisjoint(line.get("marks", ())):
                    found.add(str(line["id"]))
        return frozenset(found)


def write_tombstones(path: Path, lines: Iterable[Record]) -> None:
    """Replace the file at once and make it durable: all lines of an erasure are there, or none. Raises DataError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(map(json_line, lines))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(f"{path}: {write_problem(error)}") from error


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
