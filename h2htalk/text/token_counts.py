"""Count the tokens of a model: with any `tokenizer.json`, or with the embedded model's own tokenizer."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from h2htalk.errors import ConfigError, MissingExtraError, quoted, shorten
from h2htalk.text.model_files import INSTALL_EMBEDDED, SMOLLM2_GGUF, find_packaged

TokenCounter = Callable[[Sequence[str]], list[int]]

EMBEDDED = "embedded"
FILE_NAME = "tokenizer.json"
BATCH = 256  # texts whose tokens are held at once
_CHOICES = f"name a {FILE_NAME}, a folder that holds one, or {EMBEDDED}"
# The kinds of values in a GGUF file, and how `struct` names them.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class NamedCounter:
    """A TokenCounter with a name: `embedded (SmolLM2-135M-Instruct)`, or file and first digits of its SHA-256."""

    name: str
    _tokenizer: Any = field(repr=False)

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, without special ones.

        Nothing is truncated, whatever length the tokenizer's file sets. A special token's name within a text is plain
        text; half of a surrogate pair counts as a question mark.

        Raises:
            ConfigError: a text holds something that the tokenizer has no token for.
        """
        counts: list[int] = []
        for start in range(0, len(texts), BATCH):
            batch = [text.encode("utf-8", "replace").decode() for text in texts[start : start + BATCH]]
            try:
                counts += map(len, self._tokenizer.encode_batch_fast(batch, add_special_tokens=False))
            except Exception as error:  # the library raises plain Exception; the message shows it to the user
                reason = shorten(str(error), 120)
                raise ConfigError(f"tokenizer {self.name}: cannot read the texts: {reason}; name another") from error
        return counts


def open_token_counter(name: str) -> NamedCounter:
    """Open the counter of a tokenizer.

    Args:
        name: a `tokenizer.json` file, a folder that holds one, or `embedded`. A folder of that name is `./embedded`.

    Raises:
        MissingExtraError: `tokenizers` is not installed, or for `embedded` the package of the weights.
        ConfigError: the file does not exist, or is not a tokenizer.
    """
    if not name.strip():  # Path("") is the current folder
        raise ConfigError(f"the tokenizer's name is empty; {_CHOICES}")
    return _embedded_counter() if name == EMBEDDED else _file_counter(Path(os.path.expanduser(name)))


def _file_counter(path: Path) -> NamedCounter:
    shown = quoted(str(path))
    try:
        if path.is_dir():
            path /= FILE_NAME
            if not path.is_file():
                raise ConfigError(f"tokenizer {shown}: the folder holds no {FILE_NAME}; {_CHOICES}")
        content = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"tokenizer {shown}: no such file or folder; {_CHOICES}") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"tokenizer {shown}: cannot be read: {reason}") from error
    library = _library("counting model tokens")
    try:
        tokenizer = library.Tokenizer.from_buffer(content)
    except Exception as error:  # the library raises Exception, ValueError, TypeError; the message shows it
        reason = shorten(str(error), 120)
        raise ConfigError(f"tokenizer {shown}: not a {FILE_NAME}: {reason}; {_CHOICES}") from error
    digits = hashlib.sha256(content).hexdigest()[:12]
    parent = path.resolve().parent.name
    return _counter(f"{parent}/{path.name} (sha256 {digits})", tokenizer)


def _embedded_counter() -> NamedCounter:
    """Rebuild SmolLM2's tokenizer from the vocabulary in its GGUF file (0.2 s; the weights are not loaded).

    Its tokens equal OpenVINO GenAI's, except that the latter truncates after 8,192 tokens.
    """
    library = _library(feature := "the embedded model's tokenizer")
    path = find_packaged(SMOLLM2_GGUF, feature)
    metadata = read_gguf(path)  # of these weights, since their hash is checked
    vocabulary = {token: number for number, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = library.Tokenizer(library.models.BPE(vocab=vocabulary, merges=merges))
    # As in the model's training: digit by digit, then GPT-2's pattern over bytes.
    digits = library.pre_tokenizers.Digits(individual_digits=True)
    bytes_of = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence([digits, bytes_of])
    return _counter(f"{EMBEDDED} (SmolLM2-135M-Instruct)", tokenizer)


def _counter(name: str, tokenizer: Any) -> NamedCounter:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # special tokens in a text are plain text
    return NamedCounter(name, tokenizer)


def _library(feature: str) -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtraError(feature, INSTALL_EMBEDDED) from None
    return tokenizers


def read_gguf(path: Path) -> dict[str, Any]:
    """Read the metadata at the start of a GGUF file that is known to be sound: names and values.

    The library for it comes only with the extra `local`. Format: the GGUF specification, version 3, little-endian.
    """
    with path.open("rb") as stream:
        *_, count = _unpack(stream, "4sIQQ")  # the others: magic, version, number of tensors
        return {_string(stream): _value(stream, *_unpack(stream, "I")) for _ in range(count)}


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(stream)
    if kind != _ARRAY:
        return _unpack(stream, _SCALARS[kind])[0]
    kind, length = _unpack(stream, "IQ")
    if kind in (_STRING, _ARRAY):
        return [_value(stream, kind) for _ in range(length)]
    return list(_unpack(stream, f"{length}{_SCALARS[kind]}"))


def _string(stream: BinaryIO) -> str:
    return b"".join(_unpack(stream, f"{_unpack(stream, 'Q')[0]}s")).decode("utf-8")


def _unpack(stream: BinaryIO, layout: str) -> tuple[Any, ...]:
    form = struct.Struct(f"<{layout}")
    return form.unpack(stream.read(form.size))
