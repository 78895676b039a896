"""Stream records from and to Parquet files. A column may hold objects and lists as JSON text; the metadata names it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from h2htalk.data.files import UNIQUE_KEYS, json_line, replacing, require_file
from h2htalk.errors import DataError

_JSON_COLUMNS = b"h2htalk_json_columns"


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a Parquet file; columns written as JSON text by `write_parquet` are parsed.

    Raises:
        DataError: not a Parquet file, or a column whose JSON is broken.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with require_file(path).open("rb") as source, pq.ParquetFile(source) as file:
            nested = json.loads((file.schema_arrow.metadata or {}).get(_JSON_COLUMNS, b"[]"))
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}:row {number}", row | {name: UNIQUE_KEYS.decode(row[name]) for name in nested}
    except (OSError, ValueError, TypeError, KeyError, RecursionError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file (row {number}): {error}") from error


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
        records: at least one.
        json_columns: keys whose objects or lists are stored as JSON text (`read_parquet` parses it).
        schema: a `pyarrow.Schema`; None infers it from the first batch.
        batch_size: rows a row group.
    """
    import pyarrow.parquet as pq

    rows, count, convert = iter(records), 0, _table if schema is not None else _inferred
    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with replacing(path) as temporary, temporary.open("wb") as file, contextlib.ExitStack() as stack:
            writer = None
            while batch := list(islice(rows, batch_size)):
                lines = [dict(row) | {key: json_line(row[key])[:-1] for key in json_columns} for row in batch]
                table = convert(lines, schema)
                if writer is None:
                    schema = table.schema.with_metadata({_JSON_COLUMNS: json.dumps(list(json_columns))})
                    writer = stack.enter_context(pq.ParquetWriter(file, schema))
                writer.write_table(table.replace_schema_metadata(schema.metadata))
                count += len(batch)
            if not count:
                raise DataError(f"{path}: no record to write")
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path}: Parquet cannot hold half a character ({error.object[error.start]!a}); write JSONL"
        ) from error
    return count


def _inferred(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(rows, schema=schema)


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
