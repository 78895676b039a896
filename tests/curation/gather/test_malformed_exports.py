"""Broken exports end in one line that says what is wrong, never in a traceback, and cost no time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from test_formats import read_file

from h2htalk.curation.export_programs import EXPORT_PROGRAMS
from h2htalk.curation.gather import look
from h2htalk.curation.gather.exports import export_files
from h2htalk.curation.gather.exports.programs import PROGRAMS
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from h2htalk.curation.stages import Format
from h2htalk.errors import DataError

BROKEN = {
    "empty": b"",
    "white space": b" \n\n",
    "zero bytes": b"\0" * 100,
    "a list that is nested too deeply": b"[" * 100_000,
    "an object that is nested too deeply": b'{"a":' * 50_000,
    "null": b"null",
    "a number": b"1",
    "an empty list": b"[]",
    "a list of other things": b'[[], [1], null, {}, "x"]',
    "a byte order mark alone": b"\xff\xfe",
    "half a character": b"\xff\xfea",
    "one long line": b"a" * 100_000,
    "JSON that is cut off": b'{"messages": [{"type": "message", "text": "hi',
    "mixed encodings": "Ann: hé\n".encode()
    + "Joy: hé\n".encode("cp1252")
    + "你好".encode("utf-16-le"),
}
LOG = r"(?P<speaker>[^:]+): (?P<text>.*)"


def problems(path: Path, form: str) -> list[str]:
    """Why a file is refused."""
    more: dict[str, Any] = {"pattern": LOG} if form == "chat_log" else {}
    try:
        contents = [item.content for item in read_file(path, form, companion="Joy", **more)]
    except DataError as error:
        return [str(error)]
    assert not any(isinstance(content, RawDialogue) for content in contents)
    return [content.problem for content in contents if isinstance(content, RefusedItem)]


def test_each_program_that_is_read_has_a_title_and_is_a_format_of_a_source() -> None:
    assert EXPORT_PROGRAMS.keys() == PROGRAMS.keys()
    assert set(PROGRAMS) <= set(get_args(Format))


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("form", PROGRAMS)
def test_a_broken_file_is_refused_in_a_line(tmp_path: Path, form: str, kind: str) -> None:
    suffix = PROGRAMS[form].patterns[0].removeprefix("*").replace("conversations*", "")
    path = tmp_path / f"conversations{suffix}"
    path.write_bytes(BROKEN[kind])
    for problem in problems(path, form):
        assert problem
        assert "\n" not in problem


@pytest.mark.parametrize("kind", BROKEN)
def test_look_says_something_of_a_broken_file(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_bytes(BROKEN[kind])
    lines = list(look.look(tmp_path / "a.txt"))
    assert lines
    assert not any("Traceback" in line for line in lines)


def node(name: str, parent: object, role: str | None) -> dict[str, Any]:
    author = None if role is None else {"role": role}
    return {
        "id": name,
        "parent": parent,
        "message": {"author": author, "content": {"parts": [name]}},
    }


@pytest.mark.parametrize("current", ["a", "b", "c", "d", "e", None, ["x"]])
def test_a_tree_with_a_circle_ends(tmp_path: Path, current: object) -> None:
    mapping = {
        "a": node("a", "b", "user"),
        "b": node("b", "a", "assistant"),
        "c": None,
        "d": node("d", ["x"], None),
        "e": node("e", "e", "user"),
    }
    chats = [{"id": "1", "current_node": current, "mapping": mapping}]
    (tmp_path / "conversations.json").write_text(json.dumps(chats), encoding="utf-8")
    contents = [item.content for item in read_file(tmp_path / "conversations.json", "chatgpt")]
    assert len(contents) == 1
    (content,) = contents
    if isinstance(content, RawDialogue):
        assert sorted(text for _, text in content.messages) == ["a", "b"]
    else:
        assert isinstance(content, RefusedItem)
        assert content.reason in ("empty", "one_speaker")


@pytest.mark.parametrize(
    "text",
    [
        "[12/03/24, 21:15:03] Ann: \u200eimage omitted\n[12/03/24, 21:16:03] Joy: \u200eThis message was deleted.\n",
        "[12/03/24, 21:15:03] Luna: \u200eMessages and calls are end-to-end encrypted.\n",
    ],
)
def test_a_chat_of_lines_of_the_program_alone_is_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (item,) = read_file(tmp_path / "a.txt", "whatsapp", companion="Joy", date_order="dmy")
    assert isinstance(item.content, RefusedItem)
    assert (item.content.reason, item.content.problem) == (
        "empty",
        "the chat has no message with text",
    )


def test_values_of_other_kinds_in_rows_break_nothing(tmp_path: Path) -> None:
    values: list[Any] = [
        None,
        True,
        -1,
        1e308,
        10**30,
        [],
        {},
        {"a": 1},
        "\x00",
        "2024-99-99T99:99:99",
        "9" * 25,
    ]
    rows = [{"id": value, "sender": "Ann", "text": "hi", "created_at": value} for value in values]
    rows += [{"id": 1, "sender": value, "text": value, "created_at": 1} for value in values]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for item in read_file(tmp_path / "a.jsonl", "turns", companion="Ann"):
        assert isinstance(item.content, RawDialogue | RefusedItem)


@pytest.mark.parametrize("form", ["chatgpt", "telegram"])
def test_an_export_of_too_many_values_is_refused_before_it_is_parsed(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """33 MB of `[],` in an export that is read whole took 1 GB; a bound of its own, as real ones hold millions."""
    monkeypatch.setenv("H2HTALK_MOST_EXPORT_VALUES", "1000")
    path = tmp_path / "conversations.json"
    path.write_text("[" + "[], " * 1001 + "[]]", encoding="utf-8")
    monkeypatch.setattr(export_files, "json", None)  # nothing is parsed
    assert problems(path, form) == [
        "JSON of more than 1,000 values; where that is right, set H2HTALK_MOST_EXPORT_VALUES=4000"
    ]
