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
from collections.abc import Iterator, Mapping
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

from h2htalk.curation.gather.raw_items import OnRead, RefusedItem
from h2htalk.data.files import MAX_LINE
from h2htalk.data.releases.hub import hub_api, one_line, read_token
from h2htalk.errors import ConfigError, DataError, H2HTalkError, MissingExtraError, quoted
from h2htalk.text.escaping import longest_field

# (row, line, value or why there is none); `line` is None where a format has no lines.
Record = tuple[int, int | None, Any]
_BATCH = 256
# What `Dataset.save_to_disk` and `DatasetDict.save_to_disk` write.
_SAVED = ("state.json", "dataset_dict.json")
_HUB = re.compile(r"hub:([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})(?::([\w.-]+))?(?:#([\w.-]+))?")
_TABLES = frozenset({".csv", ".tsv"})
PARQUET = ".parquet"


def file_records(path: Path, on_read: OnRead, span: tuple[int, int], table: bool = False) -> Iterator[Record]:
    """The records of a file, in order, numbered from 1.

    Args:
        path: the file.
        on_read: called with the number of bytes read.
        span: first and last byte to read, of a file of lines that is not compressed; any other file is read whole.
        table: read a file that is no JSON as CSV, whatever its name is.

    Raises:
        DataError: the file cannot be read, or its items cannot be counted; names it.
    """
    first = "" if path.suffix == PARQUET else _first_character(path)
    with _readable(path):
        if path.suffix == PARQUET:
            yield from _parquet(path, on_read)
        elif not _TABLES.isdisjoint(path.suffixes) or (table and first not in ("[", "{")):
            yield from _csv(path, on_read)
        elif first == "[":
            yield from _array(path, on_read)
        else:
            yield from _lines(path, on_read, *span)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    # What a file that is cut off or no archive raises while it is decompressed.
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise DataError(f"{path}: cannot be read: {reason}") from error


@contextmanager
def _opened(path: Path, mode: str = "rb", **options: Any) -> Iterator[IO[Any]]:
    if "zstd" not in compr:  # registered by fsspec where `zstandard` is installed
        register_compression("zstd", lambda f, mode: BufferedReader(pa.CompressedInputStream(f, "zstd")), "zst")
    with fsspec.open(str(path), mode, compression="infer", **options) as file:
        yield file


def _first_character(path: Path) -> str:
    with _readable(path), _opened(path) as file:
        head = file.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()
    return chr(head[0]) if head else ""


# --- JSON ---------------------------------------------------------------------------------------------------------


def _whole_number(text: str) -> int | None:
    """The number; None for one of thousands of digits, which Python refuses to read and no dialogue needs."""
    return int(text) if len(text) < 1000 else None


def _lines(path: Path, on_read: OnRead, start: int, end: int) -> Iterator[Record]:
    """The values of lines; an empty line has none. A line longer than 64 MiB is refused."""
    compressed = infer_compression(str(path)) is not None
    with _opened(path) as file:
        number = sum(chunk.count(b"\n") for chunk in _chunks(file, start))
        while (compressed or start < end) and (line := file.readline(MAX_LINE)):
            number += 1
            start += len(line)
            on_read(len(line))
            too_long = len(line) == MAX_LINE and not line.endswith(b"\n")
            while len(line) == MAX_LINE and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE)
                start += len(line)
                on_read(len(line))
            if too_long:
                yield number, number, RefusedItem("too_long", line=number)
            elif line.strip():
                yield number, number, _parsed(line.removeprefix(codecs.BOM_UTF8 if number == 1 else b""), number)


def _chunks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """The next `size` bytes, in pieces."""
    while size > 0 and (chunk := file.read(min(size, 1 << 20))):
        size -= len(chunk)
        yield chunk


def _parsed(line: bytes, number: int) -> Any:
    """The JSON value of a line; other tools write NaN for null, and control characters in strings."""
    try:
        text = line.decode()
        return json.loads(text, strict=False, parse_constant=lambda name: None, parse_int=_whole_number)
    except UnicodeDecodeError as error:
        return RefusedItem("encoding", line=number, byte=error.start)
    except (ValueError, RecursionError):
        return RefusedItem("broken", line=number)


@dataclass(slots=True)
class _Counted:
    """A file that counts what is read from it, without its byte order mark."""

    file: IO[bytes]
    on_read: OnRead
    mark: bytes = codecs.BOM_UTF8

    def read(self, size: int = -1) -> bytes:
        chunk = self.file.read(size)
        self.on_read(len(chunk))
        mark, self.mark = self.mark, b"" if chunk else self.mark  # ijson begins with an empty read
        return chunk.removeprefix(mark)


def _array(path: Path, on_read: OnRead) -> Iterator[Record]:
    """The elements of one JSON array."""
    import ijson

    for row, value in enumerate(_members(path, on_read, lambda file: ijson.items(file, "item")), 1):
        yield row, None, value


def object_members(path: Path, on_read: OnRead) -> Iterator[tuple[str, Any]]:
    """Key and value of each member of the one JSON object in a file; raises DataError."""
    import ijson

    with _readable(path):
        yield from _members(path, on_read, lambda file: ijson.kvitems(file, ""))


def _members(path: Path, on_read: OnRead, read: Any) -> Iterator[Any]:
    import ijson

    count = 0
    try:
        with _opened(path) as file:
            for value in read(_Counted(file, on_read)):
                count += 1
                yield value
    except (ijson.JSONError, ValueError) as error:
        raise DataError(
            f"{path}: broken JSON after item {count:,}: {one_line(error)}; repair or remove the next item, as those "
            "after it cannot be counted"
        ) from error


# --- Tables -------------------------------------------------------------------------------------------------------


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
                elif fields:
                    row += 1
                    whole = len(fields) == len(header)
                    yield row, line, dict(zip(header, fields, strict=True)) if whole else RefusedItem("broken")
                line = rows.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}:{rows.line_num}: broken CSV, from line {line} on: {error}") from error


def _parquet(path: Path, on_read: OnRead) -> Iterator[Record]:
    number = 0
    with pq.ParquetFile(path) as file:
        size = path.stat().st_size // max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(_BATCH):
            on_read(size * batch.num_rows)
            for value in batch.to_pylist():
                number += 1
                yield number, number, value


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A data set on the Hub at a commit: `hub:OWNER/NAME@COMMIT`, with `:CONFIG` and `#SPLIT` where it has several."""

    name: str
    commit: str
    config: str | None
    split: str | None

    def __str__(self) -> str:
        return f"hub:{self.name}@{self.commit}" + (f":{self.config}" if self.config else "")


def hub_dataset(path: str) -> HubDataset:
    """Parse `hub:OWNER/NAME@COMMIT[:CONFIG][#SPLIT]`; raises ConfigError where it is not of that form."""
    match = _HUB.fullmatch(path)
    if match is None:
        raise ConfigError(
            f"{quoted(path)} is not of the form hub:OWNER/NAME@COMMIT[:CONFIG][#SPLIT]; write all 40 digits of the "
            "commit, as a branch may change"
        )
    return HubDataset(*match.groups())


def is_saved_dataset(folder: Path) -> bool:
    """Whether a folder was written by `save_to_disk`."""
    return any((folder / name).is_file() for name in _SAVED)


def dataset_records(source: Path | HubDataset, split: str | None) -> Iterator[Record]:
    """The rows of a data set, in order.

    Args:
        source: a saved one's folder, or one of the Hub, which is downloaded.
        split: its name; None where there is only one.

    Raises:
        ConfigError: it cannot be loaded, or has several splits and none was named.
        MissingExtraError: the `datasets` package is not installed.
    """
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(str(source), 'pip install "h2htalk[release]"') from error
    try:
        if isinstance(source, HubDataset):
            hub_api()  # gives the session that `datasets` shares a timeout
            token = read_token() or False
            loaded = datasets.load_dataset(source.name, source.config, revision=source.commit, token=token)
        else:
            loaded = datasets.load_from_disk(str(source))
    except H2HTalkError:
        raise
    except Exception as error:  # its loaders raise errors of many packages: network, files, formats
        raise ConfigError(f"{source}: cannot be loaded: {one_line(error)}") from error
    if isinstance(loaded, Mapping):
        names = sorted(loaded)
        if split is None and len(names) == 1:
            split = names[0]
        if split not in names:
            raise ConfigError(f"{source}: name one of its splits with #SPLIT: {', '.join(names)}")
        loaded = loaded[split]
    return ((number, number, value) for number, value in enumerate(loaded, 1))
