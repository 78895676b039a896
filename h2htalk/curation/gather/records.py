"""Raw records of files: JSON lines, a JSON array or object, CSV, Parquet, and data sets of `datasets`.

Files are UTF-8, with or without a byte order mark; what their name says is decompressed as they are read. A broken line
is one refused item. In a broken array or CSV file the items after the break cannot be counted: this is an error.
"""

from __future__ import annotations

import codecs
import csv
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.compression import compr, register_compression
from fsspec.utils import infer_compression

from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.data.files import MAX_LINE
from h2htalk.data.releases.hub import hub_api, one_line, read_token
from h2htalk.errors import ConfigError, DataError, H2HTalkError, MissingExtraError, listed
from h2htalk.text.escaping import longest_field

OnRead = Callable[[int], object]  # called with the number of bytes read from a raw file, for progress
Record = tuple[int, int | None, Any]  # row, line (None where a format has no lines), value or why there is none
_BATCH = 256
_CHUNK = 1 << 20  # bytes that are read at once
HUB_DATASET = re.compile(r"hub:([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})(?::([\w.-]+))?")
_TABLES = frozenset({".csv", ".tsv"})
PARQUET = ".parquet"


def file_records(path: Path, on_read: OnRead, span: tuple[int, int], table: bool = False) -> Iterator[Record]:
    """The records of a file, numbered from 1. `span`: first and last byte to read of lines that are not compressed;
    `table`: read a file that is no JSON as CSV, whatever its name is. Raises DataError, which names the file."""
    if path.suffix == PARQUET:
        with _opened(path) as opened, pq.ParquetFile(opened) as file:
            size, before = path.stat().st_size // max(file.metadata.num_rows, 1), 0
            for batch in file.iter_batches(_BATCH):
                on_read(size * batch.num_rows)
                yield from ((row, row, value) for row, value in enumerate(batch.to_pylist(), before + 1))
                before += batch.num_rows
        return
    first = _first_character(path)
    if not _TABLES.isdisjoint(path.suffixes) or (table and first not in ("[", "{")):
        yield from _csv(path, on_read)
    elif first == "[":
        yield from ((row, None, value) for row, (_, value) in enumerate(json_members(path, on_read), 1))
    else:
        yield from _lines(path, on_read, *span)


def has_lines(path: Path) -> bool:
    """Whether a file holds lines of JSON that can be read from any line on."""
    is_json = path.is_file() and path.suffix != PARQUET and _TABLES.isdisjoint(path.suffixes)
    return is_json and infer_compression(str(path)) is None and _first_character(path) == "{"


@contextmanager
def _opened(path: Path, mode: str = "rb", **options: Any) -> Iterator[IO[Any]]:
    """A file, decompressed as its name says; raises DataError where it cannot be read."""
    if "zstd" not in compr:  # registered by fsspec where `zstandard` is installed
        register_compression("zstd", lambda f, mode: BufferedReader(pa.CompressedInputStream(f, "zstd")), "zst")
    try:
        with fsspec.open(str(path), mode, compression="infer", **options) as file:
            yield file
    # What a file that is cut off or no archive raises while it is decompressed.
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise DataError(f"{path}: cannot be read: {reason}") from error


def _first_character(path: Path) -> str:
    with _opened(path) as file:
        head = file.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()
    return chr(head[0]) if head else ""


# Python refuses to read a number of thousands of digits, which no dialogue needs; other tools write NaN for null, and
# control characters in strings.
_DECODER = json.JSONDecoder(
    strict=False, parse_constant=lambda name: None, parse_int=lambda digits: int(digits) if len(digits) < 1000 else None
)
_NOT_SPACE = re.compile(r"[^ \t\r\n]")


def _lines(path: Path, on_read: OnRead, start: int, end: int) -> Iterator[Record]:
    """The values of lines; an empty line has none. A line longer than 64 MiB is refused."""
    compressed = infer_compression(str(path)) is not None
    with _opened(path) as file:
        number = 0
        for at in range(0, start, _CHUNK):
            number += file.read(min(_CHUNK, start - at)).count(b"\n")
        while (compressed or start < end) and (line := file.readline(MAX_LINE)):
            number, too_long = number + 1, False
            while len(line) == MAX_LINE and not line.endswith(b"\n"):
                start += len(line)
                on_read(len(line))
                line, too_long = file.readline(MAX_LINE), True
            start += len(line)
            on_read(len(line))
            if too_long:
                yield number, number, RefusedItem("too_long")
            elif line.strip():
                try:
                    value = _DECODER.decode(line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode())
                except UnicodeDecodeError as error:
                    value = RefusedItem("encoding", byte=error.start)
                except (ValueError, RecursionError):
                    value = RefusedItem("broken")
                yield number, number, value


def json_members(path: Path, on_read: OnRead) -> Iterator[tuple[str, Any]]:
    """Key and value of each member of the one JSON object in a file; of an array each element, with an empty key."""
    count = 0
    try:
        with _opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            text = _Text(file, on_read)
            closing = {"{": "}", "[": "]"}[text.take("{", "[")]
            mark = text.peek()
            while mark != closing:
                key = ""
                if closing == "}":
                    key = str(text.value())
                    text.take(":")
                value = text.value()
                count += 1
                yield key, value
                if (mark := text.peek()) != closing:
                    text.take(",")
            text.take(closing)
            text.take("")
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "msg", None) or error
        advice = "repair or remove the next item, as those after it cannot be counted"
        raise DataError(f"{path}: broken JSON after item {count:,}: {why}; {advice}") from error


@dataclass(slots=True)
class _Text:
    """The text of a JSON file, which is read as far as its next value needs."""

    file: IO[str]
    on_read: OnRead
    text: str = ""
    at: int = 0

    def _read_on(self) -> bool:
        """Read more; False at the end of the file."""
        chunk = self.file.read(max(_CHUNK, len(self.text) - self.at))  # twice as much for an item that needs more
        self.on_read(len(chunk.encode()))
        if chunk:
            self.text, self.at = self.text[self.at :] + chunk, 0
        return bool(chunk)

    def peek(self) -> str:
        """The next character that is no white space; empty at the end of the file."""
        while (match := _NOT_SPACE.search(self.text, self.at)) is None and self._read_on():
            pass
        self.at = match.start() if match else len(self.text)
        return match[0] if match else ""

    def take(self, *marks: str) -> str:
        """Read over the next character, which must be one of these."""
        if (mark := self.peek()) not in marks:
            raise ValueError(f"expected {' or '.join(marks) or 'nothing more'}")
        self.at += len(mark)
        return mark

    def value(self) -> Any:
        """The next value; raises ValueError where there is none in 64 MiB."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError:
                if len(self.text) - self.at > MAX_LINE or not self._read_on():
                    raise
                continue
            if end < len(self.text) or not self._read_on():  # a number may go on
                self.at = end
                return value


def _csv(path: Path, on_read: OnRead) -> Iterator[Record]:
    """Rows as objects by their columns. Bytes that are not UTF-8 become lone surrogates, which `cleaning` refuses."""
    delimiter = "\t" if ".tsv" in path.suffixes else ","
    with _opened(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = csv.reader(file, strict=True, delimiter=delimiter)
        header: list[str] | None = None
        row, line = 0, 1
        try:
            while True:
                with longest_field(MAX_LINE):
                    fields = next(rows, None)
                if fields is None:
                    return
                on_read(sum(map(len, fields)))
                if header is None:
                    header = fields
                    if twice := [name for name in dict.fromkeys(fields) if name and fields.count(name) > 1]:
                        raise DataError(f"{path}: {listed(twice)} is the name of several columns; rename them")
                elif fields:
                    row += 1
                    whole = len(fields) == len(header)
                    yield row, line, dict(zip(header, fields, strict=True)) if whole else RefusedItem("broken")
                line = rows.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}:{rows.line_num}: broken CSV, from line {line} on: {error}") from error


def dataset_records(place: str, split: str | None) -> Iterator[Record]:
    """The rows of a data set: a saved one's folder, or `hub:OWNER/NAME@COMMIT[:CONFIG]`. Raises MissingExtraError, and
    ConfigError where it cannot be loaded, or has several splits and none was named."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(place, 'pip install "h2htalk[release]"') from error
    try:
        if on_hub := HUB_DATASET.fullmatch(place):
            hub_api()  # gives the session that `datasets` shares a timeout
            name, commit, config = on_hub.groups()
            loaded = datasets.load_dataset(name, config, revision=commit, token=read_token() or False)
        else:
            loaded = datasets.load_from_disk(place)
    except H2HTalkError:
        raise
    except Exception as error:  # its loaders raise errors of many packages: network, files, formats
        raise ConfigError(f"{place}: cannot be loaded: {one_line(error)}") from error
    if isinstance(loaded, Mapping):
        names = sorted(loaded)
        if split is None and len(names) == 1:
            split = names[0]
        if split not in names:
            raise ConfigError(f"{place}: name one of its splits with #SPLIT: {', '.join(names)}")
        loaded = loaded[split]
    return ((number, number, value) for number, value in enumerate(loaded, 1))
