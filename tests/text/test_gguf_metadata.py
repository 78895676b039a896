"""The head of a GGUF file, read by hand: what was written comes back, and what is no GGUF is one clear error."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.errors import ConfigError
from h2htalk.text.gguf_metadata import read_metadata


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def value(kind: int, packed: bytes) -> bytes:
    return struct.pack("<I", kind) + packed


def array(kind: int, *parts: bytes) -> bytes:
    return value(9, struct.pack("<IQ", kind, len(parts)) + b"".join(parts))


def gguf(fields: dict[str, bytes], version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, 0, len(fields))
    return head + b"".join(string(key) + packed for key, packed in fields.items())


FIELDS: dict[str, tuple[bytes, Any]] = {
    "flag": (value(7, b"\x01"), True),
    "small": (value(1, struct.pack("<b", -5)), -5),
    "wide": (value(10, struct.pack("<Q", 2**40)), 2**40),
    "real": (value(12, struct.pack("<d", 0.5)), 0.5),
    "text": (value(8, string("Ġ你")), "Ġ你"),
    "numbers": (array(5, *(struct.pack("<i", n) for n in (3, -1))), [3, -1]),
    "words": (array(8, string("a"), string("")), ["a", ""]),
    "nested": (array(9, struct.pack("<IQ", 0, 2) + b"\x07\x08"), [[7, 8]]),
    "nothing": (array(8), []),
}


@pytest.mark.parametrize("version", [2, 3])
def test_every_kind_of_value_is_read(tmp_path: Path, version: int) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(gguf({key: packed for key, (packed, _) in FIELDS.items()}, version) + b"tensors")
    assert read_metadata(file, FIELDS) == {key: expected for key, (_, expected) in FIELDS.items()}


def test_only_what_is_asked_for_is_given(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(gguf({key: packed for key, (packed, _) in FIELDS.items()}))
    assert read_metadata(file, {"text", "not there"}) == {"text": "Ġ你"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"GGUF",
        gguf({}, version=1),
        gguf({"a": value(77, b"")}),
        gguf({"a": value(8, struct.pack("<Q", 2**62))}),
        gguf({"a": value(8, struct.pack("<Q", 1) + b"\xff")}),
        gguf({"a": value(9, struct.pack("<IQ", 5, 2**62))}),
    ],
)
def test_what_is_no_gguf_is_one_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"model\.gguf: cannot be read as GGUF"):
        read_metadata(file, {"a"})


def test_a_file_that_is_not_there_is_that_error_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.gguf: cannot be read as GGUF"):
        read_metadata(tmp_path / "none.gguf", {"a"})


WHOLE = gguf({key: FIELDS[key][0] for key in ("numbers", "nested", "text")})


@given(cut=st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_anywhere_never_gives_wrong_values(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    file = tmp_path_factory.mktemp("cut") / "model.gguf"
    file.write_bytes(WHOLE[:cut])
    with pytest.raises(ConfigError):
        read_metadata(file, FIELDS)
