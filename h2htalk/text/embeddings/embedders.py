"""Open an embedder for semantic similarity (paper, Eq. 1).

`bge-m3` is the paper's embedder, BAAI/bge-m3 (Chen et al. 2024), dense vectors through FlagEmbedding; with any other, S
is not comparable with the paper's. Nothing is downloaded: a missing model is an error that says how to fetch it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from h2htalk.data.files import read_bounded, read_json_object, sha256_of
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, MissingExtraError, quoted, suggest
from h2htalk.extras import BGE_M3, INSTALL_LOCAL, MINILM, SENTENCE_MODEL
from h2htalk.text.embeddings.vectors import CHOICES, Embedder, Vectors, encode_distinct

REPOSITORY = "BAAI/bge-m3"
FETCH = f"{INSTALL_LOCAL} && hf download {REPOSITORY} --exclude 'onnx/*'"
MAX_TOKENS = 8192  # the training length of BGE-M3; longer texts are cut
# Texts that are computed together; both libraries sort by length themselves.
BGE_BATCH = 32
SENTENCE_BATCH = 64
# The shape of BAAI/bge-m3; a folder of another shape is another model.
SHAPE = {
    "model_type": "xlm-roberta",
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "vocab_size": 250002,
}

_COMMIT = re.compile(r"[0-9a-f]{40}")
_WEIGHTS = ("*.safetensors", "*.bin")
_SETTINGS = ("*.json", "*.model", "*.txt")  # configuration, tokenizer, vocabulary


def check_embedder(name: str) -> None:
    """Raise ConfigError for a name that is no embedder; weights of `bge-m3` and `minilm` are not looked for."""
    if name not in ("bge-m3", "minilm", "none") and not name.startswith("bge-m3:"):
        _find_sentence_model(name)


def require_embedder(name: str) -> None:
    """Raise MissingExtraError or ConfigError where an embedder is not on this machine; `none` needs nothing.

    Nothing is loaded.
    """
    if name == "none":
        return
    if not name.strip():
        raise ConfigError(f"embedder {name!r} cannot be opened; choose from {CHOICES}")
    if name == "minilm":
        MINILM.require()
    elif name == "bge-m3" or name.startswith("bge-m3:"):
        if name == "bge-m3":
            _find_bge_m3(name)  # its message names packages and weights
        BGE_M3.require()
        _find_bge_m3(name)
    else:
        _find_sentence_model(name)
        SENTENCE_MODEL.require()


def packages_of(name: str) -> tuple[str, ...]:
    """Return the distributions that compute an embedder's vectors."""
    if name == "none":
        return ()
    if name == "minilm":
        return ("openvino", "tokenizers")
    library = "FlagEmbedding" if name.startswith("bge-m3") else "sentence-transformers"
    return (library, "transformers", "torch")


def open_embedder(name: str) -> Embedder:
    """Open the embedder of that name.

    Args:
        name: `bge-m3` (BAAI/bge-m3 in the local Hugging Face cache), `bge-m3:FOLDER` (a folder of that kind),
            `minilm` (the packaged all-MiniLM-L6-v2, English), or the name or folder of a sentence-transformers
            model on this machine, which is assumed to be made for all languages.

    Raises ConfigError, with the choices, for no such model or one that cannot be loaded, and MissingExtraError where a
    package that it needs is not installed.
    """
    if name == "minilm":
        from h2htalk.text.embeddings.minilm import MiniLM

        return MiniLM()
    if name == "bge-m3" or name.startswith("bge-m3:"):
        return _open_bge_m3(name)
    if not name.strip() or name == "none":
        raise ConfigError(f"embedder {name!r} cannot be opened; choose from {CHOICES}")
    return _open_sentence_model(name)


@dataclass(slots=True)
class TorchEmbedder:
    """A model of this machine that a library computes with torch."""

    name: str
    revision: str
    comparable: bool
    width: int
    compute: Callable[[list[str]], Vectors]
    languages: tuple[str, ...] = LANGUAGES

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return float32 (n, width), rows of length 1; see `Embedder.encode`."""
        return encode_distinct(texts, self.compute, self.width)


def _find_bge_m3(name: str) -> Path:
    given_folder = name.removeprefix("bge-m3").removeprefix(":")
    folder = find_local_model(given_folder or REPOSITORY)
    if folder is None and given_folder:
        raise ConfigError(
            f"embedder {name}: no such folder; give one that holds {REPOSITORY}, or fetch it: {FETCH}"
        )
    if folder is None:
        raise ConfigError(
            f"embedder bge-m3: {REPOSITORY} (2.3 GB) is not installed; fetch it: {FETCH}; or choose from {CHOICES}"
        )
    return folder


def _open_bge_m3(name: str) -> Embedder:
    folder = _find_bge_m3(name)
    revision = _revision(folder)
    config = read_json_object(folder / "config.json", missing_ok=True)
    try:
        import torch
        from FlagEmbedding import BGEM3FlagModel
    except ImportError:
        raise MissingExtraError(f"embedder {name}", INSTALL_LOCAL) from None
    try:
        model = BGEM3FlagModel(
            str(folder),
            use_fp16=False,  # half precision would give other vectors on a GPU than on a CPU
            devices="cuda:0" if torch.cuda.is_available() else "cpu",
            return_dense=True,
            return_sparse=False,
            return_colbert_vecs=False,
        )
    except Exception as error:  # the message shows the loader's error and the folder to the user
        raise ConfigError(f"{folder}: FlagEmbedding cannot load it as {name}: {error}") from error
    # XLM-R's positions start at 2.
    positions = int(config.get("max_position_embeddings", MAX_TOKENS + 2))
    longest = min(MAX_TOKENS, positions - 2)

    def compute(texts: list[str]) -> Vectors:
        output = model.encode(texts, batch_size=BGE_BATCH, max_length=longest)
        return np.asarray(output["dense_vecs"], dtype=np.float32)

    comparable = all(config.get(key) == value for key, value in SHAPE.items())
    return TorchEmbedder(name, revision, comparable, int(config.get("hidden_size", 0)), compute)


def _open_sentence_model(name: str) -> Embedder:
    folder = _find_sentence_model(name)
    revision = _revision(folder)
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingExtraError(f"embedder {name}", INSTALL_LOCAL) from None
    try:
        model = SentenceTransformer(str(folder), local_files_only=True)
    except Exception as error:  # the message shows the loader's error and the folder to the user
        raise ConfigError(f"{folder}: sentence-transformers cannot load it: {error}") from error

    def compute(texts: list[str]) -> Vectors:
        vectors = model.encode(texts, batch_size=SENTENCE_BATCH, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    return TorchEmbedder(name, revision, False, int(model.get_embedding_dimension() or 0), compute)


def _find_sentence_model(name: str) -> Path:
    folder = find_local_model(name)
    if folder is None and "/" not in name:
        folder = find_local_model(f"sentence-transformers/{name}")
    if folder is None:
        if "/" in name:
            fetch = f"fetch it (hf download {name}) or "
        else:
            fetch = suggest(name, ("bge-m3", "minilm"))
        raise ConfigError(f"embedder {name!r} is not on this machine; {fetch}choose from {CHOICES}")
    modules = folder / "modules.json"
    if not modules.is_file():
        # The library would silently average the tokens of any encoder.
        raise ConfigError(
            f"{folder}: no sentence-transformers model (no modules.json); choose from {CHOICES}"
        )
    try:
        kinds = [str(module["type"]) for module in json.loads(read_bounded(modules))]
    except (OSError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{modules}: not a list of modules: {error}") from error
    # Before version 6 the library runs such code of a local folder without asking.
    for kind in kinds:
        if not kind.startswith("sentence_transformers."):
            raise ConfigError(
                f"{modules}: {quoted(kind)} is code of the model's own, which is not run; choose another one"
            )
    return folder


def find_local_model(name: str) -> Path | None:
    """Find a model: a folder, else a repository in the Hugging Face cache; None if neither exists.

    Raises ConfigError where it has no weights (a download that stopped, or another kind of folder).
    """
    # os.path returns False where pathlib raises: a name too long for a path, `~nobody`.
    folder = Path(os.path.expanduser(name))
    if not os.path.isdir(folder):
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except (HFValidationError, LocalEntryNotFoundError):
            return None
    if not _files(folder, _WEIGHTS):
        raise ConfigError(
            f"{folder}: holds no weights ({', '.join(_WEIGHTS)}); fetch or copy the model again"
        )
    return folder


def _revision(folder: Path) -> str:
    """Return the Hugging Face commit, else the SHA-256 over names and contents of all that changes a vector."""
    if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name):
        return folder.name
    total = hashlib.sha256()
    for path in sorted({*_files(folder, _WEIGHTS), *_files(folder, _SETTINGS)}):
        name = path.relative_to(folder).as_posix()
        total.update(name.encode() + b"\x00" + bytes.fromhex(sha256_of(path)))
    return f"sha256:{total.hexdigest()}"


def _files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """List files of the folder and of its modules' folders (`1_Pooling/`); no deeper, since it may be a home folder."""
    paths: list[Path] = []
    for pattern in patterns:
        paths += folder.glob(pattern)
        paths += folder.glob(f"*/{pattern}")
    return paths
