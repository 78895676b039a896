"""Errors inside HTTP 200: a failed call through the real clients, never a reply, whatever stands beside it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from h2htalk.chat.inner_errors import find_inner_error
from h2htalk.chat.protocol import Reply
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError
from support.doubles import loopback
from support.doubles.loopback import Answer, completion
from support.hosted_apis import Api, reasons

USAGE = {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}
UPSTREAM = {"code": 502, "message": "Upstream error"}


def choice(text: str | None = "", finish: str | None = "error", **beside: Any) -> dict[str, Any]:
    said = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
        **beside,
    }
    return completion() | {"choices": [said], "usage": USAGE}


# What servers send with status 200 for a call that failed.
BROKEN: dict[str, Any] = {
    "an error in the choice": choice(error=UPSTREAM),
    "an error in the message": choice("", None)
    | {"choices": [{"index": 0, "message": {"content": "", "error": UPSTREAM}}]},
    "the finish reason alone": choice("I hear", "error"),
    "a network error": choice("", "network_error"),
    "no system resources": choice("I hear you and", "insufficient_system_resource"),
    "an aborted request": choice("I hear you and", "abort"),
    "an error beside whole choices": choice("I hear you.", "stop") | {"error": UPSTREAM},
    "an error in a choice that ended": choice(
        "I hear you.", "stop", error={"message": "provider went away"}
    ),
    "an error in place of choices": {"error": {"message": "Provider returned error", "code": 503}},
    "a text as error": {"error": "upstream connect error or disconnect"},
    "an object of errors": {"object": "error", "message": "the engine fell over", "code": 50002},
    "a list of errors": {"errors": [{"message": "the engine fell over"}]},
    "a code of the body": {"error_code": 336100, "error_msg": "Try again"},
    "a code of MiniMax": {
        "choices": None,
        "base_resp": {"status_code": 1000, "status_msg": "unknown error"},
    },
    "a code of Tencent": {"Response": {"Error": {"Code": "InternalError", "Message": "try again"}}},
    "success is false": {"success": False, "message": "busy"},
    "an empty code beside choices": choice("", "stop")
    | {
        "error": {
            "message": "upstream error: do request failed",
            "type": "new_api_error",
            "param": "",
            "code": "",
        }
    },
    "an empty code in place of choices": {
        "error": {"message": "do request failed", "type": "x", "code": ""}
    },
    "the code 0": choice("", "stop") | {"error": {"code": 0, "message": "overloaded"}},
    "the code 0 in place of choices": {"code": 0, "message": "overloaded"},
    "a type alone": choice("", "stop")
    | {"error": {"code": None, "message": "", "type": "upstream_error"}},
    "an empty code in the choice": choice(
        "", "stop", error={"code": "", "message": "provider went away"}
    ),
}
NO_ERROR: list[dict[str, Any]] = [
    completion() | {"error": None},
    completion() | {"error": {}},
    completion() | {"error": {"code": 0, "message": "success"}},
    completion() | {"base_resp": {"status_code": 0, "status_msg": "success"}},
    choice("I hear you.", "stop", error=None),
    choice("I hear you.", "wandered_off"),
    completion() | {"error": {"code": 0, "message": "请求成功"}},
    completion() | {"error": {"code": "", "message": "", "type": "", "param": None}},
    completion() | {"error": {"code": 200, "message": "OK."}},
    completion() | {"error": {"code": None, "message": "No error"}},
    completion() | {"error": "No error."},
    completion() | {"code": 0, "message": "all is well"},
]


@pytest.mark.parametrize("kind", BROKEN)
def test_an_error_inside_200_is_sent_again_and_paid_and_never_a_reply(
    kind: str, monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    """Such an answer was scored as an empty reply, and the run said complete."""
    for name in ("server", "openai"):
        api = Api(name, monkeypatch)
        outcomes, books, server = api.run(
            {"a": [Answer(BROKEN[kind])], "b": [Answer(BROKEN[kind])] * 4}, "a", "b"
        )
        assert isinstance(outcomes[0], Reply)
        assert outcomes[0].text == loopback.REPLY
        assert isinstance(outcomes[1], Failure)
        assert outcomes[1].reason == "error_in_reply", outcomes[1]
        assert outcomes[1].message.startswith("HTTP 200 with an error")
        assert outcomes[1].attempts == 4
        assert server.requests == 6
        if api.paid:
            assert books.totals().paid == 6  # what was computed is paid, as a malformed answer is


def test_a_broken_message_of_anthropic_is_a_failed_call(
    monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    for body in (
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        loopback.message("I hear", stop_reason="error"),
    ):
        outcomes, _, server = Api("anthropic", monkeypatch).run({"a": [Answer(body)]}, "a")
        assert reasons(outcomes) == ["ok"]
        assert server.requests == 2


@pytest.mark.parametrize("body", NO_ERROR)
def test_an_empty_error_beside_a_reply_says_nothing(body: dict[str, Any]) -> None:
    assert find_inner_error(body) is None


def test_a_filter_that_is_told_with_an_empty_code_is_a_filtered_reply(
    monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    """It was malformed after four tries where no choices stood beside it, and else an empty reply."""
    declined = {"message": "Content blocked by moderation policy", "code": ""}
    for body in (
        {"error": declined},
        choice("", "stop") | {"error": declined},
        declined,
        {"code": 0, "msg": declined["message"]},
    ):
        outcomes, _, server = Api("server", monkeypatch).run({"a": [Answer(body)]}, "a")
        assert isinstance(outcomes[0], Reply), outcomes
        assert outcomes[0].finish_reason == "content_filter"
        assert server.requests == 1


def test_what_no_retry_helps_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    long = {"error": {"code": 400, "message": "maximum context length is 8192 tokens"}}
    outcomes, _, server = Api("openai", monkeypatch).run({"a": [Answer(long)]}, "a")
    assert reasons(outcomes) == ["context_length"]
    assert server.requests == 1
    with pytest.raises(ConfigError, match="refused the key"):
        Api("openai", monkeypatch).run(
            {"a": [Answer({"error": {"code": 401, "message": "no"}})]}, "a"
        )


def test_the_cost_of_an_error_inside_200_is_that_of_its_usage(
    monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    _, books, _ = Api("openai", monkeypatch).run({"a": [Answer(choice(error=UPSTREAM))] * 4}, "a")
    assert books.totals().usd_paid == 4 * (Decimal(900) + 20 * Decimal(10)) / 1_000_000


def test_a_tool_call_without_text_is_no_reply(
    monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    """It was an empty reply of score 0."""
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    plain = choice(None, "tool_calls")
    plain["choices"][0]["message"]["tool_calls"] = [call]
    thinking = choice("<think>I look it up.</think>", "stop")
    thinking["choices"][0]["message"]["tool_calls"] = [call]
    old = choice(None, "function_call")
    for body in (plain, thinking, old):
        for name, tries in (("server", 4), ("openai", 1)):
            outcomes, _, server = Api(name, monkeypatch).run({"a": [Answer(body)] * 4}, "a")
            assert reasons(outcomes) == ["tool_call"]
            assert server.requests == tries  # as a malformed answer: where it is free
    used = loopback.message("", stop_reason="tool_use") | {
        "content": [{"type": "tool_use", "id": "t", "input": {}}]
    }
    outcomes, _, _ = Api("anthropic", monkeypatch).run({"a": [Answer(used)]}, "a")
    assert reasons(outcomes) == ["tool_call"]
    said = choice("I look it up.", "tool_calls")
    outcomes, _, _ = Api("server", monkeypatch).run({"a": [Answer(said)]}, "a")
    assert isinstance(outcomes[0], Reply)
    assert outcomes[0].text == "I look it up."
