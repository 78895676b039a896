"""Parquet: records come back as they were, and a file that somebody else made is named where it cannot be read."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.errors import DataError

ROWS = [
    {"id": f"r{i}", "value": None if i % 3 == 2 else i / 7, "tags": {"n": i, "list": ["你好", None]}} for i in range(25)
]


@pytest.mark.parametrize("batch_size", [1, 10, 2048])
def test_parquet_rows_come_back(tmp_path: Path, batch_size: int) -> None:
    path = tmp_path / "x.parquet"
    assert write_parquet(path, iter(ROWS), json_columns=["tags"], batch_size=batch_size) == 25
    stream = list(read_parquet(path))
    assert [row for _, row in stream] == ROWS
    assert stream[16][0] == f"{path}:row 17"


def test_parquet_json_columns_hold_half_a_character_and_plain_ones_refuse_it(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_parquet(path, [{"id": "a", "inputs": {"text": "\ud83d"}}], json_columns=["inputs"])
    assert [row for _, row in read_parquet(path)] == [{"id": "a", "inputs": {"text": "\ud83d"}}]
    with pytest.raises(DataError, match=r"half a character .*write JSONL"):
        write_parquet(path, [{"id": "a", "inputs": {}, "text": "\ud83d"}], json_columns=["inputs"])


def test_no_record_makes_no_parquet_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no record to write"):
        write_parquet(tmp_path / "x.parquet", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PAR1 but not really", None])
def test_a_broken_parquet_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.parquet: not a readable Parquet file"):
        list(read_parquet(path))


def test_a_path_that_is_not_utf_8_is_as_good_as_any(tmp_path: Path) -> None:
    """pyarrow encodes paths as UTF-8 and raised on any other."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x\xff.parquet"))
    write_parquet(path, iter(ROWS), json_columns=["tags"])
    assert [row for _, row in read_parquet(path)] == ROWS
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


# --- Files of others --------------------------------------------------------------------------------------------


def write_foreign(path: Path, row: dict[str, Any], note: bytes | None = None) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([row])
    if note is not None:
        table = table.replace_schema_metadata({b"h2htalk_json_columns": note})
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (datetime.datetime(2026, 11, 20), r"column 'provenance' holds timestamp\[us\]; store it as text"),
        (b"\xff", "column 'provenance' holds binary; store it as text"),
        ({"a": [{"day": datetime.date(2026, 11, 20)}]}, r"column 'provenance.a.day' holds date32\[day\];"),
    ],
    ids=["time", "bytes", "nested"],
)
def test_a_column_that_json_does_not_know_is_named(tmp_path: Path, value: object, message: str) -> None:
    """Such values came as far as the fingerprint, and ended there with a traceback."""
    path = write_foreign(tmp_path / "x.parquet", {"id": "a", "provenance": value})
    with pytest.raises(DataError, match=f"^{path}: {message}"):
        list(read_parquet(path))


def test_lists_structures_and_categories_of_others_are_read(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = {"id": "a", "inputs": {"history": [{"role": "user", "n": 1}]}, "x": 0.5, "y": True, "z": None}
    table = pa.Table.from_pylist([row])
    table = table.set_column(0, "id", table.column("id").dictionary_encode())
    pq.write_table(table, tmp_path / "x.parquet")
    assert [r for _, r in read_parquet(tmp_path / "x.parquet")] == [row]


@pytest.mark.parametrize(
    ("note", "cell", "message"),
    [
        (b"5", "{}", ": its metadata h2htalk_json_columns must be a JSON list of column names"),
        (b"[1]", "{}", ": its metadata h2htalk_json_columns must be a JSON list of column names"),
        (b"[" * 100_000, "{}", ": its metadata h2htalk_json_columns must be a JSON list of column names"),
        (b'["nope"]', "{}", ": its metadata h2htalk_json_columns name column 'nope', which is missing"),
        (b'["tags"]', None, ":row 1: tags must be JSON text, not NoneType"),
        (b'["tags"]', 5, ":row 1: tags must be JSON text, not int"),
        (b'["tags"]', "{", ":row 1: tags: broken JSON: "),
        (b'["tags"]', "[" * 100_000, ":row 1: tags: broken JSON: "),
        (b'["tags"]', '{"n": NaN}', ":row 1: tags: broken JSON: NaN is not JSON"),
        (b'["tags"]', '{"n": 1, "n": 2}', ":row 1: tags: broken JSON: the key 'n' is repeated"),
    ],
)
def test_wrong_json_in_a_column_is_named(tmp_path: Path, note: bytes, cell: object, message: str) -> None:
    path = write_foreign(tmp_path / "x.parquet", {"id": "a", "tags": cell}, note)
    with pytest.raises(DataError) as raised:
        list(read_parquet(path))
    assert str(raised.value).startswith(f"{path}{message}")


def test_a_file_that_names_no_columns_is_read_as_it_lies(tmp_path: Path) -> None:
    path = write_foreign(tmp_path / "x.parquet", {"id": "a", "tags": json.dumps({"n": 1})})
    assert [row for _, row in read_parquet(path)] == [{"id": "a", "tags": '{"n": 1}'}]
