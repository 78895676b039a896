"""The identity of a model in records and settings: without a folder or an address of somebody's machine."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from h2htalk.chat.engines import model_kind
from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError

_SETTINGS = ("config.json", "gliner_config.json", "meta.json")


def model_identity(model: str) -> str:
    """What the results depend on: the model's name (`model_name`), and the content of a script or a folder.

    Raises:
        ConfigError: the script or the folder cannot be read.
    """
    engine, _, name = model.partition(":")
    if model_kind(engine) == "file" and name:
        return f"{model_name(model)}, sha256 {sha256_of(Path(name))[:16]}"
    if (folder := _folder(engine, name)) is not None:
        return f"{model_name(model)}, sha256 {_folder_sha256(folder)[:16]}"
    return model_name(model)


def model_name(model: str) -> str:
    """`ENGINE:NAME` without a path or an address: the name of a script's file or a model's folder."""
    engine, _, name = model.partition(":")
    if model_kind(engine) == "file" and name:
        return f"{engine}:{Path(name).name}"
    if (address := re.search("@?https?:", name, re.IGNORECASE)) is not None:  # it may hold a password
        return f"{engine}:{name[: address.start()]}".rstrip(":")
    folder = _folder(engine, name)
    return model if folder is None else f"{engine}:{folder.resolve().name}"


def _folder(engine: str, name: str) -> Path | None:
    """The folder that a model's name is; None for other names."""
    if model_kind(engine) != "folder" or not name:
        return None
    folder = Path(name).expanduser()
    return folder if any((folder / settings).is_file() for settings in _SETTINGS) else None


def _folder_sha256(folder: Path) -> str:
    """A hash of the names and sizes of a folder's files, and of its settings; weights are too large to read."""
    digest = hashlib.sha256()
    try:
        sizes = {path: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror or error}") from error
    for path, size in sizes.items():
        content = sha256_of(path) if path.suffix == ".json" else ""
        digest.update(f"{path.name}\0{size}\0{content}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
