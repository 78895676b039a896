"""`bge-m3`: the paper's embedder, BAAI/bge-m3 (Chen et al. 2024), dense vectors through FlagEmbedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text.embeddings.vectors import CHOICES, Vectors, encode_distinct
from h2htalk.text.model_files import LocalModel, find_local_model

REPOSITORY = "BAAI/bge-m3"
INSTALL = "pip install 'h2htalk[local]'"
FETCH = f"{INSTALL} && hf download {REPOSITORY} --exclude 'onnx/*'"
MAX_TOKENS = 8192  # the model's training length
BATCH_TEXTS = 32
# The shape of BAAI/bge-m3; a folder of another shape is another model.
SHAPE = {"model_type": "xlm-roberta", "hidden_size": 1024, "num_hidden_layers": 24, "vocab_size": 250002}


class BgeM3:
    """BGE-M3 from the local Hugging Face cache (`bge-m3`) or a folder of that kind (`bge-m3:FOLDER`).

    In float32 on every device: half precision would give other vectors on a GPU than on a CPU.

    Raises:
        ConfigError: no weights found, or a folder that FlagEmbedding cannot load.
        MissingExtraError: FlagEmbedding is not installed.
    """

    languages = LANGUAGES

    def __init__(self, name: str) -> None:
        self.name = name
        model = _find(name)
        self.revision = model.revision
        config = model.config()
        self.comparable = all(config.get(key) == value for key, value in SHAPE.items())
        self._width = int(config.get("hidden_size", 0))
        # XLM-R's positions start at 2.
        self._max_tokens = min(MAX_TOKENS, int(config.get("max_position_embeddings", MAX_TOKENS + 2)) - 2)
        self._model: Any = _load(model, name)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return float32 (n, d), rows of length 1; see `Embedder.encode`. Texts beyond 8,192 tokens are cut."""
        return encode_distinct(texts, self._encode, self._width)

    def _encode(self, texts: list[str]) -> Vectors:
        # FlagEmbedding sorts by length itself.
        output = self._model.encode(texts, batch_size=BATCH_TEXTS, max_length=self._max_tokens)
        return np.asarray(output["dense_vecs"], dtype=np.float32)


def _find(name: str) -> LocalModel:
    folder = name.removeprefix("bge-m3").removeprefix(":")
    model = find_local_model(folder or REPOSITORY)
    if model is not None:
        return model
    if folder:
        raise ConfigError(f"embedder {name}: no such folder; give one that holds {REPOSITORY}, or fetch it: {FETCH}")
    raise ConfigError(
        f"embedder bge-m3: {REPOSITORY} (2.3 GB) is not installed; fetch it: {FETCH}; or choose from {CHOICES}"
    )


def _load(model: LocalModel, name: str) -> Any:
    try:
        import torch
        from FlagEmbedding import BGEM3FlagModel
    except ImportError:
        raise MissingExtraError(f"embedder {name}", INSTALL) from None
    try:
        return BGEM3FlagModel(
            str(model.folder),
            use_fp16=False,
            devices="cuda:0" if torch.cuda.is_available() else "cpu",
            return_dense=True,
            return_sparse=False,
            return_colbert_vecs=False,
        )
    except Exception as error:  # the message shows the loader's error and the folder to the user
        raise ConfigError(f"{model.folder}: FlagEmbedding cannot load it as {name}: {error}") from error
