"""Zip files from elsewhere: what is damaged, encrypted, too large or no file at all is one DataError."""

from __future__ import annotations

import contextlib
import random
import struct
import zipfile
from pathlib import Path

import pytest

from h2htalk.data.imports.harness_log import read_members
from h2htalk.errors import DataError

TEXT = b"A line of a log.\n" * 400


def packed(path: Path, **fields: tuple[str, int]) -> Path:
    """A zip of one member; `fields`: what its two headers say instead, as format and value."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member", TEXT)
    content = bytearray(path.read_bytes())
    places = {"flags": 6, "method": 8, "packed": 18, "size": 22}  # in the local header; two more in the central one
    for name, (form, value) in fields.items():
        for mark, more in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
            struct.pack_into(form, content, content.index(mark) + places[name] + more, value)
    path.write_bytes(content)
    return path


def read(path: Path, most: int = 1 << 20) -> list[bytes]:
    return [content for _, content in read_members(path, lambda names: names, most)]


LIES = [*({"method": ("<H", method)} for method in (1, 6, 9, 12, 14, 93, 97, 99)), {"flags": ("<H", 1)}]
LIES += [{"size": ("<I", 10)}, {"size": ("<I", 2**32 - 16)}, {"packed": ("<I", 3)}, {"packed": ("<I", 2**31)}]


@pytest.mark.parametrize("fields", LIES)
def test_headers_that_lie_are_refused(tmp_path: Path, fields: dict[str, tuple[str, int]]) -> None:
    assert read(packed(tmp_path / "a.zip")) == [TEXT]
    with pytest.raises(DataError, match=r"a\.zip"):
        read(packed(tmp_path / "a.zip", **fields))


def test_a_damaged_file_is_read_whole_or_refused(tmp_path: Path) -> None:
    for seed in range(60):
        chance, path = random.Random(seed), packed(tmp_path / "a.zip")
        content = bytearray(path.read_bytes())
        for _ in range(chance.randrange(1, 6)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice((len(content), chance.randrange(len(content))))])
        found: list[bytes] = []
        with contextlib.suppress(DataError):  # any other error is a traceback
            found = read(path)
        assert found in ([TEXT], []), seed
