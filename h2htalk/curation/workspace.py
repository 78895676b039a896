"""A curation workspace: one folder with a secret key, a folder a stage, and one writer at a time.

WORKSPACE/
  workspace.json       which key it was made with (by a hash), how many tombstones are applied, whether it was purged
  secret.key           the workspace's secret, for surrogates and fences; `purge` removes it
  tombstones.jsonl     who was erased and must not come back (`tombstones`)
  01-gathered/ ...     the stages (`parts.StageFolder`)
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
from h2htalk.curation.tombstones import Tombstones
from h2htalk.data.append_log import writer_lock
from h2htalk.data.files import read_json_object, remove_file, write_json, write_problem
from h2htalk.errors import ConfigError, DataError

# Stage -> its folder, in the order in which data walk through them.
STAGES = {
    "gather": "01-gathered",
    "anonymize": "02-anonymized",
    "safety": "03-safe",
    "dedup": "04-distinct",
    "compose": "05-composed",
    "review": "06-reviewed",
}
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder of one curation. Making the object touches nothing."""

    path: Path

    @property
    def key_path(self) -> Path:
        return self.path / "secret.key"

    @property
    def tombstones_path(self) -> Path:
        return self.path / "tombstones.jsonl"

    def stage(self, name: str) -> StageFolder:
        """The folder of a stage, by the stage's name."""
        return StageFolder(self.path / STAGES[name])

    def open_key(self, *, make: bool = True) -> bytes:
        """The workspace's secret; made at the first call, unless `make` is False.

        Raises:
            ConfigError: it was purged, it is missing, or it is another than the stages were made with.
            DataError: it cannot be read or written.
        """
        known = self.facts()
        if known.get("purged"):
            raise ConfigError(
                f"{self.path}: was purged: its key and raw inputs are gone; curate in a new workspace"
            )
        if not self.key_path.exists():
            if "key" in known or not make:
                raise ConfigError(
                    f"{self.key_path}: is missing, but stages were made with it; put it back, or take a new workspace"
                )
            self._make_key()
        key = self._read_key()
        identity = hashlib.sha256(b"h2htalk workspace\0" + key).hexdigest()[:16]
        if known.get("key", identity) != identity:
            raise ConfigError(
                f"{self.key_path}: is not the key that the stages were made with; put that one back"
            )
        if "key" not in known:
            write_json(self.path / "workspace.json", {**known, "key": identity})
        return key

    def _make_key(self) -> None:
        try:
            self.open_folder()
            temporary = self.path / f".secret.key.{os.getpid()}"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(KEY_BYTES) + "\n")
                file.flush()
                os.fsync(file.fileno())  # everything that follows depends on it
            os.replace(temporary, self.key_path)
        except OSError as error:
            raise DataError(f"{self.key_path}: {write_problem(error)}") from error

    def _read_key(self) -> bytes:
        with contextlib.suppress(OSError, ValueError):
            key = bytes.fromhex(self.key_path.read_text(encoding="ascii"))
            if len(key) == KEY_BYTES:
                return key
        raise ConfigError(
            f"{self.key_path}: must hold {KEY_BYTES} bytes as {2 * KEY_BYTES} hexadecimal digits"
        )

    def facts(self) -> dict[str, Any]:
        """What `workspace.json` says; empty before the first stage. Raises DataError."""
        try:
            return read_json_object(self.path / "workspace.json")
        except FileNotFoundError:
            return {}

    def tombstones(self) -> Tombstones:
        """Everything that is remembered of who was erased. Raises DataError."""
        return Tombstones.read(self.tombstones_path)

    def erased(self) -> frozenset[str]:
        """Ids that were erased, of dialogues and of persons, as the sources number them now. Raises DataError."""
        return self.tombstones().ids(self.source_files())

    def source_files(self) -> dict[str, str]:
        """What numbers the items of each gathered source: its form and its file's SHA-256. Raises DataError."""
        try:
            settings = read_json_object(self.stage("gather").path / "stage.json").get("settings")
        except FileNotFoundError:
            return {}
        sources = settings.get("sources") if isinstance(settings, dict) else None
        return {str(s["name"]): f"{s['format']}/{s['sha256']}" for s in sources or ()}

    def require_begun(self) -> None:
        """See that there is a workspace, before a lock would make its folder; raises DataError."""
        if not any((self.path / name).exists() for name in ("workspace.json", *STAGES.values())):
            raise DataError(f"{self.path}: no curation has begun here; name the folder of one")

    def open_folder(self) -> None:
        """Make the folder where there is none, for its owner alone: raw conversations will lie in it.

        One that is there stays as open as its owner made it. Raises DataError.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.path}: {write_problem(error)}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the workspace's one writer; raises DataError where another process is, or it cannot be made."""
        self.open_folder()
        with writer_lock(self.path / "workspace", "wait for it, or name another workspace"):
            # Half-written by a process that was killed: nobody else writes here now.
            for name in ("secret.key", "workspace.json", "tombstones.jsonl"):
                for path in self.path.glob(f".{name}.*"):
                    remove_file(path)
            yield
