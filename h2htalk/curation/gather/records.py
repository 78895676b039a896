"""Raw records of files: JSON lines, a JSON array or object, CSV, Parquet, and data sets of `datasets`.

Files are UTF-8, UTF-16 or Windows-1252 (`encodings`); what their name says is decompressed as they are read. A broken
line is one refused item. In a broken array or CSV file the items after the break cannot be counted: this is an error.
"""

from __future__ import annotations

import codecs
import csv
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from h2htalk.curation.gather.encodings import UTF8, UTF16, find_encoding
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.data.bounded.bounds import COLUMNS, LINE
from h2htalk.data.bounded.json_values import TooManyValues, require_few_values
from h2htalk.data.bounded.parquet_rows import parquet_rows, read_metadata
from h2htalk.data.erasure.unfinished_erasure import refuse_unfinished_erasure
from h2htalk.data.files import MAX_LINE
from h2htalk.errors import ConfigError, DataError, H2HTalkError, MissingExtraError, listed
from h2htalk.text.escaping import longest_field

OnRead = Callable[
    [int], object
]  # called with the number of bytes read from a raw file, for progress
Record = tuple[
    int, int | None, Any
]  # row, line (None where a format has no lines), value or why there is none
_CHUNK = 1 << 20  # bytes that are read at once
HUB_DATASET = re.compile(r"hub:([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})(?::([\w.-]+))?")
_TABLES = frozenset({".csv", ".tsv"})
PARQUET = ".parquet"


def file_records(
    path: Path, on_read: OnRead, span: tuple[int, int], table: bool = False, encoding: str = ""
) -> Iterator[Record]:
    """The records of a file, numbered from 1. `span`: first and last byte to read of lines that are not compressed;
    `table`: read a file that is no JSON as CSV, whatever its name is; `encoding`: its own decides where it is empty.

    Raises DataError, which names the file.
    """
    if path.suffix == PARQUET:
        yield from _parquet(path, on_read)
        return
    encoding = encoding or encoding_of(path)
    first = _first_character(path, encoding)
    if not _TABLES.isdisjoint(path.suffixes) or (table and first not in ("[", "{")):
        yield from _csv(path, on_read, encoding)
    elif first == "[":
        yield from (
            (row, None, value)
            for row, (_, value) in enumerate(json_members(path, on_read, encoding), 1)
        )
    elif encoding in UTF16:
        yield from _wide_lines(path, on_read, encoding)
    else:
        yield from _lines(path, on_read, *span, encoding)


def encoding_of(path: Path) -> str:
    """The encoding of a raw file, as Python names it; UTF-8 for a table in Parquet."""
    is_text = path.is_file() and path.suffix.lower() not in (PARQUET, ".zip")
    return find_encoding(path, _opened) if is_text else UTF8


def _parquet(path: Path, on_read: OnRead) -> Iterator[Record]:
    with _opened(path) as opened:
        try:
            size = path.stat().st_size // max(read_metadata(opened).num_rows, 1)
            for row, value in enumerate(parquet_rows(opened), 1):
                on_read(size)
                yield row, row, value
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        # Of texts that are not UTF-8, and of times that Python does not have.
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error


def has_lines(path: Path) -> bool:
    """Whether a file holds lines of JSON that can be read from any line on."""
    from fsspec.utils import infer_compression

    is_json = path.is_file() and path.suffix != PARQUET and _TABLES.isdisjoint(path.suffixes)
    return is_json and infer_compression(str(path)) is None and _first_character(path, UTF8) == "{"


@contextmanager
def _opened(path: Path, mode: str = "rb", **options: Any) -> Iterator[IO[Any]]:
    """A file, decompressed as its name says; raises DataError where it cannot be read."""
    import fsspec
    from fsspec.compression import compr, register_compression

    if "zstd" not in compr:  # registered by fsspec where `zstandard` is installed
        register_compression(
            "zstd", lambda f, mode: BufferedReader(pa.CompressedInputStream(f, "zstd")), "zst"
        )
    refuse_unfinished_erasure(path)
    try:
        with fsspec.open(str(path), mode, compression="infer", **options) as file:
            yield file
    # What a file that is cut off or no archive raises while it is decompressed.
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise DataError(f"{path}: cannot be read: {reason}") from error


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a file, decompressed, of at most so many bytes. Raises DataError."""
    content = bytearray()
    with _opened(path) as file:
        while part := file.read(_CHUNK):
            content += part
            if len(content) > most:
                raise DataError(
                    f"{path}: unfolds to more than {most >> 20:,} MiB; where that is right, decompress it"
                )
    return bytes(content)


def read_head(path: Path, size: int) -> str:
    """The text of the first bytes of a file, decompressed. Raises DataError."""
    with _opened(path) as file:
        head: bytes = file.read(size)
    return head.decode(encoding_of(path), "ignore").removeprefix("\ufeff")


def _first_character(path: Path, encoding: str) -> str:
    with _opened(path) as file:
        head = file.read(4096)
    if encoding in UTF16:
        text: str = head.decode(encoding, "ignore")
        return text.removeprefix("\ufeff").lstrip()[:1]
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    return chr(head[0]) if head else ""


def _with_mark(encoding: str) -> str:
    """The codec that also reads over the byte order mark of UTF-8."""
    return "utf-8-sig" if encoding == UTF8 else encoding


# Python refuses to read a number of thousands of digits, which no dialogue needs; other tools write NaN for null, and
# control characters in strings.
_DECODER = json.JSONDecoder(
    strict=False,
    parse_constant=lambda name: None,
    parse_int=lambda digits: int(digits) if len(digits) < 1000 else None,
)
_NOT_SPACE = re.compile(r"[^ \t\r\n]")


def _lines(path: Path, on_read: OnRead, start: int, end: int, encoding: str) -> Iterator[Record]:
    """The values of lines; an empty line has none. A line longer than 64 MiB is refused."""
    from fsspec.utils import infer_compression

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
                line = file.readline(MAX_LINE)
                too_long = True
            start += len(line)
            on_read(len(line))
            if too_long:
                yield number, number, RefusedItem("too_long", "a line of more than 64 MiB")
            elif line.strip():
                try:
                    text = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode(
                        encoding
                    )
                except UnicodeDecodeError as error:
                    yield number, number, RefusedItem("encoding", _NOT_UTF8, byte=error.start)
                else:
                    yield number, number, _json_value(text)


_NOT_UTF8 = "bytes that are not UTF-8"


def _json_value(text: str) -> Any:
    """The value of a line of JSON, or why there is none."""
    try:
        require_few_values(text)
        return _DECODER.decode(text.rstrip("\r\n"))
    except json.JSONDecodeError as error:
        return RefusedItem("broken", f"no JSON: {error.msg}", column=error.colno)
    except TooManyValues as error:
        return RefusedItem("too_long", str(error))
    except RecursionError:
        return RefusedItem("broken", "no JSON: nested too deeply")


def _wide_lines(path: Path, on_read: OnRead, encoding: str) -> Iterator[Record]:
    """The values of lines of a file in UTF-16, where a byte may be a line end in the middle of a character."""
    try:
        with _opened(path, "rt", encoding=encoding, newline="\n") as file:
            for number, line in enumerate(_whole_lines(file), 1):
                on_read(2 * len(line or ""))
                if line is None:
                    yield number, number, RefusedItem("too_long", "a line of more than 64 MiB")
                elif line.strip():
                    yield number, number, _json_value(line.removeprefix("\ufeff"))
    except UnicodeError as error:
        raise DataError(f"{path}: broken UTF-16: {error}; save it as UTF-8") from error


def _whole_lines(file: IO[str]) -> Iterator[str | None]:
    """The lines of a text file; None for one that is too long to be held."""
    while line := file.readline(MAX_LINE):
        is_whole = True
        while len(line) == MAX_LINE and not line.endswith("\n"):
            line = file.readline(MAX_LINE)
            is_whole = False
        yield line if is_whole else None


def json_members(path: Path, on_read: OnRead, encoding: str = "") -> Iterator[tuple[str, Any]]:
    """Key and value of each member of the one JSON object in a file; of an array each element, with an empty key."""
    count = 0
    try:
        with _opened(
            path, "rt", encoding=_with_mark(encoding or encoding_of(path)), newline=""
        ) as file:
            text = _Text(file, on_read)
            text.skip_mark()
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
        why = (
            "nested too deeply"
            if isinstance(error, RecursionError)
            else getattr(error, "msg", None) or error
        )
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
        chunk = self.file.read(
            max(_CHUNK, len(self.text) - self.at)
        )  # twice as much for an item that needs more
        self.on_read(len(chunk.encode()))
        if chunk:
            self.text, self.at = self.text[self.at :] + chunk, 0
        return bool(chunk)

    def skip_mark(self) -> None:
        """Read over the byte order mark of UTF-16 whose byte order was found without it."""
        if self._read_on() and self.text.startswith("\ufeff"):
            self.at = 1

    def peek(self) -> str:
        """The next character that is no white space; empty at the end of the file."""
        while (match := _NOT_SPACE.search(self.text, self.at)) is None:
            self.at = len(
                self.text
            )  # white space is read once: of a gigabyte of it no more than a part is kept
            if not self._read_on():
                break
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
                # Of this value alone, as far as it was read: those before it were taken.
                require_few_values(self.text)
                continue
            if end < len(self.text) or not self._read_on():  # a number may go on
                self.at = end
                return value


def _bounded_lines(file: IO[str]) -> Iterator[str]:
    """The lines of a table; raises csv.Error for one that is too long, before it is read whole."""
    while line := file.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise csv.Error(LINE.message("a line"))
        yield line


_SEPARATORS = (",", ";", "\t", "|")
_NAMED_SEPARATOR = re.compile(
    r"\ufeff?\"?sep=(.)\"?\s*", re.IGNORECASE
)  # Excel's own line before the table
# What `mysql --batch` and PostgreSQL's COPY write for characters within a cell, which they never quote.
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "", "b": "", "Z": "", "\\": "\\"}
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_NO_VALUES = ("NULL", "\\N")
_DOUBLED = re.compile(r'"[^"\t]*""')  # a mark within a quoted cell
_OPEN_MARK = re.compile(
    r'(?:^|\t)"[^"\t\r\n]*(?:[\t\r\n]|$)'
)  # at the begin of a cell that it does not end


@dataclass(frozen=True, slots=True)
class _TableForm:
    """How a table separates its cells, and how many lines stand before its header."""

    delimiter: str
    lines_before: int = 0
    is_escaped: bool = False  # a row is a line, and other line ends and tabs are escapes
    has_backslashes: bool = (
        False  # a mark within a quoted cell is `\\"`, as MySQL writes it into files
    )


def _table_form(path: Path, encoding: str) -> _TableForm:
    """The form of a table by its name, by Excel's line `sep=;`, or by what its header holds most of."""
    with _opened(path, "rt", encoding=_with_mark(encoding), errors="replace", newline="") as file:
        header = file.readline(_CHUNK)
        if named := _NAMED_SEPARATOR.fullmatch(header):
            return _TableForm(delimiter=named[1], lines_before=1)
        bare = re.sub(r'"[^"]*"', "", header)
        delimiter = "\t" if ".tsv" in path.suffixes else max(_SEPARATORS, key=bare.count)
        if delimiter == "\t":
            return _TableForm(delimiter=delimiter, is_escaped=_is_escaped(header, file))
        return _TableForm(delimiter=delimiter, has_backslashes=_has_backslashes(file))


def _is_escaped(header: str, lines: IO[str]) -> bool:
    """Whether each line of a table is a row, and what is no plain character an escape."""
    cells = header.count("\t")
    has_escapes = False
    has_open_marks = False
    while line := lines.readline(MAX_LINE):
        has_open_marks = has_open_marks or _OPEN_MARK.search(line) is not None
        if line.strip("\r\n") and line.count("\t") != cells:
            return False
        if _DOUBLED.search(line):
            return False
        if "\\" in line:
            escapes = _ESCAPE.findall(line.rstrip("\r\n"))
            if any(letter not in _ESCAPES and letter != "N" for letter in escapes):
                return False
            has_escapes = True
    return has_escapes or has_open_marks


def _has_backslashes(lines: IO[str]) -> bool:
    """Whether quotation marks within cells have a backslash before them, and none is doubled."""
    has_escaped = False
    while line := lines.readline(MAX_LINE):
        if re.search(r'[^,;|\n\\]""[^,;|\r\n]', line):
            return False
        has_escaped = has_escaped or re.search(r'[^\\]\\"[^,;|\r\n]', line) is not None
    return has_escaped


def _unescaped(cell: str) -> str | None:
    """The text of a cell of such a table; None where it has no value."""
    if cell in _NO_VALUES:
        return None
    return (
        _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), cell) if "\\" in cell else cell
    )


def _table_rows(form: _TableForm, file: IO[str]) -> Any:
    """The reader of the rows of a table."""
    lines = _bounded_lines(file)
    if form.is_escaped:
        return csv.reader(lines, delimiter=form.delimiter, quoting=csv.QUOTE_NONE)
    if form.has_backslashes:
        return csv.reader(
            lines, strict=True, delimiter=form.delimiter, doublequote=False, escapechar="\\"
        )
    return csv.reader(lines, strict=True, delimiter=form.delimiter)


def _csv(path: Path, on_read: OnRead, encoding: str) -> Iterator[Record]:
    """Rows as objects by their columns. Bytes that are not UTF-8 become lone surrogates, which `clean` refuses."""
    form = _table_form(path, encoding)
    errors = "strict" if encoding in UTF16 else "surrogateescape"
    with _opened(path, "rt", encoding=_with_mark(encoding), errors=errors, newline="") as file:
        for _ in range(form.lines_before):
            file.readline(_CHUNK)
        rows = _table_rows(form, file)
        header: list[str] | None = None
        row = 0
        line = 1 + form.lines_before
        try:
            while True:
                with longest_field(MAX_LINE):
                    fields = next(rows, None)
                if fields is None:
                    return
                on_read(sum(map(len, fields)))
                if header is None:
                    header = _header(fields, path)
                elif fields:
                    row += 1
                    cells = [_unescaped(cell) for cell in fields] if form.is_escaped else fields
                    yield row, line, _row(header, cells)
                line = rows.line_num + 1 + form.lines_before
        except csv.Error as error:
            number = rows.line_num + form.lines_before
            raise DataError(f"{path}:{number}: broken CSV, from line {line} on: {error}") from error
        except UnicodeError as error:
            raise DataError(
                f"{path}: broken {encoding.upper()}: {error}; save it as UTF-8"
            ) from error


def _header(fields: list[str], path: Path) -> list[str]:
    """The names of the columns. Raises DataError."""
    fields = [fields[0].removeprefix("\ufeff"), *fields[1:]] if fields else fields
    if len(fields) > COLUMNS.value:
        raise DataError(f"{path}: {COLUMNS.message('a table')}")
    if twice := [name for name, count in Counter(fields).items() if name and count > 1]:
        raise DataError(f"{path}: {listed(twice)} is the name of several columns; rename them")
    return fields


def _row(
    header: Sequence[str], fields: Sequence[str | None]
) -> dict[str, str | None] | RefusedItem:
    """A row by its columns; one of another length is refused."""
    if len(fields) == len(header):
        return dict(zip(header, fields, strict=True))
    return RefusedItem(
        "broken", "the row has another number of cells than the header", cells=len(fields)
    )


def dataset_records(place: str, split: str | None) -> Iterator[Record]:
    """The rows of a data set: a saved one's folder, or `hub:OWNER/NAME@COMMIT[:CONFIG]`. Raises MissingExtraError, and
    ConfigError where it cannot be loaded, or has several splits and none was named."""
    # The client of the Hub takes long to import, and all commands on workspaces import this module.
    from h2htalk.data.releases.hub import hub_api, one_line, read_token

    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(place, 'pip install "h2htalk[release]"') from error
    try:
        if on_hub := HUB_DATASET.fullmatch(place):
            hub_api()  # gives the session that `datasets` shares a timeout
            name, commit, config = on_hub.groups()
            loaded = datasets.load_dataset(
                name, config, revision=commit, token=read_token() or False
            )
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
