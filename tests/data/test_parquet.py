"""Parquet: records come back as they were, and a file that somebody else made is named where it cannot be read."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from h2htalk.data.responses import read_parquet, write_parquet
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import DataError

TURNS = [{"role": "user", "content": "Hi."}]
ROWS = [
    {"id": f"r{i}", "value": None if i % 3 == 2 else i / 7, "tags": {"n": i, "list": ["你好", None]}} for i in range(25)
]


@pytest.mark.parametrize("batch_size", [1, 10, 2048])
def test_parquet_rows_come_back(tmp_path: Path, batch_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("h2htalk.data.responses.ROWS_A_GROUP", batch_size)
    path = tmp_path / "x.parquet"
    assert write_parquet(path, iter(ROWS), json_columns=["tags"]) == 25
    stream = list(read_parquet(path))
    assert [row for _, row in stream] == ROWS
    assert stream[16][0] == f"{path}:row 17"


def test_parquet_json_columns_hold_half_a_character_and_plain_ones_refuse_it(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_parquet(path, [{"id": "a", "inputs": {"text": "\ud83d"}}], json_columns=["inputs"])
    assert [row for _, row in read_parquet(path)] == [{"id": "a", "inputs": {"text": "\ud83d"}}]
    with pytest.raises(DataError, match=r"half a character .*write JSONL"):
        write_parquet(path, [{"id": "a", "inputs": {}, "text": "\ud83d"}], json_columns=["inputs"])
    with pytest.raises(DataError, match="no record to write"):
        write_parquet(tmp_path / "none.parquet", [])
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_is_not_utf_8_is_as_good_as_any(tmp_path: Path) -> None:
    """pyarrow encodes paths as UTF-8 and raised on any other."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x\xff.parquet"))
    write_parquet(path, iter(ROWS), json_columns=["tags"])
    assert [row for _, row in read_parquet(path)] == ROWS
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("note", "cell"),
    [(b"PAR1", None), (b'["nope"]', "{}"), (b'["tags"]', 5), (b'["tags"]', '{"n":1,"n":2}')],
)
def test_a_foreign_file_that_is_broken_is_named(tmp_path: Path, note: bytes, cell: object) -> None:
    path = tmp_path / "x.parquet"
    table = pa.Table.from_pylist([{"id": "a", "tags": cell}])
    pq.write_table(table.replace_schema_metadata({b"h2htalk_json_columns": note}), path)
    if cell is None:
        path.write_bytes(note)
    with pytest.raises(DataError, match=r"x\.parquet: not a readable Parquet file"):
        list(read_parquet(path))


def test_a_value_that_json_does_not_know_is_refused_as_a_record(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([{"id": "a", "at": datetime.date(2026, 11, 20)}]), tmp_path / "x.parquet")
    ((where, row),) = read_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"row 1: a: metadata: at: holds a date"):
        Dialogue.from_dict({"id": "a", "language": "en", "messages": TURNS, "metadata": row}, where)
