"""A curation workspace: a folder with a secret key, one folder a stage, and one writer at a time.

WORKSPACE/
  workspace.json       a hash of its key, how many tombstones are applied here and everywhere, whether it was purged
  secret.key           the key of surrogates and fences; `purge` removes it
  erasure.key          written by `purge`: the key of the marks in tombstones.jsonl and erasure_index.jsonl
  tombstones.jsonl     who was erased and must not come back (`tombstones`)
  gather/ ...          the stages (`stage_folder`)
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.stages import FIRST_STAGE, STAGES, find_stage
from h2htalk.curation.tombstones import Tombstones, erasure_key
from h2htalk.data.files import read_json_object, remove_file, replacing, write_json, write_problem, writer_lock
from h2htalk.errors import ConfigError, DataError

KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of one curation. Creating the object reads and writes nothing."""

    path: Path

    @property
    def key_path(self) -> Path:
        return self.path / "secret.key"

    @property
    def index_path(self) -> Path:
        """Written by `purge`: dialogue -> marks of its raw ids, and the items that rest on it."""
        return self.path / "erasure_index.jsonl"

    @property
    def tombstones_path(self) -> Path:
        return self.path / "tombstones.jsonl"

    def stage(self, name: str) -> StageFolder:
        """The folder of a stage."""
        return StageFolder(self.path / find_stage(name).name)

    def open_key(self, *, make: bool = True) -> bytes:
        """The secret key; the first call makes it, unless `make` is False.

        Raises:
            ConfigError: it was purged, is missing, or is not the key that the stages were made with.
            DataError: it cannot be read or written.
        """
        known = self.facts()
        if known.get("purged"):
            raise ConfigError(f"{self.path}: was purged: its key and raw inputs are gone; curate in a new workspace")
        if not self.key_path.exists():
            if "key" in known or not make:
                raise ConfigError(
                    f"{self.key_path}: is missing, but stages were made with it; put it back, or use a new workspace"
                )
            self._write_key(self.key_path, secrets.token_bytes(KEY_BYTES))
        key = _read_key(self.key_path)
        identity = hashlib.sha256(b"h2htalk workspace\0" + key).hexdigest()[:16]
        if known.get("key", identity) != identity:
            raise ConfigError(f"{self.key_path}: is not the key that the stages were made with; put that key back")
        if "key" not in known:
            write_json(self.path / "workspace.json", {**known, "key": identity})
        return key

    def erasure_key(self) -> bytes:
        """The key of the marks by which `erase` finds raw ids; empty where its owner deleted it after `purge`.

        Raises:
            ConfigError, DataError: as `open_key`.
        """
        if self.facts().get("purged"):
            return _read_key(self._erasure_key_path) if self._erasure_key_path.exists() else b""
        return erasure_key(self.open_key())

    def keep_erasure_key(self) -> None:
        """Write the erasure key, before `purge` removes the secret key that it is derived from."""
        if not self._erasure_key_path.exists():
            self._write_key(self._erasure_key_path, self.erasure_key())

    @property
    def _erasure_key_path(self) -> Path:
        return self.path / "erasure.key"

    def _write_key(self, path: Path, key: bytes) -> None:
        self.make_folder()
        with replacing(path, private=True) as temporary, temporary.open("w", encoding="ascii") as file:
            file.write(key.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())  # everything that follows depends on it

    def facts(self) -> dict[str, Any]:
        """The content of `workspace.json`; empty before the first stage. Raises DataError."""
        return read_json_object(self.path / "workspace.json", missing_ok=True)

    def tombstones(self) -> Tombstones:
        """Who was erased. Raises DataError."""
        return Tombstones.read(self.tombstones_path)

    def erased(self) -> frozenset[str]:
        """Ids of erased dialogues and persons, as the sources number them now. Raises DataError."""
        return self.tombstones().ids(self.source_files())

    def source_files(self) -> dict[str, str]:
        """What numbers the items of each gathered source: its format and the SHA-256 of its file. Raises DataError."""
        stage = read_json_object(self.stage(FIRST_STAGE).path / "stage.json", missing_ok=True)
        sources = stage["settings"].get("sources", ()) if stage else ()
        return {str(s["name"]): f"{s['format']}/{s['sha256']}" for s in sources}

    def require_begun(self) -> None:
        """Raise DataError where there is no workspace, before a lock would make its folder."""
        if not any((self.path / name).exists() for name in ("workspace.json", *STAGES)):
            raise DataError(f"{self.path}: there is no curation here; name the folder of one")

    def make_folder(self) -> None:
        """Make the folder, for its owner alone, as it will hold raw conversations. Raises DataError.

        An existing folder keeps its permissions.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.path}: {write_problem(error)}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the workspace's lock; raises DataError where another process holds it or the folder cannot be made."""
        self.make_folder()
        with writer_lock(self.path / "workspace", "wait for it, or name another workspace"):
            # Partial files of a process that was killed: no other process writes here now.
            for name in ("secret.key", "erasure.key", "workspace.json", "tombstones.jsonl", "erasure_index.jsonl"):
                for path in self.path.glob(f".{name}.*"):
                    remove_file(path)
            yield


def _read_key(path: Path) -> bytes:
    with contextlib.suppress(OSError, ValueError):
        key = bytes.fromhex(path.read_text(encoding="ascii"))
        if len(key) == KEY_BYTES:
            return key
    raise ConfigError(f"{path}: must hold {KEY_BYTES} bytes as {2 * KEY_BYTES} hexadecimal digits")
