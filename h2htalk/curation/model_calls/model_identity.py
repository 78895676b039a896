"""Who a model is, as records and manifests name it: without a folder or an address of somebody's machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

from h2htalk.curation.settings import model_kind
from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError

_SETTINGS = ("config.json", "gliner_config.json", "meta.json")


def model_identity(model: str) -> str:
    """What results depend on of a model: its name (`model_name`), and of a script or a folder what is in it.

    Raises:
        ConfigError: the script or the folder cannot be read.
    """
    backend, _, name = model.partition(":")
    if model_kind(backend) == "file" and name:
        return f"{model_name(model)}, sha256 {sha256_of(Path(name))[:16]}"
    if (folder := _folder(backend, name)) is not None:
        return f"{model_name(model)}, sha256 {_folder_sha256(folder)[:16]}"
    return model_name(model)


def model_name(model: str) -> str:
    """`BACKEND:NAME` as people may read it: of a script its file's name, of a model in a folder the folder's, of a
    server the model's, of all others the name they go by."""
    backend, _, name = model.partition(":")
    if model_kind(backend) == "file" and name:
        return f"{backend}:{Path(name).name}"
    if model_kind(backend) == "url":
        at = max(name.rfind("@http://"), name.rfind("@https://"))
        return f"{backend}:{name[:at]}" if at > 0 else model
    folder = _folder(backend, name)
    return model if folder is None else f"{backend}:{folder.resolve().name}"


def _folder(backend: str, name: str) -> Path | None:
    """The folder that a model's name is; None where it is none."""
    if model_kind(backend) != "folder" or not name:
        return None
    folder = Path(name).expanduser()
    return folder if any((folder / settings).is_file() for settings in _SETTINGS) else None


def _folder_sha256(folder: Path) -> str:
    """Of a model's folder: its files' names and sizes, and what its settings say. Weights are too large to read."""
    told = hashlib.sha256()
    try:
        sizes = {path: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror or error}") from error
    for path, size in sizes.items():
        said = sha256_of(path) if path.suffix == ".json" else ""
        told.update(f"{path.name}\0{size}\0{said}\0".encode("utf-8", "surrogatepass"))
    return told.hexdigest()
