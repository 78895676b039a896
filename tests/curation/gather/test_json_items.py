"""JSON of raw files: a broken line is a refused item, a broken array an error."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.gather.cleaning import clean
from h2htalk.curation.gather.formats import READERS, open_reader
from h2htalk.curation.gather.json_items import members
from h2htalk.curation.gather.raw_items import RawDialogue, RawItem, RefusedItem
from h2htalk.errors import DataError

GOOD = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}


def read(path: Path, form: str = "messages") -> list[RawItem]:
    return list(READERS[form](path, lambda size: None))  # type: ignore[index]


def reasons(items: list[RawItem]) -> list[str]:
    return [item.content.reason if isinstance(item.content, RefusedItem) else "read" for item in items]


def members_of(tmp_path: Path, text: str | bytes) -> list[tuple[int, str | None, Any]]:
    path = tmp_path / "raw.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(members(path, lambda size: None))


def test_a_broken_line_is_refused_with_its_number(tmp_path: Path) -> None:
    good = json.dumps(GOOD).encode()
    deep = b"[" * 100_000
    lines = [good, b'{"messages": [', good + b" 1", b"", b"7", b"\xff" + good, deep, good]
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    items = read(path)
    assert reasons(items) == ["read", "broken", "broken", "broken", "encoding", "broken", "read"]
    assert [item.row for item in items] == [1, 2, 3, 5, 6, 7, 8]
    assert [item.content.evidence["line"] for item in items if isinstance(item.content, RefusedItem)] == [
        2,
        3,
        5,
        6,
        7,
    ]


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        ({"patient": " Ann "}, {"patient": "Ann"}),
        ({"metadata": {"patient": "Ann"}, "user": {"name": "Bob"}}, {"patient": "Ann", "name": "Bob"}),
        ({"name": "Ann", "user": {"name": ["Bob", "Ann", ""]}}, {"name": ["Ann", "Bob"]}),
        ({"patient": None, "user": "u1", "metadata": []}, {}),
    ],
)
def test_names_of_the_user_are_kept_for_anonymize(tmp_path: Path, names: dict[str, Any], kept: dict[str, Any]) -> None:
    (tmp_path / "raw.jsonl").write_text(json.dumps(GOOD | names))
    (item,) = open_reader("messages", {}, ["patient"])(tmp_path / "raw.jsonl", lambda size: None)
    assert isinstance(item.content, RawDialogue)
    assert clean(item.content, "en").metadata == kept


def test_a_number_of_thousands_of_digits_and_nan_do_not_break_a_line(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    path.write_text(json.dumps(GOOD)[:-1] + ', "n": ' + "9" * 5000 + ', "m": NaN}\n', encoding="utf-8")
    assert reasons(read(path)) == ["read"]


def test_a_file_may_be_an_array(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    path.write_text(" \n" + json.dumps([GOOD, 3, GOOD], indent=1), encoding="utf-8")
    items = read(path)
    assert reasons(items) == ["read", "broken", "read"]
    assert [item.row for item in items] == [1, 2, 3]
    assert items[0].line == 3


@pytest.mark.parametrize("marked", [True, False])
def test_utf_16_is_refused_with_advice(tmp_path: Path, marked: bool) -> None:
    path = tmp_path / "raw.jsonl"
    path.write_bytes(json.dumps(GOOD).encode("utf-16" if marked else "utf-16-le"))
    with pytest.raises(DataError, match=r"is UTF-16.*iconv -f UTF-16"):
        read(path)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('[{"a": 1},\n {"a": }, {"a": 2}' + " " * 50 + "]", 2, "Expecting value"),
        ('[{"a": 1},\n\n {"a": "x', 3, "cut off"),
        ('[{"a": 1}', 1, "cut off"),
        ('[{"a": 1}]\n[]', 2, "text after its end"),
        ("[1 2]", 1, "expected , or ]"),
        ('{"a" 1}', 1, "expected :"),
        ("{1: 2}", 1, "a key must be text"),
        ("[" * 100_000, 1, "nested too deep"),
        ("", 1, "cut off"),
        ('"text"', 1, "expected"),
    ],
)
def test_a_broken_array_names_file_and_line(tmp_path: Path, text: str, line: int, reason: str) -> None:
    with pytest.raises(DataError, match=rf"raw\.json:{line}: broken JSON: .*{reason}"):
        members_of(tmp_path, text)


def test_members_before_the_break_are_read(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    path.write_text('[{"a": 1}, {"a": 2}, oops]', encoding="utf-8")
    reading = members(path, lambda size: None)
    assert [next(reading)[2], next(reading)[2]] == [{"a": 1}, {"a": 2}]
    with pytest.raises(DataError, match=r":1: broken JSON: Expecting value"):
        next(reading)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values=st.lists(JSON, max_size=6), indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_an_array_is_read_as_by_json(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    found = members_of(tmp_path_factory.mktemp("json"), text)
    assert [value for _, _, value in found] == json.loads(text.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2, 3])
def test_a_value_across_the_edge_of_a_chunk_is_complete(tmp_path: Path, offset: int) -> None:
    """A character of three bytes, an escape and a number are across the 64 KiB that are read first."""
    for tail in ("安安安", "\\u4e00\\ud83d\\ude00", '", "n": 123456789, "m": "'):
        text = '[{"a": "' + "x" * (65536 - 8 + offset - 4) + tail + '"}]'
        assert members_of(tmp_path, text)[0][2] == json.loads(text)[0]


@pytest.mark.slow
def test_long_members_take_linear_time(tmp_path: Path) -> None:
    def seconds(size: int) -> float:
        start = time.process_time()
        assert len(members_of(tmp_path, json.dumps([{"a": "字" * size}], ensure_ascii=False))[0][2]["a"]) == size
        return time.process_time() - start

    seconds(1000)
    short, long = (min(seconds(n) for _ in range(2)) for n in (2_000_000, 8_000_000))
    assert long < 8 * max(short, 0.05)


def test_two_users_of_one_name_are_both_read(tmp_path: Path) -> None:
    assert [value for _, _, value in members_of(tmp_path, '{"Ann": 1, "Ann": 2}')] == [1, 2]


def test_bytes_in_an_array_that_are_not_utf8_become_surrogates(tmp_path: Path) -> None:
    """`cleaning` refuses them."""
    found = members_of(tmp_path, b'[{"a": "\xff"}, {"a": "ok"}]')
    assert found[0][2]["a"] == "\udcff"
    assert found[1][2]["a"] == "ok"


def test_a_raw_dialogue_has_the_texts_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    path.write_text(json.dumps(GOOD), encoding="utf-8")
    assert read(path)[0].content == RawDialogue((("user", "Hi"), ("companion", "Hello.")))
