"""Files: streaming JSONL and Parquet, and whole-file writes that are atomic."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from h2htalk.errors import DataError

# A line longer than this is not a record but a broken file (64 MiB).
MAX_LINE = 1 << 26


def read_jsonl(path: Path, *, torn_tail: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a JSONL file; `where` is `name:line` for messages. Empty lines are skipped.

    Args:
        path: UTF-8, with or without a byte order mark.
        torn_tail: leave out a last line without a line end (a writer was killed in the middle of it).

    Raises:
        DataError: not readable, not UTF-8, not JSON, or not an object; names file and line.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE):
                number += 1
                where = f"{path}:{number}"
                if len(line) == MAX_LINE:
                    raise DataError(f"{where}: line longer than {MAX_LINE >> 20} MiB; is this a JSONL file?")
                if torn_tail and not line.endswith(b"\n"):
                    return
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield where, _parse_object(line, where)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _parse_object(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 (byte {error.start}); save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: broken JSON: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: must be a JSON object, not {type(record).__name__}")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON; write null or leave the field out")


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a Parquet file; columns written as JSON text by `write_parquet` are parsed.

    Raises:
        DataError: not a Parquet file, or a column whose JSON is broken.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        json_columns = json.loads((file.schema_arrow.metadata or {}).get(b"h2htalk_json_columns", b"[]"))
        number = 0
        for batch in file.iter_batches():
            for row in batch.to_pylist():
                number += 1
                for column in json_columns:
                    row[column] = json.loads(row[column])
                yield f"{path}:row {number}", row
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error


def write_parquet(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    json_columns: Sequence[str] = (),
    schema: Any = None,
    batch_size: int = 2048,
) -> int:
    """Stream records with equal keys to a Parquet file that appears only when it is whole.

    Parquet holds whole characters only: a lone surrogate outside `json_columns` is a DataError.

    Args:
        path: the file.
        records: at least one.
        json_columns: keys whose objects or lists are stored as JSON text (`read_parquet` undoes it).
        schema: a `pyarrow.Schema`; None infers it from the first batch.
        batch_size: rows a row group.

    Returns:
        The number of rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    note = {"h2htalk_json_columns": json.dumps(list(json_columns))}
    rows, typed = iter(records), schema is not None
    count, writer = 0, None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while batch := [_encoded(row, json_columns) for row in islice(rows, batch_size)]:
            table = _table(batch, schema) if typed else pa.Table.from_pylist(batch, schema=schema)
            if writer is None:
                schema = table.schema.with_metadata(note)
                writer = pq.ParquetWriter(temporary, schema)
            writer.write_table(table.replace_schema_metadata(schema.metadata))
            count += len(batch)
        if writer is None:
            raise DataError(f"{path}: no record to write")
        writer.close()
        os.replace(temporary, path)
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path}: Parquet cannot hold half a character ({error.object[error.start]!a}); write JSONL"
        ) from error
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    finally:
        if writer is not None:
            with contextlib.suppress(OSError):  # it failed already, and that is reported
                writer.close()
        _remove(temporary)
    return count


def _table(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """The rows as a `pyarrow.Table` of that schema.

    By way of JSON, which holds every number exactly: `Table.from_pylist` loads pandas where it is installed,
    50 MB and 0.3 s that every run would pay.
    """
    import pyarrow as pa
    import pyarrow.json as pj

    lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()
    return pj.read_json(
        pa.BufferReader(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(lines)),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


def _encoded(record: Mapping[str, Any], json_columns: Sequence[str]) -> dict[str, Any]:
    return dict(record) | {key: json_line(record[key])[:-1] for key in json_columns}


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Replace a whole file at once: a reader sees the old text or the new, never half of one.

    `text` may come in pieces, so that a large file never lies in memory whole. A lone surrogate (a model's half
    of a character) is written as its JSON escape.

    Raises:
        DataError: the folder cannot be written, or the disk is full.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines([text] if isinstance(text, str) else text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """`write_text` of indented JSON, keys in the order given."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """Stream records to a JSONL file that appears only when it is whole. Returns the number of lines."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for record in records:
                file.write(json_line(record))
                count += 1
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    finally:
        _remove(temporary)
    return count


def _remove(temporary: Path) -> None:
    # Its folder may be no folder at all; that was the error then, and is reported.
    with contextlib.suppress(OSError):
        temporary.unlink()


def json_line(record: object) -> str:
    """One line of JSONL, line end included. Lone surrogates are escaped, so that it is always UTF-8.

    Raises:
        DataError: a number that JSON cannot hold (NaN, infinity).
    """
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        name = record.get("id", "a record") if isinstance(record, Mapping) else "a record"
        raise DataError(f"{name}: holds NaN or infinity, which JSON cannot; write null instead") from error
    return text + "\n"


def write_problem(error: OSError) -> str:
    """An OSError of writing, as advice."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "the disk is full; nothing finished was lost: free space and start the same command again"
    return f"cannot be written: {error.strerror or error}"
