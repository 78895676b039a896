"""What a run stores: responses as they came, typed failures, and the answer that is scored."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.responses import (
    FailedResponse,
    Failure,
    Response,
    Usage,
    read_response,
    split_thinking,
    strip_thinking,
)
from h2htalk.errors import DataError

STRIPPED = [
    ("none", "  I'm here.\n", "I'm here."),
    ("only white space", " \n\t", ""),
    ("one", "<think>She is sad.</think>I'm here.", "I'm here."),
    ("one over lines", "<think>\nShe is sad.\n\nBe kind.\n</think>\n\nI'm here.\n", "I'm here."),
    ("empty", "<think></think>I'm here.", "I'm here."),
    ("the other name", "<thinking>hm</thinking>I'm here.", "I'm here."),
    ("upper case", "<THINK>hm</Think>I'm here.", "I'm here."),
    ("white space in the tag", "<think >hm</think\n>I'm here.", "I'm here."),
    ("several", "<think>a</think>I'm <think>b</think>here.", "I'm here."),
    ("in the middle", "I'm here. <think>Ask more?</think> Go on?", "I'm here.  Go on?"),
    ("unclosed", "<think>She is sad, so I sho", ""),
    ("unclosed after an answer", "I'm here.\n<think>Was that ki", "I'm here."),
    ("lone close: the prompt opened it", "She is sad.\n</think>\n\nI'm here.", "I'm here."),
    ("lone close and nothing behind it", "She is sad.</think>", ""),
    ("lone close, then a whole block", "hm</think>I'm <think>b</think>here.", "I'm here."),
    ("nested", "<think>a<think>b</think>c</think>I'm here.", "I'm here."),
    ("the tag mentioned while thinking", "<think>I must not use <think> here.</think>I'm here.", "I'm here."),
    ("closed twice", "<think>a</think>b</think>I'm here.", "I'm here."),
    ("a block inside one that the prompt opened", "hm <think>a</think> hm</think>I'm here.", "I'm here."),
    ("mixed names", "<think>a</thinking>I'm here.", "I'm here."),
    ("a draft in quotes at the end", '<think>Say "Hi."</think>"Hi."', '"Hi."'),
    ("quoted in backticks", "A `<think>` opens it, `</think>` ends it.", "A `<think>` opens it, `</think>` ends it."),
    ("quoted in an answer", 'What does "<think>" mean to you?', 'What does "<think>" mean to you?'),
    ("quoted in Chinese", "你说的“<think>”和「</think>」是什么？", "你说的“<think>”和「</think>」是什么？"),
    ("quoted while thinking", "<think>They ask about `</think>` tags.</think>It ends a block.", "It ends a block."),
    ("only like a tag", "I <3 you, and I thinkso> so </thoughts>.", "I <3 you, and I thinkso> so </thoughts>."),
    ("another tag", "<b>I'm</b> here, <thinker>.", "<b>I'm</b> here, <thinker>."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), [case[1:] for case in STRIPPED], ids=[case[0] for case in STRIPPED])
def test_thinking_is_kept_in_the_file_and_not_scored(text: str, answer: str) -> None:
    response = Response("a", 0, text)
    assert strip_thinking(text) == response.answer == answer
    assert read_response(response.to_dict(), "x") == response


@given(st.lists(st.sampled_from(["<think>", "</think>", "<THINKING>", "</thinking>", "a", " ", "`", '"', "“", "”"])))
def test_no_tag_is_left_that_is_not_quoted_and_a_second_look_changes_nothing(parts: list[str]) -> None:
    answer = strip_thinking("".join(parts))
    assert answer == answer.strip()
    if not set(parts) & {"`", '"', "“", "”"}:
        assert "think" not in answer.lower()
        assert strip_thinking(answer) == answer


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<think></think>", "<", "`<think>`", "<think " + " " * 50])
def test_a_hostile_reply_takes_no_longer_than_its_length(piece: str) -> None:
    """A search for each opening tag's end took minutes for a reply of nothing but opening tags."""
    start = time.process_time()
    strip_thinking(piece * (700_000 // len(piece)))
    assert time.process_time() - start < 3


# --- Lines of responses -------------------------------------------------------------------------------------------

FULL = Response("a", 2, "Hi.", "stop", Usage(12, 3), "hm", "req-1")


@pytest.mark.parametrize(
    ("text", "opened", "answer", "thinking"),
    [
        ("Hi.", False, "Hi.", None),
        ("Hi.", True, "", "Hi."),
        ("a < b", True, "", "a < b"),
        ("So kind.</think>\nHi.", True, "Hi.", "So kind."),
        ("So kind.</think>\nHi.", False, "Hi.", "So kind."),
        ("<think>So kind.</think>\nHi.", False, "Hi.", "So kind."),
        ("<think>So kind.</think>\nHi.", True, "Hi.", "<think>So kind."),
        ("<think>\n\n</think>\n\nHi.", False, "Hi.", ""),
        ("<think>cut", False, "", "cut"),
        ("Hi.<think>", False, "Hi.", ""),
        ("a<think>b</think>c<think>d</think>e", False, "ace", "bd"),
        ('He said "<think>".', False, 'He said "<think>".', None),
        ("I close `</think>` later</think>Hi.", True, "Hi.", "I close `</think>` later"),
        ("", True, "", ""),
        ("", False, "", None),
    ],
)
def test_reasoning_is_told_from_the_answer_even_where_the_prompt_opened_it(
    text: str, opened: bool, answer: str, thinking: str | None
) -> None:
    assert split_thinking(text, opened) == (answer, thinking)
    if not opened:
        assert strip_thinking(text) == answer


@pytest.mark.parametrize(
    "response",
    [
        FULL,
        Response("a", 0, ""),
        Response("a", 0, "Hi.", "length", Usage(output_tokens=0)),
        FailedResponse("a", 1, Failure("timeout", "no answer in 120 s", 4)),
        FailedResponse("a", 0, Failure("no_neighbour", "nothing was called", 0)),
    ],
)
def test_a_line_comes_back(response: Response | FailedResponse) -> None:
    assert read_response(response.to_dict(), "x") == response


def test_a_line_holds_these_fields() -> None:
    assert list(Response("a", 0, "Hi.").to_dict()) == ["id", "sample", "text", "finish_reason", "usage"]
    failed = FailedResponse("a", 0, Failure("http_500", "server error", 3))
    assert failed.to_dict() == {
        "id": "a",
        "sample": 0,
        "failure": {"reason": "http_500", "message": "server error", "attempts": 3},
    }


def test_tokens_that_the_engine_did_not_count_are_unknown_and_not_zero() -> None:
    assert Usage().to_dict() == {}
    assert Usage.from_dict(None, "x") == Usage.from_dict({}, "x") == Usage(None, None)
    assert Usage(0, 0).to_dict() == {"input_tokens": 0, "output_tokens": 0}


def test_a_line_made_elsewhere_may_leave_out_what_it_does_not_know() -> None:
    assert read_response({"id": "a", "text": "Hi."}, "x") == Response("a", 0, "Hi.", "unknown")
    nulls = {"id": "a", "text": "Hi.", "finish_reason": None, "usage": None, "failure": None}
    assert read_response(nulls, "x") == Response("a", 0, "Hi.", "unknown")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "id: must be "),
        ({"id": "a"}, "needs a text (or a failure)"),
        ({"id": "a", "text": None}, "needs a text (or a failure)"),
        ({"id": "a", "text": ["x"]}, "needs a text (or a failure)"),
        ({"id": "a", "text": "x", "sample": -1}, "sample must be a whole number"),
        ({"id": "a", "text": "x", "sample": "0"}, "sample must be a whole number"),
        ({"id": "a", "text": "x", "sample": True}, "sample must be a whole number"),
        ({"id": "a", "text": "x", "sample": 1.0}, "sample must be a whole number"),
        ({"id": "a", "text": "x", "usage": 7}, "usage must be an object"),
        ({"id": "a", "text": "x", "usage": {"input_tokens": -1}}, "usage counts must be whole numbers"),
        ({"id": "a", "text": "x", "usage": {"output_tokens": "3"}}, "usage counts must be whole numbers"),
        ({"id": "a", "failure": "timeout"}, "failure must be an object with a reason"),
        ({"id": "a", "failure": {}}, "failure must be an object with a reason"),
        ({"id": "a", "failure": {"reason": "x", "attempts": -1}}, "attempts must be a whole number"),
        ({"id": "a", "failure": {"reason": "x", "attempts": True}}, "attempts must be a whole number"),
    ],
)
def test_a_wrong_line_is_named(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as raised:
        read_response(raw, "part-0.jsonl:17")
    assert str(raised.value).startswith("part-0.jsonl:17: ")
    assert message in str(raised.value)
