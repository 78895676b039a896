"""The one table of provider errors, read by the wire format of each API: reason, cost, whether to send it again."""

from __future__ import annotations

from typing import Any

import pytest

from h2htalk.chat.server import ServerWire
from h2htalk.chat.wires import AnthropicWire, OpenAIWire, WireFormat, asked_wait, read_error_body

KEY = "hf_loopback-4711"
WIRES: dict[str, WireFormat] = {
    "server": ServerWire("m", KEY, "http://host/v1"),
    "openai": OpenAIWire("gpt-made-up", KEY),
    "anthropic": AnthropicWire("claude-made-up", KEY),
}
EVERY = tuple(WIRES)
HOSTED = ("openai", "anthropic")


def rows(*table: tuple[tuple[str, ...], int, Any, str, str, bool]) -> list[Any]:
    return [pytest.param(name, *row, id=f"{name}-{row[0]}-{row[2]}") for names, *row in table for name in names]


@pytest.mark.parametrize(
    ("name", "status", "error", "reason", "billing", "retry"),
    rows(
        (EVERY, 400, {"message": "bad"}, "bad_request", "free", False),
        (EVERY, 422, {}, "bad_request", "free", False),
        (EVERY, 413, {}, "context_length", "free", False),
        (EVERY, 418, {}, "http_418", "free", False),
        (EVERY, 408, {}, "http_408", "possibly_paid", True),
        (EVERY, 409, {}, "http_409", "free", True),
        (EVERY, 429, {"code": "rate_limit_exceeded"}, "rate_limited", "free", True),
        (EVERY, 500, {}, "http_500", "free", True),
        (EVERY, 501, {}, "http_501", "free", False),
        (EVERY, 502, {}, "http_502", "possibly_paid", True),
        (EVERY, 503, {}, "http_503", "free", True),
        (EVERY, 504, {"type": "timeout_error"}, "http_504", "possibly_paid", True),
        (EVERY, 524, {}, "http_524", "possibly_paid", True),
        (EVERY, 529, {"type": "overloaded_error"}, "overloaded", "free", True),
        (HOSTED, 403, {}, "http_403", "free", False),  # a gateway's
        # Larger than the limit of a minute: no wait helps.
        (EVERY, 429, {"message": "Request too large on tokens per min"}, "bad_request", "free", False),
        # A prompt beyond the context, in the words of five servers.
        (EVERY, 400, {"code": "context_length_exceeded"}, "context_length", "free", False),
        (EVERY, 400, {"code": 400, "type": "exceed_context_size_error"}, "context_length", "free", False),
        (EVERY, 400, {"message": "This model's maximum context length is 8"}, "context_length", "free", False),
        (EVERY, 400, {"message": "exceeds the available context size"}, "context_length", "free", False),
        (EVERY, 400, {"message": "prompt is too long: 9 > 8"}, "context_length", "free", False),
        (EVERY, 400, "`inputs` tokens + `max_new_tokens` must be <= 2048", "context_length", "free", False),
        # The filter of the provider declined the prompt, or blocked a reply that may be billed.
        (EVERY, 400, {"code": "content_filter"}, "refusal", "free", False),
        (EVERY, 403, {"code": "content_policy_violation"}, "refusal", "free", False),
        (EVERY, 400, {"code": "invalid_prompt"}, "refusal", "free", False),
        (EVERY, 400, {"message": "Output blocked by content filtering policy"}, "refusal", "possibly_paid", False),
        # Results of batch jobs, whose status is unknown.
        (("openai",), 0, {"type": "server_error"}, "http_500", "free", True),
        (("openai",), 0, {"code": "rate_limit_exceeded"}, "rate_limited", "free", True),
        (HOSTED, 0, {"type": "invalid_request_error"}, "bad_request", "free", False),
        (("anthropic",), 0, {"type": "overloaded_error"}, "overloaded", "free", True),
        (("anthropic",), 0, {"type": "new_error"}, "http_500", "free", True),
    ),
)
def test_an_error_has_a_reason_a_cost_and_a_retry(
    name: str, status: int, error: Any, reason: str, billing: str, retry: bool
) -> None:
    found = WIRES[name].read_error(status, {"type": "error", "error": error}, {})
    assert (found.reason, found.billing, found.retry, found.fatal) == (reason, billing, retry, None)
    assert found.refusal == (reason == "refusal")
    assert found.limited == (reason in ("rate_limited", "overloaded") and name != "server")


@pytest.mark.parametrize(
    ("name", "status", "error", "reason", "advice"),
    [
        *((name, 401, {"message": "bad key"}, "unauthorized", f"check {name.upper()}_API_KEY") for name in HOSTED),
        ("server", 401, {}, "unauthorized", "http://host/v1 refused the key (HTTP 401): check H2HTALK_SERVER_KEY"),
        ("server", 403, {}, "unauthorized", "check H2HTALK_SERVER_KEY"),
        ("anthropic", 0, {"type": "authentication_error"}, "unauthorized", "check ANTHROPIC_API_KEY"),
        *((name, 404, {"message": "gone"}, "not_found", "check the model's name, and ") for name in EVERY),
        ("openai", 403, {"code": "model_not_found"}, "not_found", "no model 'gpt-made-up' (HTTP 403"),
        ("openai", 403, {"type": "request_forbidden"}, "unauthorized", "check the account"),
        ("anthropic", 403, {"type": "permission_error"}, "unauthorized", "its workspace"),
        *((name, 402, {}, "no_credit", "account has no credit left") for name in EVERY),
        ("openai", 429, {"type": "insufficient_quota"}, "no_credit", "OpenAI account has no credit left"),
        ("openai", 400, {"code": "billing_hard_limit_reached"}, "no_credit", "credit"),
        ("anthropic", 400, {"message": "Your credit balance is too low"}, "no_credit", "credit"),
        *((name, 307, {}, "http_307", "redirects (HTTP 307), which is not followed: correct ") for name in EVERY),
        ("openai", 400, {"code": "unsupported_value", "param": "temperature"}, "bad_request", "--model-sampling"),
        ("openai", 400, {"message": "'seed' is not supported", "param": "seed"}, "bad_request", "--model-sampling"),
        ("openai", 400, {"code": "unsupported_value", "param": "n"}, "bad_request", "--model-sampling"),
        ("openai", 400, {"message": "Unrecognized argument: reasoning_effort"}, "bad_request", "--thinking"),
        ("openai", 400, {"message": "not supported", "param": "response_format"}, "bad_request", "structured output"),
        ("anthropic", 400, {"message": "adaptive thinking is not supported"}, "bad_request", "--thinking"),
        ("anthropic", 400, {"message": "output_config is not supported"}, "bad_request", "structured output"),
    ],
)
def test_what_no_call_survives_comes_with_advice(
    name: str, status: int, error: dict[str, Any], reason: str, advice: str
) -> None:
    found = WIRES[name].read_error(status, {"error": {"type": "invalid_request_error"} | error}, {})
    assert (found.reason, found.billing, found.retry, found.limited) == (reason, "free", False, False)
    assert found.fatal is not None
    assert advice in found.fatal
    assert found.at_first == (name == "server" and reason != "no_credit")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_no_error_quotes_the_key(name: str, status: int) -> None:
    body = {"error": {"message": "x" * 190 + f" your key {KEY} sk-lo***4711 is bad " + KEY, "type": "t"}}
    found = WIRES[name].read_error(status, body, {"request-id": KEY})
    assert "4711" not in repr(found)
    assert status != 401 or found.message == "HTTP 401: the key was refused"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "seed is not supported", "code": None}}, "seed is not supported"),
        ({"error": "no such field"}, "no such field"),
        ({"detail": [{"loc": ["body"], "msg": "required"}]}, '[{"loc": ["body"], "msg": "required"}]'),
        (b"<h1>Bad\n\tRequest</h1>\x00\x1b[2J\xff", "<h1>Bad Request</h1>[2J\ufffd"),
        (["odd"], '["odd"]'),
        (None, ""),
        ({}, ""),
        ("x" * 999, "x" * 200),
    ],
)
def test_the_text_of_an_error_is_one_short_line(body: object, text: str) -> None:
    assert read_error_body(body, None).text == text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "3600"}, 3600.0),
        *(({"retry-after": value}, None) for value in ("-5", "inf", "604801", "nan", "soon", "")),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 99 Oct 99999 07:28:00 GMT"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "?", "retry-after": "9"}, 9.0),
    ],
)
def test_retry_after_in_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(headers) == seconds
    assert WIRES["openai"].read_error(503, None, headers).wait == seconds
