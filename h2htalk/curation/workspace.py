"""A curation workspace: a folder with a secret key, one folder a stage, and one writer at a time.

WORKSPACE/
  workspace.json       a hash of its key, how many tombstones are applied here and everywhere, whether it was purged
  secret.key           the key of surrogates and fences; `purge` removes it
  erasure.key          written by `purge`: the key of the marks in tombstones.jsonl and erasure_index.jsonl
  tombstones.jsonl     who was erased and must not come back: one line for each id
  erasure_index.jsonl  written by `purge`: dialogue -> marks of its raw ids, and the items that rest on it
  certificates.jsonl   how readers were checked (`data/readers/certificates`)
  item_reads.jsonl     what models read for `release read` and `release risk`, and people of samples
                       (`data/readers/item_reads`)
  exposed.jsonl        the items of the dialogues that `release risk` found most exposed
  gather/ ...          the stages (`stage_folder`)

A tombstone: {"id": "bank-000002", "of": "memory_bank/9f86d0...", "marks": ["5e88..."], "items": ["bank-000002:sap"]}.
An id numbers a row of one file, so it holds for the file that `of` names (format and SHA-256): where lines were deleted
from a file, the same row is another item. `marks` are hashes, keyed with the workspace's erasure key, of the raw id of
a person or a dialogue and of the words. They identify a person when the file is read again. A line without `of`
(simulated dialogues) holds always. `items` are the candidates that held its words. `lines` are keyed hashes of the
lines of its messages, by which it is recognised after some were edited or deleted (`gather.erased_lines`); `purge`,
after which no file is read again, removes them.
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
from h2htalk.curation.stage_records import (
    ADVICE,
    SOURCES,
    WORKSPACE_ADVICE,
    GatheredFiles,
    SourceSettings,
    Tombstone,
    WorkspaceFacts,
    combined_hash,
    read_checked,
)
from h2htalk.curation.stages import FIRST_STAGE, STAGES
from h2htalk.data.files import (
    read_jsonl,
    remove_half_written,
    replacing,
    write_json,
    writer_lock,
    writing,
)
from h2htalk.data.readers.item_reads import EXPOSED, ITEM_READS
from h2htalk.data.records import read_record
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
            raise ConfigError(
                f"{self.path}: was purged: its key and raw inputs are gone; curate in a new workspace"
            )
        if not self.key_path.exists():
            if "key" in known:
                advice = "stages were made with it; put it back, or use a new workspace"
                raise ConfigError(f"{self.key_path}: is missing, but {advice}")
            self.make_folder()
            write_durably(
                self.key_path, [f"{secrets.token_bytes(KEY_BYTES).hex()}\n"], private=True
            )
        key = _read_key(self.key_path)
        identity = hashlib.sha256(b"h2htalk workspace\0" + key).hexdigest()[:16]
        if known.get("key", identity) != identity:
            raise ConfigError(
                f"{self.key_path}: is not the key that the stages were made with; put that key back"
            )
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
        path = self.path / "workspace.json"
        return read_checked(WorkspaceFacts, path, missing_ok=True, advice=WORKSPACE_ADVICE)

    def tombstones(self) -> list[Record]:
        """Who was erased; nobody without the file."""
        path = self.tombstones_path
        lines = read_jsonl(path) if path.exists() else ()
        return [read_record(Tombstone, record, where) for where, record in lines]

    def erased(self) -> frozenset[str]:
        """Ids of erased dialogues and persons, as the sources number them now."""
        states = self.source_states()
        return frozenset(
            line["id"]
            for line in self.tombstones()
            if line.get("of") is None or line["of"] in states.get(source_of(line["id"]), ())
        )

    def erased_from(self, source: str) -> bool:
        """Whether anybody was erased from a source."""
        return any(source_of(line["id"]) == source for line in self.tombstones())

    def source_files(self) -> dict[str, str]:
        """What numbers the items of each gathered source: its format and the SHA-256 of its file."""
        sources = self.stage(FIRST_STAGE).settings().get("sources", ())
        where = f"{self.stage(FIRST_STAGE).path / 'stage.json'}: settings"
        checked = read_record(list[SourceSettings], sources, where, advice=ADVICE)
        return {one["name"]: f"{one['format']}/{one['sha256']}" for one in checked}

    def source_states(self) -> dict[str, frozenset[str]]:
        """What numbers the items of each source, or did before an update, in which ids stay; as `source_files`."""
        path = self.stage(FIRST_STAGE).path / SOURCES
        known = read_checked(GatheredFiles, path, missing_ok=True)
        states: dict[str, frozenset[str]] = {}
        for name, current in self.source_files().items():
            form = current.partition("/")[0]
            files = [
                file
                for file in known.get("sources", {}).get(name, ())
                if not file.get("nothing_new")
            ]
            hashes = set(known.get("abandoned", {}).get(name, ()))
            for update in {file.get("update", 0) for file in files}:
                until = [file["sha256"] for file in files if file.get("update", 0) <= update]
                hashes.add(combined_hash(until))
            states[name] = frozenset((current, *(f"{form}/{sha256}" for sha256 in hashes)))
        return states

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
            written = (
                "secret.key",
                ERASURE_KEY,
                "workspace.json",
                "tombstones.jsonl",
                INDEX,
                ITEM_READS,
                EXPOSED,
            )
            remove_half_written(self.path, written)
            yield


def write_durably(path: Path, lines: Iterable[str], *, private: bool = False) -> None:
    """Replace a file, on which everything that follows depends: it holds all lines, or none. Raises DataError."""
    with (
        replacing(path, private=private) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
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


def marks_of(
    key: bytes, source: str, raw_id: object, person: object, words: object
) -> frozenset[str]:
    """The marks that identify an item of a raw file, by its id, the user that it names, and its words, if it has them.

    `words`: JSON of its cleaned messages, [[role, text], ...]; whatever the names of source and item are, the same
    words of the same person have the same mark.
    """
    known = [("id", source, raw_id), ("person", source, person), ("words", person, words or None)]
    return frozenset(mark(key, *what) for what in known if what[2] not in (None, ""))


def mark(key: bytes, *what: object) -> str:
    """The hash of `id`, `person` or `words` with source or person, and text; names in form NFC, as keyboards differ."""
    names = [
        unicodedata.normalize("NFC", str(one)) if isinstance(one, str | int) else one
        for one in what
    ]
    text = json.dumps(names, ensure_ascii=True).encode()
    return hashlib.blake2b(text, key=key, digest_size=_DIGEST, person=b"h2htalk erased").hexdigest()
