"""`anthropic:MODEL`: what its answers and errors mean, through the real SDK."""

from __future__ import annotations

import pytest
from hosted_made import KEYS, Double, error, message, ok, requests_of, set_keys

from h2htalk.chat.calls import Answer, Call, FailedCall
from h2htalk.chat.hosted.anthropic_wire import AnthropicWire
from h2htalk.chat.protocol import Reply
from h2htalk.data.responses import Usage

API = AnthropicWire("claude-made-up", KEYS["anthropic"])


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


def read(body: object) -> Answer | FailedCall:
    return API.read(body, Call((0,), tuple(requests_of("a"))), "req_1")


# Replies


def test_a_reply_keeps_its_request_id_its_reasoning_and_its_usage() -> None:
    content = [
        {"type": "thinking", "thinking": "They are sad.", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I am "},
        {"type": "text", "text": "here."},
    ]
    usage = {
        "input_tokens": 100,
        "output_tokens": 300,
        "cache_read_input_tokens": 1024,
        "cache_creation_input_tokens": 96,
        "cache_creation": {"ephemeral_5m_input_tokens": 64, "ephemeral_1h_input_tokens": 32},
        "output_tokens_details": {"thinking_tokens": 250},
    }
    double = Double("anthropic", lambda body: ok("anthropic", content=content, usage=usage))
    reply = double.chat().complete(requests_of("a"))[0]
    whole = Usage(1220, 300, 1024, 64, 32, 250)
    assert reply == Reply("I am here.", "stop", whole, "They are sad.", "req_made_up", "made-up")


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context"),
        ("pause_turn", "pause_turn"),
        (None, "unknown"),
    ],
)
def test_refusals_and_cut_replies_are_typed(stop: str | None, expected: str) -> None:
    found = read(message("Half a rep") | {"stop_reason": stop})
    assert isinstance(found, Answer)
    assert (found.replies[0].text, found.replies[0].finish_reason) == ("Half a rep", expected)


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"<html>busy</html>",
        [],
        {},
        {"content": None},
        {"content": "text"},
        {"content": [{}]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "text", "text": 7}]},
        {"content": {"type": "text"}},
        {"content": {}},
        {"content": [], "stop_reason": 7},
        {"error": {"message": f"key {KEYS['anthropic']}"}},
    ],
)
def test_an_answer_that_is_none_is_paid_and_not_asked_again(body: object) -> None:
    found = read(body)
    assert isinstance(found, FailedCall)
    assert (found.reason, found.billing, found.retry) == ("malformed_reply", "paid", False)
    assert KEYS["anthropic"] not in found.message


# Errors


@pytest.mark.parametrize(
    ("status", "kind", "text", "reason", "billing", "retry"),
    [
        (429, "rate_limit_error", "slow down", "rate_limited", "free", True),
        (529, "overloaded_error", "busy", "overloaded", "free", True),
        (500, "api_error", "oops", "http_500", "free", True),
        (504, "timeout_error", "late", "http_504", "possibly_paid", True),
        (400, "invalid_request_error", "bad", "bad_request", "free", False),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", "context_length", "free", False),
        (413, "request_too_large", "big", "context_length", "free", False),
        (0, "overloaded_error", "busy", "overloaded", "free", True),
        (0, "api_error", "oops", "http_500", "free", True),
        (0, "invalid_request_error", "bad", "bad_request", "free", False),
        (0, "new_error", "oops", "http_500", "free", True),
    ],
)
def test_errors_say_what_they_cost_and_whether_to_ask_again(
    status: int, kind: str, text: str, reason: str, billing: str, retry: bool
) -> None:
    found = API.read_error(status, {"type": "error", "error": {"type": kind, "message": text}}, {})
    assert (found.reason, found.billing, found.retry, found.fatal) == (reason, billing, retry, None)


@pytest.mark.parametrize(
    ("status", "kind", "text", "advice"),
    [
        (401, "authentication_error", "bad key", "ANTHROPIC_API_KEY"),
        (0, "authentication_error", "bad key", "ANTHROPIC_API_KEY"),
        (403, "permission_error", "not yours", "workspace"),
        (404, "not_found_error", "model: claude-made-up", "claude-made-up"),
        (402, "billing_error", "pay", "credit"),
        (400, "invalid_request_error", "Your credit balance is too low", "credit"),
        (400, "invalid_request_error", "adaptive thinking is not supported on this model", "--thinking"),
        (400, "invalid_request_error", "output_config.format is not supported", "structured output"),
    ],
)
def test_what_no_call_survives_comes_with_advice(status: int, kind: str, text: str, advice: str) -> None:
    found = API.read_error(status, {"type": "error", "error": {"type": kind, "message": text}}, {})
    assert found.fatal is not None
    assert advice in found.fatal
    assert (found.billing, found.retry) == ("free", False)


def test_a_reply_that_the_filter_blocks_is_a_refusal_and_possibly_paid() -> None:
    blocked = error(400, "Output blocked by content filtering policy", type="invalid_request_error")
    double = Double("anthropic", lambda body: blocked)
    reply = double.chat().complete(requests_of("a"))[0]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "refusal", Usage())
    assert len(double.asked) == 1
