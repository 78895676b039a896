"""Read the key-value part at the start of a GGUF file: the model's metadata, including its vocabulary.

The library for this comes only with the extra `local`. Format: the GGUF specification, versions 2 and 3,
little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

from h2htalk.errors import ConfigError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


def read_metadata(path: Path, keys: Collection[str]) -> dict[str, Any]:
    """Read the values of those `keys` that the file has: numbers, strings, truth values or lists of them.

    Raises:
        ConfigError: the file cannot be read, or is not GGUF of version 2 or 3.
    """
    try:
        with path.open("rb") as stream:
            return _read_metadata(stream, keys)
    except (
        OSError,
        struct.error,
        KeyError,
        UnicodeDecodeError,
        ValueError,
        MemoryError,
        OverflowError,
    ) as error:
        raise ConfigError(f"{path}: cannot be read as GGUF: {error}") from error


def _read_metadata(stream: BinaryIO, keys: Collection[str]) -> dict[str, Any]:
    if (magic := stream.read(4)) != b"GGUF":
        raise ValueError(f"it begins with {magic!r}")
    if (version := _scalar(stream, "I")) not in (2, 3):
        raise ValueError(f"version {version}")
    _scalar(stream, "Q")  # the number of tensors, which follow the metadata
    values: dict[str, Any] = {}
    for _ in range(_scalar(stream, "Q")):
        key = _string(stream)
        value = _value(stream, _scalar(stream, "I"))
        if key in keys:
            values[key] = value
    return values


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(stream)
    if kind != _ARRAY:
        return _scalar(stream, _SCALARS[kind])
    kind, length = _scalar(stream, "I"), _scalar(stream, "Q")
    if kind in (_STRING, _ARRAY):
        return [_value(stream, kind) for _ in range(length)]
    layout = struct.Struct(f"<{length}{_SCALARS[kind]}")
    return list(layout.unpack(_read(stream, layout.size)))


def _scalar(stream: BinaryIO, code: str) -> Any:
    layout = struct.Struct("<" + code)
    return layout.unpack(_read(stream, layout.size))[0]


def _string(stream: BinaryIO) -> str:
    return _read(stream, _scalar(stream, "Q")).decode("utf-8")


def _read(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise ValueError("it ends too early")
    return content
