"""Parquet files of records: read and written row by row, so that a file larger than the memory can be handled."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from h2htalk.data.bounded.json_values import require_few_values
from h2htalk.data.bounded.parquet_rows import parquet_rows, read_metadata
from h2htalk.data.files import UNIQUE_KEYS, json_line, replacing, require_file
from h2htalk.errors import DataError

_JSON_COLUMNS = b"h2htalk_json_columns"
ROWS_A_GROUP = 2048  # rows that are written together


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a Parquet file that `write_parquet` or another tool made. Raises DataError."""
    import pyarrow as pa

    number = 0
    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with require_file(path).open("rb") as source:
            metadata = read_metadata(source).metadata or {}
            nested = json.loads(metadata.get(_JSON_COLUMNS, b"[]"))
            for row in parquet_rows(source):
                number += 1
                for name in nested:
                    require_few_values(row[name])
                    row[name] = UNIQUE_KEYS.decode(row[name])
                yield f"{path}:row {number}", row
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        OverflowError,
        RecursionError,
        pa.ArrowException,
    ) as error:
        raise DataError(f"{path}: not a readable Parquet file (row {number}): {error}") from error


def write_parquet(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    json_columns: Sequence[str] = (),
    schema: Any = None,
) -> int:
    """Stream records with equal keys, at least one, to a Parquet file that appears only when it is complete.

    `json_columns` are keys whose objects or lists are stored as JSON text, which `read_parquet` parses; `schema` is a
    `pyarrow.Schema`, or None to infer it from all rows, which are then one group. Raises DataError for no record, and
    for half a character (a lone surrogate) outside `json_columns`.
    """
    import pyarrow.parquet as pq

    rows = iter(records)
    rows_a_group = None if schema is None else ROWS_A_GROUP
    count = 0
    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with (
            replacing(path) as temporary,
            temporary.open("wb") as file,
            contextlib.ExitStack() as stack,
        ):
            writer = None
            while batch := list(islice(rows, rows_a_group)):
                lines = []
                for row in batch:
                    line = dict(row)
                    for name in json_columns:
                        line[name] = json_line(row[name])[:-1]
                    lines.append(line)
                table = _table(lines, schema)
                if writer is None:
                    metadata = {_JSON_COLUMNS: json.dumps(list(json_columns))}
                    schema = table.schema.with_metadata(metadata)
                    writer = stack.enter_context(pq.ParquetWriter(file, schema))
                writer.write_table(table.replace_schema_metadata(schema.metadata))
                count += len(batch)
            if not count:
                raise DataError(f"{path}: no record to write")
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise DataError(
            f"{path}: Parquet cannot hold half a character ({bad!a}); write JSONL"
        ) from error
    return count


def _table(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Convert rows to a `pyarrow.Table` of a schema, by way of JSON, which holds every number exactly.

    `Table.from_pylist` loads pandas where it is installed, which costs every run 50 MB and 0.3 s.
    """
    import pyarrow as pa
    import pyarrow.json as pj

    if schema is None:
        return pa.Table.from_pylist(rows)
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
    content = "".join(lines).encode()
    return pj.read_json(
        pa.BufferReader(content),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(content)),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
