"""Remove records from files; a file that holds none of them is not changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl, remove_file, replacing, write_jsonl
from h2htalk.data.parquet import read_parquet


def filter_jsonl(path: Path, stays: Callable[[Mapping[str, Any]], bool]) -> int:
    """Remove the records of a JSONL file for which `stays` is false; return their number. Raises DataError."""
    records = [record for _, record in read_jsonl(path, torn_tail=True)]
    left = [record for record in records if stays(record)]
    if len(left) < len(records):
        write_jsonl(path, left)
    return len(records) - len(left)


def filter_parquet(path: Path, stays: Callable[[Mapping[str, Any]], bool]) -> int:
    """Remove the rows of a Parquet file for which `stays` is false; return their number. Raises DataError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kept = [stays(row) for _, row in read_parquet(path)]
    if all(kept):
        return 0
    # Opened here: pyarrow takes no path that is not UTF-8.
    with replacing(path) as temporary, path.open("rb") as source, temporary.open("wb") as target:
        pq.write_table(pq.read_table(source).filter(pa.array(kept)), target)
    return kept.count(False)


def remove_partial_files(folder: Path) -> None:
    """Remove files that a kill left half written, anywhere in a folder: an erasure does not search them."""
    for path in folder.rglob(".*"):
        # A spreadsheet program's lock, and a list of names, hold no text of an item.
        if path.is_file() and not path.name.startswith((".~", ".git")):
            remove_file(path)
