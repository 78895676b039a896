"""Reading JSONL: what is broken is named by file and line, and a record is one line that comes back."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data import files
from h2htalk.data.files import json_line, read_json_object, read_jsonl, refuse_links
from h2htalk.errors import DataError

HALF = st.text(st.characters() | st.characters(categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def read(path: Path, **options: bool) -> list[dict[str, Any]]:
    return [record for _, record in read_jsonl(path, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        b'{"id":"a"}\n{"id":"b"}\n',
        b'{"id":"a"}\n{"id":"b"}',
        b'\xef\xbb\xbf{"id":"a"}\r\n{"id":"b"} ',
        b'\n\r\n  \n{"id":"a"}\n\n\t\n{"id":"b"}\n\n',
        b'\xef\xbb\xbf\n{"id":"a"}\n{"id":"b"}\n',
    ],
    ids=["plain", "no last line end", "byte order mark and CRLF", "empty lines", "mark on an empty line"],
)
@pytest.mark.parametrize("torn_tail", [False, True])
def test_all_these_hold_the_same_two_records(tmp_path: Path, content: bytes, torn_tail: bool) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    assert read(path, torn_tail=torn_tail) == [{"id": "a"}, {"id": "b"}]


def test_a_line_separator_inside_a_text_ends_no_record(tmp_path: Path) -> None:
    """U+2028, U+0085 and form feed end a line for `str.splitlines`, not for JSONL."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"text":"a\u2028b\x85c"}\n', encoding="utf-8")
    assert read(path) == [{"text": "a\u2028b\x85c"}]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "a"', "broken JSON"),
        (b'\xef\xbb\xbf{"id": "a"}', "broken JSON"),
        (b'{"id": NaN}', "broken JSON: NaN is not JSON"),
        (b'{"id": 1' + b"0" * 5000 + b"}", "broken JSON"),
        (b'{"id":' * 100_000 + b"1" + b"}" * 100_000, "broken JSON"),
        (b'{"id": "caf\xe9"}', "not UTF-8 (byte 11)"),
        (b'{"id": "\xed\xa0\x80"}', "not UTF-8"),
        (b"[1, 2]", "must be a JSON object, not list"),
    ],
)
def test_line_17_is_named_when_it_is_broken(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": "a"}\n' * 16 + line + b"\n")
    with pytest.raises(DataError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}:17: {message}")
    assert "\n" not in str(raised.value)


def test_an_endless_line_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 1 << 20)
    path = tmp_path / "x.jsonl"
    path.write_bytes(b" " * (1 << 20) + b"{}\n")
    with pytest.raises(DataError, match=r"x\.jsonl:1: line longer than 1 MiB"):
        read(path)


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "n" * 300])
def test_what_cannot_be_read_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / name)


def test_a_torn_last_line_is_left_out_only_where_a_writer_may_have_been_killed(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": "a"}\n{"id": "b')
    assert read(path, torn_tail=True) == [{"id": "a"}]
    with pytest.raises(DataError, match=r"x\.jsonl:2: broken JSON"):
        read(path)


def test_a_key_that_stands_twice_is_refused_where_asked(tmp_path: Path) -> None:
    """A scenario with two references was read with the second one, silently."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "inputs": {"n": 1}}\n{"id": "b", "inputs": {"n": 1, "m": 2, "n": 3}}\n')
    assert read(path)[1] == {"id": "b", "inputs": {"n": 3, "m": 2}}
    with pytest.raises(DataError, match=r"x\.jsonl:2: broken JSON: the key 'n' is repeated; keep one"):
        read(path, unique_keys=True)


def test_an_object_that_is_not_there_is_the_callers_to_explain(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_json_object(tmp_path / "x.json")
    assert read_json_object(tmp_path / "x.json", missing_ok=True) == {}
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_json_object(tmp_path)


@given(record=st.dictionaries(st.text() | HALF, JSON | HALF))
def test_a_record_is_one_line_and_comes_back(record: dict[str, Any]) -> None:
    """A model cut in the middle of an emoji gives a lone surrogate; it must not cost the reply."""
    line = json_line(record)
    assert line.encode().count(b"\n") == 1
    assert json.loads(line) == record
    assert "\\u4f60" not in json_line({"text": "你好"})


@pytest.mark.parametrize("number", [math.nan, -math.inf])
def test_a_number_that_json_cannot_hold_is_refused(number: float) -> None:
    with pytest.raises(DataError, match="a-7: holds NaN or infinity"):
        json_line({"id": "a-7", "metadata": {"score": [number]}})


def test_a_file_that_its_writer_moves_meanwhile_is_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a run beside its writer ended in a traceback about a temporary file."""
    monkeypatch.setattr(os, "walk", lambda place: [(str(place), [], [".summary.json.7"])])
    refuse_links(tmp_path)
