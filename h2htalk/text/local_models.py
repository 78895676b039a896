"""Models that lie on this machine: a folder, or a snapshot in the Hugging Face cache. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.errors import ConfigError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_WEIGHTS = ("*.safetensors", "*.bin")
_SETTINGS = ("*.json", "*.model", "*.txt")  # configuration, tokenizer, vocabulary


@dataclass(frozen=True, slots=True)
class LocalModel:
    """Where a model lies, and which one it is: a Hugging Face commit, or `sha256:...` of what is in its files."""

    folder: Path
    revision: str

    def config(self) -> dict[str, Any]:
        """Its `config.json`.

        Raises:
            ConfigError: missing or not readable.
        """
        path = self.folder / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: not a readable model configuration: {error}") from error
        if not isinstance(config, dict):
            raise ConfigError(f"{path}: must hold one JSON object")
        return config


def find_local_model(name: str) -> LocalModel | None:
    """The model of that name: a folder, else a repository in the Hugging Face cache; None if neither is there.

    Raises:
        ConfigError: it is there without weights (a download that stopped, or another kind of folder).
    """
    # os.path answers "no" where pathlib raises: a name too long for a path, `~nobody`.
    folder = Path(os.path.expanduser(name))
    if not os.path.isdir(folder):
        snapshot = _cached_snapshot(name)
        if snapshot is None:
            return None
        folder = snapshot
    weights = _files(folder, _WEIGHTS)
    if not weights:
        raise ConfigError(
            f"{folder}: holds no weights ({', '.join(_WEIGHTS)}); fetch or copy the model again"
        )
    if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name):
        return LocalModel(folder, folder.name)
    return LocalModel(folder, f"sha256:{_content_hash(folder, weights)}")


def _cached_snapshot(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError):
        return None


def _files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Files of the folder and of its modules' folders (`1_Pooling/`); no deeper, it may be anybody's home."""
    return [path for pattern in patterns for depth in ("", "*/") for path in folder.glob(depth + pattern)]


def _content_hash(folder: Path, weights: list[Path]) -> str:
    """SHA-256 over names and contents of weights, tokenizer and configuration: all that changes a vector."""
    total = hashlib.sha256()
    for path in sorted({*weights, *_files(folder, _SETTINGS)}):
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").digest()
        total.update(path.relative_to(folder).as_posix().encode() + b"\x00" + digest)
    return total.hexdigest()
