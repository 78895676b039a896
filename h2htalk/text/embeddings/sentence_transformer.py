"""Use any sentence-transformers model on this machine, by folder or by its name on the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text.embeddings.vectors import CHOICES, Vectors, encode_distinct
from h2htalk.text.model_files import LocalModel, find_local_model

INSTALL = "pip install 'h2htalk[local]'"
BATCH_TEXTS = 64


class SentenceModel:
    """A sentence-transformers model. It is assumed to be made for every language.

    Raises:
        ConfigError: not found, or not a sentence-transformers model.
        MissingExtraError: sentence-transformers is not installed.
    """

    languages = LANGUAGES
    comparable = False

    def __init__(self, name: str) -> None:
        self.name = name
        model = _find(name)
        self.revision = model.revision
        self._model: Any = _load(model, name)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return float32 (n, d), rows of length 1; see `Embedder.encode`."""
        return encode_distinct(texts, self._encode, int(self._model.get_embedding_dimension() or 0))

    def _encode(self, texts: list[str]) -> Vectors:
        # sentence-transformers sorts by length itself.
        vectors = self._model.encode(texts, batch_size=BATCH_TEXTS, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def _find(name: str) -> LocalModel:
    model = find_local_model(name)
    if model is None and "/" not in name:
        model = find_local_model(f"sentence-transformers/{name}")
    if model is None:
        raise ConfigError(
            f"embedder {name!r} is not installed; fetch it (hf download {name}) or choose from {CHOICES}"
        )
    if not (model.folder / "modules.json").is_file():
        # The library would silently average the tokens of any encoder.
        raise ConfigError(
            f"{model.folder}: not a sentence-transformers model (no modules.json); choose from {CHOICES}"
        )
    return model


def _load(model: LocalModel, name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingExtraError(f"embedder {name}", INSTALL) from None
    try:
        return SentenceTransformer(str(model.folder), local_files_only=True)
    except Exception as error:  # the message shows the loader's error and the folder to the user
        raise ConfigError(f"{model.folder}: sentence-transformers cannot load it: {error}") from error
