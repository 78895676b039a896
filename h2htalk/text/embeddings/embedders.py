"""Open an embedder for semantic similarity (paper, Eq. 1).

`bge-m3` is the paper's embedder; with any other, S is not comparable with the paper's. Nothing is downloaded:
a missing model is an error that says how to fetch it.
"""

from __future__ import annotations

from h2htalk.errors import ConfigError
from h2htalk.text.embeddings.vectors import CHOICES, Embedder


def check_embedder(name: str) -> None:
    """Raise ConfigError for a name that is no embedder; weights of `bge-m3` and `minilm` are not looked for."""
    if name not in ("bge-m3", "minilm", "none") and not name.startswith("bge-m3:"):
        from h2htalk.text.embeddings.sentence_transformer import find_model

        find_model(name)


def packages_of(name: str) -> tuple[str, ...]:
    """Return the distributions that compute an embedder's vectors."""
    if name == "none":
        return ()
    if name == "minilm":
        return ("openvino", "tokenizers")
    own = "FlagEmbedding" if name.startswith("bge-m3") else "sentence-transformers"
    return (own, "transformers", "torch")


def open_embedder(name: str) -> Embedder:
    """Open the embedder of that name.

    Args:
        name: `bge-m3` (BAAI/bge-m3 in the local Hugging Face cache), `bge-m3:FOLDER` (a folder of that kind),
            `minilm` (the packaged all-MiniLM-L6-v2, English), or the name or folder of a sentence-transformers
            model on this machine.

    Raises:
        ConfigError: no such model; the message lists the choices.
        MissingExtraError: a package that it needs is not installed.
    """
    if name == "minilm":
        from h2htalk.text.embeddings.minilm import MiniLM

        return MiniLM()
    if name == "bge-m3" or name.startswith("bge-m3:"):
        from h2htalk.text.embeddings.bge_m3 import BgeM3

        return BgeM3(name)
    if not name.strip() or name == "none":
        raise ConfigError(f"embedder {name!r} cannot be opened; choose from {CHOICES}")
    from h2htalk.text.embeddings.sentence_transformer import SentenceModel

    return SentenceModel(name)
