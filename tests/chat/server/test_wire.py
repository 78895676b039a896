"""How the answers of OpenAI-compatible servers are read, case by case."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import completion
from pydantic import BaseModel, Field

from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.server.wire import (
    FailedAttempt,
    read_error,
    read_reply,
    request_body,
    retry_after,
    wait_before_retry,
)
from h2htalk.data.responses import KEY_MASK, Usage

KEY = "sk-loopback-4711"


def reply_of(payload: Any) -> Reply:
    found = read_reply(json.dumps(payload).encode(), None)
    assert isinstance(found, Reply)
    return found


def with_message(**message: Any) -> dict[str, Any]:
    payload = completion()
    payload["choices"][0]["message"] = {"role": "assistant", **message}
    return payload


def test_a_request_says_model_messages_and_sampling() -> None:
    messages = (Message("system", "Be kind."), Message("user", "我今天很累 \ud83d"))
    body = request_body("m", Request("id", messages, Sampling(0.7, 0.9, 96, 41)))
    assert json.loads(body) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "我今天很累 \ud83d"},
        ],
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 96,
        "seed": 41,
    }


def body_of(form: ResponseSchema | None = None, **sampling: Any) -> dict[str, Any]:
    request = Request("id", (Message("user", "Hi"),), Sampling(**sampling), response_schema=form)
    body: dict[str, Any] = json.loads(request_body("m", request))
    return body


def test_sampling_that_is_left_to_the_model_is_not_mentioned() -> None:
    assert body_of(temperature=None, seed=41).keys() == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize(
    ("thinking", "switch", "budget"),
    [
        (None, None, 256),
        # Qwen's and most others' word, and DeepSeek's and Granite's.
        (0, {"enable_thinking": False, "thinking": False}, 256),
        (1000, {"enable_thinking": True, "thinking": True}, 1256),
    ],
)
def test_thinking_is_a_switch_of_the_chat_template_and_widens_the_budget(
    thinking: int | None, switch: dict[str, bool] | None, budget: int
) -> None:
    body = body_of(thinking=thinking)
    assert (body.get("chat_template_kwargs"), body["max_tokens"]) == (switch, budget)


class Score(BaseModel):
    evidence: str
    score: int = Field(ge=1, le=10)


def test_a_form_is_asked_for_by_its_schema() -> None:
    form = ResponseSchema("score", Score)
    assert body_of(form)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "score", "strict": True, "schema": form.schema()},
    }


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (completion("Hello."), Reply("Hello.", "stop", Usage(120, 24), None, "chatcmpl-loopback", "loopback")),
        (completion("Hel", "length"), Reply("Hel", "length", Usage(120, 24), None, "chatcmpl-loopback", "loopback")),
        (completion("", "content_filter"), Reply("", "refusal", Usage(120, 24), None, "chatcmpl-loopback", "loopback")),
        (completion("x", "abort"), Reply("x", "abort", Usage(120, 24), None, "chatcmpl-loopback", "loopback")),
        (completion(None), Reply("", "stop", Usage(120, 24), None, "chatcmpl-loopback", "loopback")),
        ({"choices": [{"message": {"content": "bare"}}]}, Reply("bare", "unknown")),
        (
            {"choices": [{"message": {"content": "x"}, "finish_reason": None}], "usage": None},
            Reply("x", "unknown"),
        ),
    ],
)
def test_a_chat_completion_is_a_reply(payload: dict[str, Any], expected: Reply) -> None:
    assert reply_of(payload) == expected


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_from_the_text(name: str) -> None:
    reply = reply_of(with_message(content="Rest now.", **{name: "They are tired."}))
    assert (reply.text, reply.thinking) == ("Rest now.", "They are tired.")
    assert reply_of(with_message(content="Rest now.", **{name: None})).thinking is None


@pytest.mark.parametrize("count", [-1, "12", 1.5, True, None, [], 1e400])
def test_token_counts_that_make_no_sense_are_unknown(count: object) -> None:
    payload = completion() | {"usage": {"prompt_tokens": count, "completion_tokens": 3}}
    assert reply_of(payload).usage == Usage(None, 3)


def test_a_key_in_a_good_answer_is_masked() -> None:
    payload = with_message(content=f"Your key is {KEY}.", reasoning=KEY) | {"id": KEY}
    payload["choices"][0]["finish_reason"] = KEY
    found = read_reply(json.dumps(payload).encode(), None, KEY)
    assert isinstance(found, Reply)
    assert found.text == f"Your key is {KEY_MASK}."
    assert KEY not in repr(found)


def test_half_a_surrogate_pair_becomes_a_character_that_a_file_can_hold() -> None:
    body = json.dumps(completion("x")).replace('"x"', r'"so \ud83d tired \ud83d\ude34"').encode()
    reply = read_reply(body, None)
    assert isinstance(reply, Reply)
    assert reply.text == "so � tired 😴"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>502 Bad Gateway</body></html>",
        b'{"choices": [{"message": {"content": "cut o',
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"choices": []}',
        b'{"choices": {}}',
        b'{"choices": null}',
        b'{"choices": ["text"]}',
        b'{"choices": [{"text": "a completion, not a chat"}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": "text"}]}',
        b'{"choices": [{"message": {}}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{"message": {"content": ["part"]}}]}',
        b'{"choices": [{"message": {"content": "x"}, "finish_reason": 3}]}',
        b'{"choices": [{"message": {"content": "x", "reasoning": {"a": 1}}}]}',
        b'{"error": {"message": "upstream is busy", "code": 429}}',
        b"\xff\xfe\xfa",
        b"[" * 100_000,
        b'{"choices": [{"message": {"content": "a"}}]} {"choices": []}',
    ],
)
def test_anything_else_is_malformed_and_worth_another_try(body: bytes) -> None:
    found = read_reply(body, None)
    assert isinstance(found, FailedAttempt)
    assert (found.reason, found.retry) == ("malformed_reply", True)
    assert len(found.message) < 240
    assert found.message.isprintable()


_anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["choices", "message", "content", "usage", "error", "code"]), inner)
    ),
)


@given(_anything, st.sampled_from([200, 400, 404, 429, 503]))
def test_no_json_raises(payload: Any, status: int) -> None:
    body = json.dumps(payload).encode()
    assert isinstance(read_reply(body, None), Reply | FailedAttempt)
    assert isinstance(read_error(status, {}, body), FailedAttempt)


@pytest.mark.parametrize(
    ("status", "reason", "retry"),
    [
        (400, "bad_request", False),
        (401, "unauthorized", False),
        (403, "unauthorized", False),
        (404, "not_found", False),
        (402, "http_402", False),
        (408, "http_408", True),
        (409, "http_409", True),
        (413, "bad_request", False),
        (422, "bad_request", False),
        (429, "rate_limited", True),
        (500, "http_500", True),
        (503, "http_503", True),
        (301, "http_301", False),
        (204, "http_204", False),
    ],
)
def test_a_status_has_a_reason(status: int, reason: str, retry: bool) -> None:
    failed = read_error(status, {}, b'{"error": {"message": "so it is"}}')
    assert (failed.reason, failed.retry, failed.status) == (reason, retry, status)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"message": "too long", "code": "context_length_exceeded"}}',
        b'{"object": "error", "message": "This model\'s maximum context length is 4096 tokens. You"}',
        b'{"error": {"code": 400, "type": "exceed_context_size_error", "message": "exceeds"}}',
        b'{"error": {"message": "the request exceeds the available context size, try increasing it"}}',
        b'{"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048"}',
        b'{"error": {"message": "prompt is too long: 9000 tokens > 8192 maximum"}}',
        b"the prompt does not fit the context window",
    ],
)
def test_a_prompt_beyond_the_context_is_named_so(body: bytes) -> None:
    assert read_error(400, {}, body).reason == "context_length"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "seed is not supported", "code": null}}', "seed is not supported"),
        (b'{"error": "no such field"}', "no such field"),
        (b'{"detail": [{"loc": ["body"], "msg": "required"}]}', '[{"loc": ["body"], "msg": "required"}]'),
        (b"<h1>Bad\n\tRequest</h1>\x00\x1b[2J", "<h1>Bad Request</h1>[2J"),
        (b'["odd"]', '["odd"]'),
    ],
)
def test_an_error_says_on_one_line_what_the_server_said(body: bytes, said: str) -> None:
    assert read_error(400, {}, body).message == f"HTTP 400: {said}"


@pytest.mark.parametrize("status", [400, 404, 429, 500])
def test_a_server_that_repeats_the_key_is_not_quoted_with_it(status: int) -> None:
    body = json.dumps({"error": {"message": "x" * 190 + f" your key {KEY} is bad " + KEY}}).encode()
    assert "sk-" not in read_error(status, {}, body, KEY).message
    found = read_reply(b"oh " + KEY.encode(), None, KEY)
    assert isinstance(found, FailedAttempt)
    assert found.message == "not a chat completion: oh [key]"


@pytest.mark.parametrize("status", [401, 403])
def test_nothing_is_quoted_from_a_refused_key(status: int) -> None:
    body = b'{"error": {"message": "Incorrect API key provided: sk-lo***4711"}}'
    assert read_error(status, {}, body, KEY).message == f"HTTP {status}: the server refused the key"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "3600"}, 30.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "604801"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 99 Oct 99999 07:28:00 GMT"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "?", "retry-after": "9"}, 9.0),
    ],
)
def test_retry_after_in_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_waits_double_from_half_a_second_to_eight_and_are_spread() -> None:
    failed = FailedAttempt("http_500", "", retry=True)
    for tries, wait in enumerate((0.5, 1, 2, 4, 8, 8, 8), 1):
        drawn = [wait_before_retry(failed, tries) for _ in range(200)]
        assert 0.75 * wait <= min(drawn) < 0.9 * wait
        assert 1.1 * wait < max(drawn) <= 1.25 * wait


def test_the_servers_own_wait_comes_first() -> None:
    asked = FailedAttempt("rate_limited", "", retry=True, wait=3.0)
    assert all(3.0 <= wait_before_retry(asked, tries) <= 3.3 for tries in range(1, 20))
