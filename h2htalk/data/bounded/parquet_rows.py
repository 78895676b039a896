"""Rows of Parquet files that others made, in bounded memory.

A text that repeats is stored once, and 70 KB may unfold into gigabytes: texts stay in their dictionary until their row
is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from h2htalk.data.bounded.bounds import COLUMNS, LINE
from h2htalk.errors import DataError

BATCH = 256  # rows that are decoded together
_BATCH_BYTES = 1 << 25  # bytes of rows that are decoded together, as the file states them
_ROW_BY_ROW = 1 << 20  # bytes of a text from which rows become Python's objects one by one


def parquet_rows(source: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the rows of an open Parquet file. Raises DataError for too many columns or too long a row, and pyarrow's
    errors where it is not readable."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as plain:
        about = plain.metadata
        if about.num_columns > COLUMNS.value:
            raise DataError(COLUMNS.message("a table"))
        columns = [about.schema.column(index) for index in range(about.num_columns)]
        groups = [about.row_group(index) for index in range(about.num_row_groups)]
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    largest_row = max(
        (group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0
    )
    batch_rows = max(1, min(BATCH, _BATCH_BYTES // max(largest_row, 1)))
    source.seek(0)
    with pq.ParquetFile(source, read_dictionary=texts) as file:
        for batch in file.iter_batches(batch_rows):
            longest = max((_longest_text(column) for column in batch.columns), default=0)
            if longest > LINE.value:
                raise DataError(LINE.message("a row"))
            step = 1 if longest > _ROW_BY_ROW else batch.num_rows
            for start in range(0, batch.num_rows, max(step, 1)):
                yield from batch.slice(start, step).to_pylist()


def _longest_text(array: Any) -> int:
    """The bytes of the longest text or binary value in a column, nested ones included; of texts that together hold no
    more than `_ROW_BY_ROW` the bytes of all."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        return _longest_text(array.dictionary)
    if pa.types.is_struct(kind):
        return max(
            (_longest_text(array.field(index)) for index in range(kind.num_fields)), default=0
        )
    if pa.types.is_map(kind):
        return max(_longest_text(array.keys), _longest_text(array.items))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _longest_text(array.values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        if array.nbytes <= _ROW_BY_ROW:
            return int(array.nbytes)
        import pyarrow.compute as pc  # takes a tenth of the time of `leaderboard`, and few files have long texts

        return pc.max(pc.binary_length(array)).as_py() or 0
    return 0
