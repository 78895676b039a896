"""Messages whose content comes in parts, or with marks that the user named, through the real clients."""

from __future__ import annotations

from typing import Any

import pytest

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.protocol import Reply
from h2htalk.data.responses import Failure
from support.doubles.loopback import Answer, LoopbackServer
from support.hosted_apis import Api, Books, completion, requests_of

pytestmark = pytest.mark.usefixtures("hosted_loop")
R = "The user is sad."
A = "I hear you. What would help?"
THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": R}]}
TEXT = {"type": "text", "text": A}

PARTS: list[tuple[dict[str, Any], str, str | None, str]] = [
    ({"content": [THINKING, TEXT]}, A, R, "stop"),
    ({"content": [{"type": "thinking", "thinking": R}, TEXT]}, A, R, "stop"),
    (
        {"content": [{"type": "reasoning", "text": R}, {"type": "output_text", "text": A}]},
        A,
        R,
        "stop",
    ),
    (
        {"content": [{"type": "text", "text": "I hear "}, {"type": "text", "text": "you."}]},
        "I hear you.",
        None,
        "stop",
    ),
    ({"content": [{"type": "text", "text": {"value": A, "annotations": []}}]}, A, None, "stop"),
    ({"content": ["I hear ", "you."]}, "I hear you.", None, "stop"),
    ({"content": TEXT}, A, None, "stop"),
    (
        {
            "content": [
                {"type": "redacted_thinking", "data": "x"},
                {"type": "tool_use", "id": "1"},
                TEXT,
            ]
        },
        A,
        None,
        "stop",
    ),
    ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "I cannot.", None, "refusal"),
    ({"content": [TEXT], "reasoning_content": R}, A, R, "stop"),
    ({"content": A, "reasoning": [{"type": "summary_text", "text": R}]}, A, R, "stop"),
    ({"content": [THINKING]}, "", R, "stop"),
    ({"content": []}, "", None, "stop"),
]


def answer_of(message: dict[str, Any]) -> Answer:
    body = completion(A)
    body["choices"][0]["message"] = {"role": "assistant", **message}
    return Answer(body)


@pytest.mark.parametrize("name", ["server", "openai"])
@pytest.mark.parametrize(("message", "text", "thinking", "finish"), PARTS)
def test_texts_are_joined_and_reasoning_and_refusals_are_told_apart(
    name: str,
    message: dict[str, Any],
    text: str,
    thinking: str | None,
    finish: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mistral's list of parts was `not a chat completion`, and the run paused."""
    with LoopbackServer(reply=lambda *_: answer_of(message)) as server:
        (reply,) = Api(name, monkeypatch).open(server.url, calls=Books()).complete(requests_of("a"))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.thinking, reply.finish_reason) == (text, thinking, finish)


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "image_url", "image_url": {}}],
        [7],
        [{"type": "text", "text": 7}],
        [{"type": "text"}],
    ],
)
def test_a_part_that_is_no_text_is_malformed(content: Any) -> None:
    with LoopbackServer(reply=lambda *_: answer_of({"content": content})) as server:
        (failure,) = open_chat(server.spec, ChatOptions(attempts=1)).complete(requests_of("a"))
    assert isinstance(failure, Failure)
    assert failure.reason == "malformed_reply"


@pytest.mark.parametrize("name", ["server", "openai"])
def test_reasoning_between_marks_that_the_user_names(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackServer(reply=f"<plan>{R}</plan>\n{A}") as server:
        chat = Api(name, monkeypatch).open(
            server.url, calls=Books(), engine_options={"think": "<plan>,</plan>"}
        )
        (reply,) = chat.complete(requests_of("a"))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.thinking) == (A, R)
    assert chat.subject["request_form"] == "think=<plan>,</plan>"
