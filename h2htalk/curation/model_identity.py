"""Who a model is, as records and manifests name it: without a folder or an address of somebody's machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

from h2htalk.curation.sources.raw_files import sha256_of
from h2htalk.errors import ConfigError

# Their names may be folders: of models that talk, and of recognisers of names.
_OF_FOLDERS = ("hf", "vllm", "spacy", "gliner")
_SETTINGS = ("config.json", "gliner_config.json", "meta.json")


def model_identity(model: str) -> str:
    """What results depend on of a model.

    Of a script its file's name and content; of a model in a folder the folder's name and what is in it; of a server
    the model's name; of all others the name they go by.

    Raises:
        ConfigError: the script or the folder cannot be read.
    """
    backend, _, name = model.partition(":")
    if backend == "scripted" and name:
        return f"{backend}:{Path(name).name}, sha256 {sha256_of(Path(name))[:16]}"
    if backend == "server":
        at = max(name.rfind("@http://"), name.rfind("@https://"))
        return f"{backend}:{name[:at]}" if at > 0 else model
    if backend in _OF_FOLDERS and name:
        folder = Path(name).expanduser()
        if any((folder / settings).is_file() for settings in _SETTINGS):
            return f"{backend}:{folder.resolve().name}, sha256 {_folder_sha256(folder)[:16]}"
    return model


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
