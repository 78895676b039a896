"""Stream records from and to Parquet files. A column may hold objects and lists as JSON text; the metadata names it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from h2htalk.data.files import json_line, refuse_constant, replacing, unique_pairs
from h2htalk.errors import DataError, quoted

_JSON_COLUMNS = b"h2htalk_json_columns"


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a Parquet file; columns written as JSON text by `write_parquet` are parsed.

    Raises:
        DataError: not a Parquet file, a column of a kind that JSON lacks (a date, bytes), or a column
            whose JSON is broken; names the file, and the row or the column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with path.open("rb") as source, pq.ParquetFile(source) as file:
            schema = file.schema_arrow
            _require_json_types(schema, path)
            columns = _json_columns(schema, path)
            number = 0
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    where = f"{path}:row {number}"
                    yield where, row | {name: _parsed(row[name], f"{where}: {name}") for name in columns}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error


def _require_json_types(schema: Any, path: Path) -> None:
    """Raise DataError unless JSON can hold every value of every column."""
    from pyarrow import types

    plain = (
        types.is_null,
        types.is_boolean,
        types.is_integer,
        types.is_floating,
        types.is_string,
        types.is_large_string,
    )
    waiting = [(field.name, field.type) for field in schema]
    while waiting:
        name, kind = waiting.pop()
        if types.is_struct(kind):
            waiting += [(f"{name}.{field.name}", field.type) for field in kind]
        elif types.is_dictionary(kind) or types.is_list(kind) or types.is_large_list(kind):
            waiting.append((name, kind.value_type))
        elif not any(is_kind(kind) for is_kind in plain):
            raise DataError(f"{path}: column {quoted(name)} holds {kind}; store it as text or as a number")


def _json_columns(schema: Any, path: Path) -> list[str]:
    """The columns that hold JSON text, according to the file's metadata."""
    note = (schema.metadata or {}).get(_JSON_COLUMNS, b"[]")
    try:
        names = json.loads(note)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{path}: its metadata {_JSON_COLUMNS.decode()} must be a JSON list of column names")
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise DataError(
            f"{path}: its metadata {_JSON_COLUMNS.decode()} name column {quoted(missing[0])}, which is missing"
        )
    return names


def _parsed(text: object, where: str) -> Any:
    if not isinstance(text, str):
        raise DataError(f"{where} must be JSON text, not {type(text).__name__}")
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique_pairs)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: broken JSON: {error}") from error


def write_parquet(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    json_columns: Sequence[str] = (),
    schema: Any = None,
    batch_size: int = 2048,
) -> int:
    """Stream records with equal keys to a Parquet file that appears only when it is complete.

    Parquet holds whole characters only: a lone surrogate outside `json_columns` is a DataError.

    Args:
        path: the file.
        records: at least one.
        json_columns: keys whose objects or lists are stored as JSON text (`read_parquet` parses it).
        schema: a `pyarrow.Schema`; None infers it from the first batch.
        batch_size: rows a row group.

    Returns:
        The number of rows.
    """
    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with replacing(path) as temporary, temporary.open("wb") as file:
            batches = _batches(records, json_columns, batch_size)
            if not (count := _write_batches(file, batches, json_columns, schema)):
                raise DataError(f"{path}: no record to write")
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path}: Parquet cannot hold half a character ({error.object[error.start]!a}); write JSONL"
        ) from error
    return count


def _batches(
    records: Iterable[Mapping[str, Any]], json_columns: Sequence[str], batch_size: int
) -> Iterator[list[dict[str, Any]]]:
    rows = iter(records)
    while batch := list(islice(rows, batch_size)):
        yield [dict(row) | {key: json_line(row[key])[:-1] for key in json_columns} for row in batch]


def _write_batches(file: Any, batches: Iterable[list[dict[str, Any]]], json_columns: Sequence[str], schema: Any) -> int:
    """Write row groups to an open file; returns the number of rows, 0 when nothing was written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    typed, count, writer = schema is not None, 0, None
    note = {_JSON_COLUMNS: json.dumps(list(json_columns))}
    try:
        for batch in batches:
            table = _table(batch, schema) if typed else pa.Table.from_pylist(batch, schema=schema)
            if writer is None:
                schema = table.schema.with_metadata(note)
                writer = pq.ParquetWriter(file, schema)
            writer.write_table(table.replace_schema_metadata(schema.metadata))
            count += len(batch)
        if writer is not None:
            writer.close()
    finally:
        if writer is not None:
            with contextlib.suppress(OSError):  # closed above, or failed already, and that is reported
                writer.close()
    return count


def _table(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Convert rows to a `pyarrow.Table` of that schema.

    By way of JSON, which holds every number exactly: `Table.from_pylist` loads pandas where it is installed,
    which costs every run 50 MB and 0.3 s.
    """
    import pyarrow as pa
    import pyarrow.json as pj

    lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()
    return pj.read_json(
        pa.BufferReader(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(lines)),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
