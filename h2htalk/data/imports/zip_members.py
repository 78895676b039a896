"""Members of zip files, of a bounded size, in the compressions that other programs use."""

from __future__ import annotations

import copy
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from h2htalk.data.files import MAX_LINE, require_file
from h2htalk.errors import DataError, quoted

ZSTD = 93  # Python's zipfile reads it from 3.14 on
_PART = 1 << 20  # bytes that are read at once
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    KeyError,
    ValueError,
    RuntimeError,
)


def read_members(
    path: Path, choose: Callable[[list[str]], Iterable[str]], most: int = MAX_LINE
) -> Iterator[tuple[str, bytes]]:
    """Yield place and content of the members that `choose` takes from all names. Raises DataError."""
    try:
        with zipfile.ZipFile(require_file(path)) as archive:
            names = list(dict.fromkeys(archive.namelist()))
            for name in choose(names):
                info = archive.getinfo(name)
                where = f"{path}: {quoted(name)}"
                if info.file_size > most:
                    raise DataError(f"{where}: larger than {most >> 20} MiB")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTD):
                    raise DataError(f"{where}: compressed in a way that is not read here")
                if info.compress_type == ZSTD:
                    content = _read_zstd(archive, info)
                else:
                    content = read_member(archive, info)
                yield where, content
    except _DAMAGED as error:
        raise DataError(
            f"{path}: no whole zip file (damaged, cut off or something else): {error}"
        ) from error


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Read a member in parts: `ZipFile.read` unfolds up to 2 GiB of one before it compares the size that is stated."""
    content = bytearray()
    with archive.open(member) as stream:
        while part := stream.read(_PART):
            content += part
    return bytes(content)


def _read_zstd(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    import pyarrow as pa

    # zipfile hands over what it takes for stored as it is; the checksum is that of the content.
    stored = copy.copy(info)
    stored.compress_type = zipfile.ZIP_STORED
    stored.file_size = info.compress_size
    del stored.CRC
    with pa.CompressedInputStream(archive.open(stored), "zstd") as stream:
        content: bytes = stream.read(info.file_size + 1)
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{quoted(info.filename)} is not what the archive says of it")
    return content
