"""Read members of a zip file from elsewhere: checked before they are unpacked, of bounded size, damage is an error."""

from __future__ import annotations

import copy
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from h2htalk.data.files import MAX_LINE, require_file
from h2htalk.errors import DataError, quoted

ZSTD = 93  # Python's zipfile reads it from 3.14 on
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, KeyError, ValueError, RuntimeError)


def read_members(
    path: Path, choose: Callable[[list[str]], Iterable[str]], most: int = MAX_LINE
) -> Iterator[tuple[str, bytes]]:
    """Yield place and content of the members that `choose` takes from all names. Raises DataError."""
    try:
        with zipfile.ZipFile(require_file(path)) as archive:
            for name in choose(list(dict.fromkeys(archive.namelist()))):
                where = f"{path}: {quoted(name)}"
                yield where, _read_member(archive, name, where, most)
    except _DAMAGED as error:
        raise DataError(f"{path}: no whole zip file (damaged, cut off or something else): {error}") from error


def _read_member(archive: zipfile.ZipFile, name: str, where: str, most: int) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > most:
        raise DataError(f"{where}: larger than {most >> 20} MiB")
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTD):
        raise DataError(f"{where}: encrypted, or compressed in a way that is not read here")
    if info.compress_type == ZSTD:
        import pyarrow as pa

        # zipfile hands over what it takes for stored as it is; the checksum is that of the content.
        stored = copy.copy(info)
        stored.compress_type, stored.file_size = zipfile.ZIP_STORED, info.compress_size
        del stored.CRC
        stream: Any = pa.CompressedInputStream(archive.open(stored), "zstd")
    else:
        stream = archive.open(info)
    with stream:
        content: bytes = stream.read(info.file_size + 1)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise DataError(f"{where}: damaged: not what the archive says of it")
    return content
