"""Records of raw files: a broken line is a refused item, a broken array an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gather_made import read_file
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.gather.cleaning import clean
from h2htalk.curation.gather.raw_items import RawDialogue, RawItem, RefusedItem
from h2htalk.curation.gather.records import object_members
from h2htalk.errors import DataError

GOOD = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}


def reasons(items: list[RawItem]) -> list[str]:
    return [item.content.reason if isinstance(item.content, RefusedItem) else "read" for item in items]


def test_a_broken_line_is_refused_with_its_number(tmp_path: Path) -> None:
    good = json.dumps(GOOD).encode()
    deep = b"[" * 100_000
    lines = [good, b'{"messages": [', good + b" 1", b"", b"7", b"\xff" + good, deep, good]
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    items = read_file(path)
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
    (item,) = read_file(tmp_path / "raw.jsonl", name_keys=("patient",))
    assert isinstance(item.content, RawDialogue)
    assert clean(item.content, "en").metadata == kept


def test_a_number_of_thousands_of_digits_and_nan_do_not_break_a_line(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    path.write_text(json.dumps(GOOD)[:-1] + ', "n": ' + "9" * 5000 + ', "m": NaN}\n', encoding="utf-8")
    assert reasons(read_file(path)) == ["read"]


def test_a_file_may_be_an_array(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    path.write_text(" \n" + json.dumps([GOOD, 3, GOOD], indent=1), encoding="utf-8-sig")
    items = read_file(path)
    assert reasons(items) == ["read", "broken", "read"]
    assert [item.row for item in items] == [1, 2, 3]
    assert items[0].line is None


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"a": }]', '[{"a": 1}, {"a": "x', '[{"a": 1}', "[{}, 1 2]", '[{"a": NaN}]']
)
def test_a_broken_array_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "raw.json").write_text(text)
    with pytest.raises(DataError, match=r"raw\.json: broken JSON after item [012]: .*cannot be counted"):
        read_file(tmp_path / "raw.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcd", max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values=st.dictionaries(st.text("abcd", max_size=5), JSON, max_size=6), indent=st.sampled_from([None, 1]))
def test_an_object_is_read_as_by_json(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any], indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("json") / "raw.json"
    path.write_text(json.dumps(values, indent=indent), encoding="utf-8")
    assert list(object_members(path, lambda size: None)) == list(values.items())


def test_two_users_of_one_name_are_both_read(tmp_path: Path) -> None:
    (tmp_path / "raw.json").write_text('{"Ann": 1, "Ann": 2}')
    assert [value for _, value in object_members(tmp_path / "raw.json", lambda size: None)] == [1, 2]
