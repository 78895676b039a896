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
            magic, version, _, count = _unpack(stream, "4sIQQ")  # the third is the number of tensors, which follow
            if magic != b"GGUF" or version not in (2, 3):
                raise ValueError(f"it begins with {magic!r}, version {version}")
            found = {_string(stream): _value(stream, *_unpack(stream, "I")) for _ in range(count)}
    except (OSError, struct.error, KeyError, ValueError, MemoryError, OverflowError) as error:
        raise ConfigError(f"{path}: cannot be read as GGUF: {error}") from error
    return {key: value for key, value in found.items() if key in keys}


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
