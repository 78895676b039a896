"""Read raw files as lines or characters: UTF-8 with or without a byte order mark, in bounded memory.

Files that end in `.gz` or `.zst` are decompressed as they are read.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from h2htalk.curation.gather.raw_items import OnRead, RefusedItem
from h2htalk.data.files import MAX_LINE
from h2htalk.errors import DataError

_CHUNK = 1 << 16
_SURROGATE = re.compile("[\ud800-\udfff]")


# What a file that is cut off or no archive raises while it is decompressed.
_BROKEN = (OSError, EOFError, zlib.error)


def open_raw(path: Path) -> io.BufferedReader:
    """Open a file after its byte order mark.

    Raises:
        DataError: it cannot be read, or is UTF-16 or UTF-32; says how to convert it.
    """
    try:
        file = _open(path)
        head = file.peek(1024)[:1024]
        file.read(3 if head.startswith(codecs.BOM_UTF8) else 0)
    except _BROKEN as error:
        raise _unreadable(path, error) from error
    if wide := _wide(head):
        file.close()
        raise DataError(f"{path}: is {wide}; convert it to UTF-8: iconv -f {wide} -t UTF-8 OLD > NEW")
    return file


def _open(path: Path) -> io.BufferedReader:
    if path.suffix == ".gz":
        opened: Any = gzip.GzipFile(path)
    elif path.suffix == ".zst":
        opened = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
    else:
        return path.open("rb")
    return io.BufferedReader(opened)


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = error.strerror if isinstance(error, OSError) else None
    return DataError(f"{path}: cannot be read: {reason or error}")


def _wide(head: bytes) -> str | None:
    """`UTF-16` or `UTF-32`, by the byte order mark or a zero in every second byte; None for other files."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    for name, first in (("UTF-16LE", 1), ("UTF-16BE", 0)):
        if len(head) >= 8 and head[first::2].count(0) > len(head) // 5 and not head[1 - first :: 2].count(0):
            return name
    return None


def raw_lines(path: Path, on_read: OnRead) -> Iterator[tuple[int, bytes | None]]:
    """`(number, line)` of a file, numbered from 1, with line ends; None for a line longer than 64 MiB.

    Raises:
        DataError: the file cannot be read.
    """
    with open_raw(path) as file:
        number = 0
        while line := _read(file, path, MAX_LINE, by_line=True):
            number += 1
            on_read(len(line))
            whole = len(line) < MAX_LINE
            while len(line) == MAX_LINE and not line.endswith(b"\n"):
                line = _read(file, path, MAX_LINE, by_line=True)
                on_read(len(line))
            yield number, line if whole else None


def raw_text(path: Path, on_read: OnRead) -> Generator[str, int | None, None]:
    """A file as pieces of text. Bytes that are not UTF-8 become lone surrogates, which `require_unicode` refuses.

    The first `next` gives 64 KiB, `send(size)` a piece of that many bytes.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    size: int = _CHUNK
    with open_raw(path) as file:
        while chunk := _read(file, path, size):
            on_read(len(chunk))
            size = max(_CHUNK, (yield decoder.decode(chunk)) or _CHUNK)
        if rest := decoder.decode(b"", final=True):
            yield rest


def _read(file: io.BufferedReader, path: Path, size: int, by_line: bool = False) -> bytes:
    try:
        return file.readline(size) if by_line else file.read(size)
    except _BROKEN as error:
        raise _unreadable(path, error) from error


def text_of(line: bytes | None, number: int) -> str:
    """The text of a line, without its line end.

    Raises:
        RefusedItem: `encoding` where it is not UTF-8, `too_long` where it is longer than 64 MiB.
    """
    if line is None:
        raise RefusedItem("too_long", line=number)
    try:
        return line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as error:
        raise RefusedItem("encoding", line=number, byte=error.start) from error


def require_unicode(text: str, **where: int) -> None:
    """Raise RefusedItem (`encoding`) for a lone surrogate: a byte that is not UTF-8, or half a character."""
    if not text.isascii() and _SURROGATE.search(text):
        raise RefusedItem("encoding", **where)
