"""What a run stores: responses, typed failures, the answer that is scored; records in Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from h2htalk.data import responses
from h2htalk.data.responses import FailedResponse, Failure, Response, Usage, read_parquet, read_response, write_parquet
from h2htalk.errors import DataError

STRIPPED = [
    ("none", "  I'm here.\n", "I'm here."),
    ("the other name", "<thinking>hm</thinking>I'm here.", "I'm here."),
    ("white space in the tag", "<think >hm</think\n>I'm here.", "I'm here."),
    ("unclosed", "<think>She is sad, so I sho", ""),
    ("unclosed after an answer", "I'm here.\n<think>Was that ki", "I'm here."),
    ("lone close: the prompt opened it", "She is sad.\n</think>\n\nI'm here.", "I'm here."),
    ("the tag mentioned while thinking", "<think>I must not use <think> here.</think>I'm here.", "I'm here."),
    ("a block inside one that the prompt opened", "hm <think>a</think> hm</think>I'm here.", "I'm here."),
    ("a draft in quotes at the end", '<think>Say "Hi."</think>"Hi."', '"Hi."'),
    ("quoted in backticks", "A `<think>` opens it, `</think>` ends it.", "A `<think>` opens it, `</think>` ends it."),
    ("quoted while thinking", "<think>They ask about `</think>` tags.</think>It ends a block.", "It ends a block."),
    ("only like a tag", "I <3 you, and I thinkso> so </thoughts>.", "I <3 you, and I thinkso> so </thoughts>."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), [case[1:] for case in STRIPPED], ids=[case[0] for case in STRIPPED])
def test_thinking_is_kept_in_the_file_and_not_scored(text: str, answer: str) -> None:
    response = Response("a", 0, text)
    assert responses.strip_thinking(text) == response.answer == answer
    assert read_response(response.to_dict(), "x") == response


def test_keys_of_six_characters_and_more_are_masked() -> None:
    assert [responses.masked("abc123 abc12", key, "*") for key in ("abc123", "abc12")] == ["* abc12", "abc123 abc12"]


@pytest.mark.parametrize(
    ("text", "opened", "answer", "thinking"),
    [
        ("Hi.", False, "Hi.", None),
        ("Hi.", True, "", "Hi."),
        ("So kind.</think>\nHi.", False, "Hi.", "So kind."),
        ("<think>So kind.</think>\nHi.", True, "Hi.", "<think>So kind."),
        ("a<think>b</think>c<think>d</think>e", False, "ace", "bd"),
        ("", True, "", ""),
        ("", False, "", None),
    ],
)
def test_reasoning_is_told_from_the_answer_even_where_the_prompt_opened_it(
    text: str, opened: bool, answer: str, thinking: str | None
) -> None:
    assert responses.split_thinking(text, opened) == (answer, thinking)
    if not opened:
        assert responses.strip_thinking(text) == answer


USED = {"input_tokens": 12, "output_tokens": 0}


@pytest.mark.parametrize(
    ("response", "line"),
    [
        (Response("a", 0, ""), {"sample": 0, "text": "", "finish_reason": "unknown", "usage": {}}),
        (
            Response("a", 2, "Hi.", "stop", Usage(12, 0), "hm"),
            {"sample": 2, "text": "Hi.", "finish_reason": "stop", "usage": USED, "thinking": "hm"},
        ),
        (
            FailedResponse("a", 1, Failure("timeout", "in 120 s", 4)),
            {"sample": 1, "failure": {"reason": "timeout", "message": "in 120 s", "attempts": 4}},
        ),
    ],
)
def test_a_line_holds_what_is_known_and_comes_back(response: Response | FailedResponse, line: dict[str, Any]) -> None:
    assert response.to_dict() == {"id": "a", **line}
    assert read_response({"id": "a", **line}, "x") == response


def test_a_line_made_elsewhere_may_leave_out_what_it_does_not_know() -> None:
    nulls = {"id": "a", "text": "Hi.", "finish_reason": None, "usage": None, "failure": None, "more": 1}
    assert read_response({"id": "a", "text": "Hi."}, "x") == read_response(nulls, "x") == Response("a", 0, "Hi.")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"id": "a", "text": None}, "a: text: is missing"),
        ({"id": "a", "text": "x", "sample": True}, "a: sample: must be a whole number"),
        ({"id": "a", "text": "x", "usage": {"output_tokens": "3"}}, "a: usage.output_tokens: must be a whole number"),
        ({"id": "a", "text": "x", "at": float("inf")}, "a: at: must be "),
    ],
)
def test_a_wrong_line_is_named(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as raised:
        read_response(raw, "part-0.jsonl:17")
    assert str(raised.value).startswith(f"part-0.jsonl:17: {message}")


def test_parquet_rows_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [None if i % 3 == 0 else i / 7 for i in range(25)]
    rows = [{"id": f"r{i}", "value": v, "tags": {"n": i, "list": ["你好", None]}} for i, v in enumerate(values)]
    monkeypatch.setattr("h2htalk.data.responses.ROWS_A_GROUP", 1)  # a value of a column may first come after a group
    path = tmp_path / "x.parquet"
    assert write_parquet(path, iter(rows), json_columns=["tags"]) == 25
    stream = list(read_parquet(path))
    assert [row for _, row in stream] == rows
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


@pytest.mark.parametrize(("note", "cell"), [(b"PAR1", None), (b'["tags"]', 5), (b'["tags"]', '{"n":1,"n":2}')])
def test_a_foreign_file_that_is_broken_is_named(tmp_path: Path, note: bytes, cell: object) -> None:
    path = tmp_path / "x.parquet"
    table = pa.Table.from_pylist([{"id": "a", "tags": cell}])
    pq.write_table(table.replace_schema_metadata({b"h2htalk_json_columns": note}), path)
    if cell is None:
        path.write_bytes(note)
    with pytest.raises(DataError, match=r"x\.parquet: not a readable Parquet file"):
        list(read_parquet(path))
