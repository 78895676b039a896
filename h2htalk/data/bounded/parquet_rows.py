"""Rows of Parquet files that others made, in bounded memory.

A text that repeats is stored once, pages are compressed, and a footer may lie: 17 KB may unfold into gigabytes. So
pyarrow and Python unfold them under a limit of memory that the operating system holds, and the rows are counted.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from typing import IO, Any

from h2htalk.data.bounded.bounds import COLUMNS, FOOTER, LINE, PARQUET_MEMORY, TABLE
from h2htalk.data.bounded.memory_limit import limited_memory
from h2htalk.errors import DataError

BATCH = 256  # rows that are decoded together
_BATCH_BYTES = 1 << 25  # bytes of rows that are decoded together, as the file states them
_MEMORY_A_BYTE = 16  # bytes that a byte of the file may take at once, beside `PARQUET_MEMORY`
_MEMORY_A_COLUMN = 1 << 15  # bytes that pyarrow takes to read a column, whatever it holds
_ARENA = 1 << 30  # bytes that pyarrow's allocator reserves at once
_UNFOLDED_A_BYTE = 1000  # bytes that a byte of a large file may unfold to in all
_BYTES_A_ROW = 256  # of the objects of Python, beside what a row holds
_END_BYTES = 8  # of a file: the length of its footer, and a mark
_NO_DICTIONARY = frozenset({"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"})


def read_metadata(source: IO[bytes]) -> Any:
    """The `pyarrow.parquet.FileMetaData` of an open file. Raises DataError for too many columns or too large a footer,
    and pyarrow's errors where it is not readable."""
    import pyarrow.parquet as pq

    size = source.seek(0, os.SEEK_END)
    source.seek(max(0, size - _END_BYTES))
    footer_bytes = int.from_bytes(source.read(4), "little")
    if FOOTER.value < footer_bytes < size:
        raise DataError(FOOTER.message("a footer"))
    source.seek(0)
    metadata = pq.read_metadata(source)
    if metadata.num_columns > COLUMNS.value:
        raise DataError(COLUMNS.message("a table"))
    return metadata


def parquet_rows(source: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the rows of an open Parquet file. Raises DataError for too many columns, too long a row, or a file that
    unfolds to too much, and pyarrow's errors where it is not readable."""
    import pyarrow.parquet as pq

    metadata = read_metadata(source)
    size = source.seek(0, os.SEEK_END)
    source.seek(0)
    memory = PARQUET_MEMORY.value + _MEMORY_A_BYTE * size + _MEMORY_A_COLUMN * metadata.num_columns
    if memory > _ARENA:
        # A program that imported pyarrow before this package lets its allocator take as much at its first call.
        memory += _ARENA
    most_unfolded = max(TABLE.value, _UNFOLDED_A_BYTE * size)
    unfolded = 0
    file = pq.ParquetFile(source, metadata=metadata, read_dictionary=_dictionary_columns(metadata))
    # A thread that cannot start for want of memory would end the process.
    batches = file.iter_batches(_batch_rows(metadata), use_threads=False)
    while True:
        try:
            with limited_memory(memory):
                batch = next(batches, None)
        except MemoryError as error:
            raise DataError(PARQUET_MEMORY.message("pages or rows")) from error
        if batch is None:
            return
        for rows, rows_size in _python_rows(batch, memory):
            unfolded += rows_size + _BYTES_A_ROW * len(rows)
            if unfolded > most_unfolded:
                raise DataError(TABLE.message("a table"))
            yield from rows


def _python_rows(batch: Any, memory: int) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """The rows of a batch with their bytes: all at once, or one by one where they are large together."""
    try:
        with limited_memory(memory):
            rows = batch.to_pylist()
            size = len(pickle.dumps(rows))
        if size <= LINE.value:
            yield rows, size
            return
    except MemoryError:
        pass
    if batch.num_rows == 1:
        raise DataError(LINE.message("a row"))
    rows = []  # their memory is free again
    for number in range(batch.num_rows):
        yield from _python_rows(batch.slice(number, 1), memory)


def _batch_rows(metadata: Any) -> int:
    """How many rows are decoded together."""
    largest_row = 1
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        row_bytes = group.total_byte_size // max(group.num_rows, 1)
        largest_row = max(largest_row, row_bytes)
    return max(1, min(BATCH, _BATCH_BYTES // largest_row))


def _dictionary_columns(metadata: Any) -> list[str]:
    """The paths of columns of texts, but for those in an encoding of which pyarrow makes no dictionary."""
    paths = []
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        if column.physical_type != "BYTE_ARRAY":
            continue
        encodings = set()
        for number in range(metadata.num_row_groups):
            encodings.update(metadata.row_group(number).column(index).encodings)
        if _NO_DICTIONARY.isdisjoint(encodings):
            paths.append(column.path)
    return paths
