"""`openai:MODEL`: what its answers and errors mean, through the real SDK."""

from __future__ import annotations

from typing import Any

import pytest
from hosted_made import KEYS, Double, completion, error, ok, requests_of, set_keys

from h2htalk.chat.calls import Answer, Call, FailedCall
from h2htalk.chat.hosted.openai_wire import OpenAIWire
from h2htalk.chat.protocol import Reply
from h2htalk.data.responses import Usage

API = OpenAIWire("gpt-made-up", KEYS["openai"])


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


def read(body: object, samples: int = 1) -> Answer | FailedCall:
    (request,) = requests_of("a")
    return API.read(body, Call(tuple(range(samples)), (request,) * samples), "req_1")


# Replies


def test_a_reply_keeps_its_request_id_and_its_usage() -> None:
    usage = {
        "prompt_tokens": 1200,
        "completion_tokens": 300,
        "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 250},
    }
    double = Double("openai", lambda body: ok("openai", usage=usage))
    reply = double.chat().complete(requests_of("a"))[0]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.request_id) == ("I am here.", "stop", "req_made_up")
    assert reply.usage == Usage(1200, 300, 1024, 100, None, 250)


@pytest.mark.parametrize(
    ("finish", "message", "expected"),
    [
        ("stop", {"content": "Yes."}, ("Yes.", "stop")),
        ("length", {"content": "Yes, I"}, ("Yes, I", "length")),
        ("length", {"content": None}, ("", "length")),  # all went into reasoning
        ("content_filter", {"content": "Half"}, ("Half", "refusal")),
        ("stop", {"content": None, "refusal": "I cannot."}, ("I cannot.", "refusal")),
        ("stop", {"refusal": "I cannot."}, ("I cannot.", "refusal")),
        ("stop", {"content": ""}, ("", "stop")),
        (None, {"content": "Yes."}, ("Yes.", "unknown")),
        ("tool_calls", {"content": None}, ("", "tool_calls")),
    ],
)
def test_refusals_and_cut_replies_are_typed(
    finish: str | None, message: dict[str, Any], expected: tuple[str, str]
) -> None:
    body = completion("x")
    body["choices"] = [{"index": 0, "finish_reason": finish, "message": message}]
    found = read(body)
    assert isinstance(found, Answer)
    assert (found.replies[0].text, found.replies[0].finish_reason) == expected


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"<html>busy</html>",
        [],
        {},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": {}}]},
        {"choices": [{"message": {"content": 7}}]},
        {"choices": [{"message": {"content": "a"}, "finish_reason": 1}]},
        {"choices": [{"message": "a"}]},
        {"choices": "a"},
        {"error": {"message": f"key {KEYS['openai']}"}},
        completion("a", "b"),
    ],
)
def test_an_answer_that_is_none_is_paid_and_not_asked_again(body: object) -> None:
    found = read(body)
    assert isinstance(found, FailedCall)
    assert (found.reason, found.billing, found.retry) == ("malformed_reply", "paid", False)
    assert KEYS["openai"] not in found.message


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        {},
        {"prompt_tokens": -1, "completion_tokens": 5.0},
        {"prompt_tokens": True},
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 11}},
        {"prompt_tokens": 10**30, "completion_tokens": 1},
    ],
)
def test_counts_that_make_no_sense_are_unknown_and_lose_no_reply(usage: object) -> None:
    found = read(completion("a") | {"usage": usage})
    assert isinstance(found, Answer)
    assert found.usage.input_tokens is None
    assert found.replies[0].text == "a"


def test_what_several_samples_used_is_known_only_together() -> None:
    found = read(completion("a", "b"), samples=2)
    assert isinstance(found, Answer)
    assert (found.usage.input_tokens, found.usage.output_tokens) == (20, 10)
    assert [reply.usage for reply in found.replies] == [Usage(), Usage()]


# Errors


@pytest.mark.parametrize(
    ("status", "body", "reason", "billing", "retry"),
    [
        (429, {"code": "rate_limit_exceeded"}, "rate_limited", "free", True),
        (
            429,
            {"message": "Request too large for this model on tokens per min"},
            "bad_request",
            "free",
            False,
        ),
        (500, {}, "http_500", "free", True),
        (503, {}, "http_503", "free", True),
        (502, {}, "http_502", "possibly_paid", True),
        (504, {}, "http_504", "possibly_paid", True),
        (524, {}, "http_524", "possibly_paid", True),
        (408, {}, "http_408", "possibly_paid", True),
        (409, {}, "http_409", "free", True),
        (400, {"message": "bad"}, "bad_request", "free", False),
        (400, {"code": "context_length_exceeded"}, "context_length", "free", False),
        (
            400,
            {"message": "This model's maximum context length is 8192 tokens."},
            "context_length",
            "free",
            False,
        ),
        (413, {}, "context_length", "free", False),
        (418, {}, "http_418", "free", False),
        (0, {"type": "server_error"}, "http_500", "free", True),
        (0, {"code": "rate_limit_exceeded"}, "rate_limited", "free", True),
        (0, {"type": "invalid_request_error"}, "bad_request", "free", False),
    ],
)
def test_errors_say_what_they_cost_and_whether_to_ask_again(
    status: int, body: dict[str, Any], reason: str, billing: str, retry: bool
) -> None:
    found = API.read_error(status, {"error": body}, {})
    assert (found.reason, found.billing, found.retry, found.fatal) == (reason, billing, retry, None)


@pytest.mark.parametrize(
    ("status", "body", "advice"),
    [
        (401, {"code": "invalid_api_key"}, "OPENAI_API_KEY"),
        (404, {"code": "model_not_found"}, "gpt-made-up"),
        (403, {"code": "model_not_found"}, "gpt-made-up"),
        (403, {"type": "request_forbidden", "code": "unsupported_country_region_territory"}, "account"),
        (429, {"type": "insufficient_quota", "code": "insufficient_quota"}, "credit"),
        (400, {"code": "billing_hard_limit_reached"}, "credit"),
        (402, {}, "credit"),
        (400, {"code": "unsupported_value", "param": "temperature"}, "--model-sampling"),
        (400, {"code": "unsupported_parameter", "param": "top_p"}, "--model-sampling"),
        (400, {"message": "'seed' is not supported with this model", "param": "seed"}, "--model-sampling"),
        (400, {"code": "unsupported_value", "param": "n"}, "--model-sampling"),
        (400, {"code": "unsupported_value", "param": "reasoning_effort"}, "--thinking"),
        (400, {"message": "Unrecognized request argument supplied: reasoning_effort"}, "--thinking"),
        (400, {"message": "json_schema is not supported", "param": "response_format"}, "structured output"),
    ],
)
def test_what_no_call_survives_comes_with_advice(status: int, body: dict[str, Any], advice: str) -> None:
    found = API.read_error(status, {"error": {"type": "invalid_request_error", **body}}, {})
    assert found.fatal is not None
    assert advice in found.fatal
    assert (found.billing, found.retry, found.limited) == ("free", False, False)


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation", "invalid_prompt"])
def test_a_prompt_that_the_filter_declines_is_a_refusal_and_free(code: str) -> None:
    double = Double("openai", lambda body: error(400, "flagged", code=code))
    reply = double.chat().complete(requests_of("a"))[0]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "refusal", Usage(0, 0))
