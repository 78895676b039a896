"""Read raw files as lines or characters: UTF-8 with or without a byte order mark, in bounded memory."""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from h2htalk.curation.gather.raw_items import OnRead, RefusedItem
from h2htalk.data.files import MAX_LINE
from h2htalk.errors import DataError

_CHUNK = 1 << 16
_SURROGATE = re.compile("[\ud800-\udfff]")


def open_raw(path: Path) -> BinaryIO:
    """Open a file after its byte order mark.

    Raises:
        DataError: it cannot be read, or is UTF-16 or UTF-32; says how to convert it.
    """
    try:
        file = path.open("rb")
        head = file.read(1024)
        file.seek(3 if head.startswith(codecs.BOM_UTF8) else 0)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if wide := _wide(head):
        file.close()
        raise DataError(f"{path}: is {wide}; convert it to UTF-8: iconv -f {wide} -t UTF-8 OLD > NEW")
    return file


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


def raw_lines(path: Path, on_read: OnRead) -> Iterator[tuple[int, bytes]]:
    """`(number, line)` of a file, numbered from 1, with line ends.

    Raises:
        DataError: the file cannot be read, or a line is longer than 64 MiB.
    """
    with open_raw(path) as file:
        number = 0
        while line := _read(file, path, MAX_LINE, by_line=True):
            number += 1
            if len(line) == MAX_LINE:
                raise DataError(f"{path}:{number}: line longer than {MAX_LINE >> 20} MiB; split it or remove it")
            on_read(len(line))
            yield number, line


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


def _read(file: BinaryIO, path: Path, size: int, by_line: bool = False) -> bytes:
    try:
        return file.readline(size) if by_line else file.read(size)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def text_of(line: bytes, number: int) -> str:
    """The text of a line, without its line end; raises RefusedItem (`encoding`) where it is not UTF-8."""
    try:
        return line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as error:
        raise RefusedItem("encoding", line=number, byte=error.start) from error


def require_unicode(text: str, **where: int) -> None:
    """Raise RefusedItem (`encoding`) for a lone surrogate: a byte that is not UTF-8, or half a character."""
    if not text.isascii() and _SURROGATE.search(text):
        raise RefusedItem("encoding", **where)
