"""`scripted:FILE`: a file of replies that behaves like a model."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.protocol import Chat, Message, Reply, Request, Sampling
from h2htalk.data.responses import Failure
from h2htalk.errors import DataError


def chat_of(folder: Path, *lines: Any, **options: Any) -> Chat:
    written = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    (folder / "replies.jsonl").write_text(written)
    return open_chat(f"scripted:{folder / 'replies.jsonl'}", ChatOptions(**options))


def request(item_id: str, sample: int = 0) -> Request:
    return Request(item_id, (Message("user", "hello"),), Sampling(), sample)


def test_each_item_gets_its_line_then_the_longest_ending_then_the_star(tmp_path: Path) -> None:
    lines = [
        {"id": "a", "text": "早安"},
        {"id": "a", "sample": 1, "text": "", "finish_reason": "length"},
        {"id": "b", "failure": {"reason": "timeout", "message": "never answered", "attempts": 2}},
        {"id": "*/rubric", "text": "a rubric"},
        {"id": "*:base/rubric", "text": "a rubric of base"},
        {"id": "x:base/rubric", "text": "its own"},
    ]
    asked = [request("b"), request("a", 1), request("a"), request("x:base/rubric")]
    asked += [
        request("y:base/rubric", 1),
        request("y:plan/rubric", 1),
        request("y/pair"),
        request("a", 7),
    ]
    found = chat_of(tmp_path, *lines, {"id": "*", "text": "any"}).complete(asked)
    assert found[:4] == [
        Failure("timeout", "never answered", 2),
        Reply("", "length"),
        Reply("早安"),
        Reply("its own"),
    ]
    assert found[4:] == [*map(Reply, ("a rubric of base", "a rubric", "any", "any"))]
    chat = chat_of(tmp_path, *lines)
    missing: Any = chat.complete([request("a", 7)])
    assert [one.reason for one in missing] == ["missing"]
    digest = hashlib.sha256((tmp_path / "replies.jsonl").read_bytes()).hexdigest()
    assert chat.subject == {"engine": "scripted", "model": "replies.jsonl", "file_sha256": digest}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "broken JSON"),
        ({"id": "b"}, "either a text or a failure"),
        ({"id": "b", "text": "x", "failure": {"reason": "y"}}, "either a text or a failure"),
        ({"id": "*", "text": "x", "sample": 1}, "leave sample out"),
        ({"id": "a", "text": "again"}, "a second line for a sample 0"),
    ],
)
def test_a_line_that_is_wrong_is_named_by_file_and_number(
    tmp_path: Path, line: Any, complaint: str
) -> None:
    with pytest.raises(DataError) as caught:
        chat_of(tmp_path, {"id": "a", "text": "x"}, "", line)
    where, message = str(caught.value).split(" ", 1)
    assert (where, complaint in message, "\n" in message) == (
        f"{tmp_path}/replies.jsonl:3:",
        True,
        False,
    )
