"""A curation workspace: a folder with a secret key, one folder a stage, and one writer at a time.

WORKSPACE/
  workspace.json       a hash of its key, how many tombstones are applied here and everywhere, whether it was purged
  secret.key           the key of surrogates and fences; `purge` removes it
  erasure.key          written by `purge`: the key of the marks in tombstones.jsonl and erasure_index.jsonl
  tombstones.jsonl     who was erased and must not come back: one line for each id
  erasure_index.jsonl  written by `purge`: dialogue -> marks of its raw ids, and the items that rest on it
  gather/ ...          the stages (`stage_folder`)

A tombstone: {"id": "bank-000002", "of": "memory_bank/9f86d0...", "marks": ["5e88..."], "items": ["bank-000002:sap"]}.
An id numbers a row of one file, so it holds for the file that `of` names (format and SHA-256): where lines were deleted
from a file, the same row is another item. `marks` are hashes, keyed with the workspace's erasure key, of the raw id of
a person or a dialogue and of the words. They identify a person when the file is read again. A line without `of`
(simulated dialogues) holds always. `items` are the candidates that held its words.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.curation.stage_folder import Record, StageFolder
from h2htalk.curation.stages import FIRST_STAGE, STAGES
from h2htalk.data.files import read_json_object, read_jsonl, remove_file, replacing, write_json, writer_lock, writing
from h2htalk.errors import ConfigError, DataError

KEY_BYTES = 32
ERASURE_KEY, INDEX = "erasure.key", "erasure_index.jsonl"
_DIGEST = 12  # bytes of a mark: among 10^9 items no two have the same by chance


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of one curation. Creating the object reads and writes nothing; methods raise DataError for files."""

    path: Path

    @property
    def key_path(self) -> Path:
        return self.path / "secret.key"

    @property
    def tombstones_path(self) -> Path:
        return self.path / "tombstones.jsonl"

    def stage(self, name: str) -> StageFolder:
        return StageFolder(self.path / name)

    def open_key(self) -> bytes:
        """The secret key; the first call makes it.

        Raises ConfigError where it was purged, is missing, or is not the key that the stages were made with.
        """
        known = self.facts()
        if known.get("purged"):
            raise ConfigError(f"{self.path}: was purged: its key and raw inputs are gone; curate in a new workspace")
        if not self.key_path.exists():
            if "key" in known:
                advice = "stages were made with it; put it back, or use a new workspace"
                raise ConfigError(f"{self.key_path}: is missing, but {advice}")
            self.make_folder()
            write_durably(self.key_path, [f"{secrets.token_bytes(KEY_BYTES).hex()}\n"], private=True)
        key = _read_key(self.key_path)
        identity = hashlib.sha256(b"h2htalk workspace\0" + key).hexdigest()[:16]
        if known.get("key", identity) != identity:
            raise ConfigError(f"{self.key_path}: is not the key that the stages were made with; put that key back")
        if "key" not in known:
            write_json(self.path / "workspace.json", {**known, "key": identity})
        return key

    def erasure_key(self) -> bytes:
        """The key of the marks by which `erase` finds raw ids; empty where its owner deleted it after `purge`.

        Raises ConfigError as `open_key`.
        """
        if self.facts().get("purged"):
            return _read_key(path) if (path := self.path / ERASURE_KEY).exists() else b""
        return erasure_key(self.open_key())

    def facts(self) -> dict[str, Any]:
        """The content of `workspace.json`; empty before the first stage."""
        return read_json_object(self.path / "workspace.json", missing_ok=True)

    def tombstones(self) -> list[Record]:
        """Who was erased; nobody without the file."""
        return [record for _, record in read_jsonl(path)] if (path := self.tombstones_path).exists() else []

    def erased(self) -> frozenset[str]:
        """Ids of erased dialogues and persons, as the sources number them now."""
        files, lines = self.source_files(), self.tombstones()
        return frozenset(one["id"] for one in lines if one.get("of") in (None, files.get(source_of(one["id"]))))

    def erased_from(self, source: str) -> bool:
        """Whether anybody was erased from a source."""
        return any(source_of(line["id"]) == source for line in self.tombstones())

    def source_files(self) -> dict[str, str]:
        """What numbers the items of each gathered source: its format and the SHA-256 of its file."""
        sources = self.stage(FIRST_STAGE).settings().get("sources", ())
        return {str(s["name"]): f"{s['format']}/{s['sha256']}" for s in sources}

    def require_begun(self) -> None:
        """Raise DataError where there is no workspace, before a lock would make its folder."""
        if not any((self.path / name).exists() for name in ("workspace.json", *STAGES)):
            raise DataError(f"{self.path}: there is no curation here; name the folder of one")

    def make_folder(self) -> None:
        """Make the folder, for its owner alone, as it will hold raw conversations; an existing one stays as it is."""
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the workspace's lock; raises DataError where another process holds it or the folder cannot be made."""
        self.make_folder()
        with writer_lock(self.path / "workspace", "wait for it, or name another workspace"):
            # Partial files of a process that was killed: no other process writes here now.
            for name in ("secret.key", ERASURE_KEY, "workspace.json", "tombstones.jsonl", INDEX):
                for path in self.path.glob(f".{name}.*"):
                    remove_file(path)
            yield


def write_durably(path: Path, lines: Iterable[str], *, private: bool = False) -> None:
    """Replace a file, on which everything that follows depends: it holds all lines, or none. Raises DataError."""
    with replacing(path, private=private) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def _read_key(path: Path) -> bytes:
    with contextlib.suppress(OSError, ValueError):
        key = bytes.fromhex(path.read_text(encoding="ascii"))
        if len(key) == KEY_BYTES:
            return key
    raise ConfigError(f"{path}: must hold {KEY_BYTES} bytes as {2 * KEY_BYTES} hexadecimal digits")


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
