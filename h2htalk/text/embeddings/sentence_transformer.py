"""Any sentence-transformers model that lies on this machine, by folder or by its name on the Hub."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from h2htalk.data.files import read_bounded
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, MissingExtraError, quoted, suggest
from h2htalk.text.embeddings.vectors import CHOICES, Vectors, encode_distinct
from h2htalk.text.model_files import LocalModel, find_local_model

INSTALL = "pip install 'h2htalk[local]'"
BATCH_TEXTS = 64


class SentenceModel:
    """A sentence-transformers model. It is assumed to be made for all languages.

    Raises:
        ConfigError: not on this machine, or not a sentence-transformers model.
        MissingExtraError: sentence-transformers is not installed.
    """

    languages = LANGUAGES
    comparable = False

    def __init__(self, name: str) -> None:
        self.name = name
        found = find_model(name)
        self.revision = found.revision
        self._model: Any = _load(found, name)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """float32 (n, d), rows of length 1; see `Embedder.encode`."""
        return encode_distinct(texts, self._encode, int(self._model.get_embedding_dimension() or 0))

    def _encode(self, texts: list[str]) -> Vectors:
        # sentence-transformers sorts by length itself.
        vectors = self._model.encode(texts, batch_size=BATCH_TEXTS, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def find_model(name: str) -> LocalModel:
    """Return where a model of this machine lies. Raises ConfigError where it is none."""
    found = find_local_model(name)
    if found is None and "/" not in name:
        found = find_local_model(f"sentence-transformers/{name}")
    if found is None:
        fetch = f"fetch it (hf download {name}) or " if "/" in name else suggest(name, ("bge-m3", "minilm"))
        raise ConfigError(f"embedder {name!r} is not on this machine; {fetch}choose from {CHOICES}")
    modules = found.folder / "modules.json"
    if not modules.is_file():
        # The library would silently average the tokens of any encoder.
        raise ConfigError(f"{found.folder}: no sentence-transformers model (no modules.json); choose from {CHOICES}")
    try:
        kinds = [str(module["type"]) for module in json.loads(read_bounded(modules))]
    except (OSError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{modules}: not a list of modules: {error}") from error
    # Before version 6 the library runs such code of a local folder without asking.
    if own := [kind for kind in kinds if not kind.startswith("sentence_transformers.")]:
        raise ConfigError(
            f"{modules}: {quoted(own[0])} is code of the model's own, which is not run; choose another one"
        )
    return found


def _load(found: LocalModel, name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingExtraError(f"embedder {name}", INSTALL) from None
    try:
        return SentenceTransformer(str(found.folder), local_files_only=True)
    except Exception as error:  # the message shows the loader's error and the folder to the user
        raise ConfigError(f"{found.folder}: sentence-transformers cannot load it: {error}") from error
