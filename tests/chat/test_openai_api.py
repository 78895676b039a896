"""`openai:MODEL`: what its API is told, and what its answers and errors mean, through the real SDK."""

from __future__ import annotations

import logging
import sys
from typing import Any

import httpx2
import pytest
from hosted_made import KEYS, Double, completion, error, ok, requests_of, set_keys

from h2htalk.chat.base import ChatOptions, Message, Reply, Request, Sampling, open_chat
from h2htalk.chat.calls import Answer, Call, Trouble
from h2htalk.chat.openai_wire import OpenAIApi
from h2htalk.data.run import Failure, Usage
from h2htalk.errors import ConfigError, ModelCallError

API = OpenAIApi("gpt-made-up", KEYS["openai"])


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


def call_of(request: Request, samples: int = 1) -> Call:
    return Call(tuple(range(samples)), (request,) * samples)


def body_of(**sampling: Any) -> dict[str, Any]:
    request = Request("a", (Message("user", "Hi"),), Sampling(**sampling))
    return dict(API.body(call_of(request)))


def read(body: object, samples: int = 1) -> Answer | Trouble:
    return API.read(body, call_of(requests_of("a")[0], samples), "req_1")


# What is sent


def test_a_call_says_all_that_it_may_cost_and_nothing_more() -> None:
    double = Double("openai", lambda body: ok("openai"))
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=96, seed=41)
    double.chat(model="gpt-4o").complete(requests_of("Hello", sampling=sampling))
    assert double.paths == ["/v1/chat/completions"]
    assert double.headers[0]["authorization"] == f"Bearer {KEYS['openai']}"
    assert double.asked == [
        {
            "model": "gpt-4o",
            "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}],
            "max_completion_tokens": 96,
            "temperature": 0.7,
            "top_p": 0.9,
            "seed": 41,
            "service_tier": "default",
            "store": False,
        }
    ]


def test_sampling_that_is_left_to_the_model_is_not_mentioned() -> None:
    assert {"temperature", "top_p", "seed", "n"}.isdisjoint(body_of(temperature=None, seed=41))


@pytest.mark.parametrize(
    ("thinking", "effort", "budget"), [(None, None, 256), (0, "none", 256), (1000, None, 1256)]
)
def test_thinking_widens_the_budget_or_is_switched_off(
    thinking: int | None, effort: str | None, budget: int
) -> None:
    body = body_of(thinking=thinking)
    assert (body.get("reasoning_effort"), body["max_completion_tokens"]) == (effort, budget)


def test_a_temperature_that_the_api_does_not_have_is_refused_before_anything_is_sent() -> None:
    double = Double("openai", lambda body: ok("openai"))
    with pytest.raises(ConfigError, match="0 to 2"):
        double.chat().complete(requests_of("a", sampling=Sampling(temperature=2.5)))
    assert double.asked == []


def test_prompts_that_start_alike_share_a_cache_key() -> None:
    def key(persona: str, text: str) -> object:
        messages = (Message("system", f"{persona}: {text}", shared=len(persona)), Message("user", text))
        return API.body(call_of(Request("a", messages, Sampling()))).get("prompt_cache_key")

    assert key("Ava", "one") == key("Ava", "two") != key("Bo", "one")
    assert "prompt_cache_key" not in body_of()


def test_half_a_surrogate_pair_is_sent_as_a_replacement_character() -> None:
    double = Double("openai", lambda body: ok("openai"))
    double.chat().complete(requests_of("half \ud83d"))
    assert double.texts() == ["half \ufffd"]


def test_a_batch_is_told_the_same_but_for_the_service_tier() -> None:
    request = requests_of("a")[0]
    live, batch = API.body(call_of(request)), API.body(call_of(request), batch=True)
    assert dict(live) == {**batch, "service_tier": "default"}


# Several samples


def samples_of(item: str, *samples: int, temperature: float | None = 0.7) -> list[Request]:
    messages = (Message("user", item),)
    return [
        Request(item, messages, Sampling(temperature=temperature, seed=100 + number), number)
        for number in samples
    ]


def test_the_missing_samples_of_an_item_are_one_call_with_the_seed_of_the_first() -> None:
    def answers(body: dict[str, Any]) -> httpx2.Response:
        texts = [f"{body['messages'][0]['content']}{number}" for number in range(body.get("n", 1))]
        shuffled = completion(*texts)
        shuffled["choices"].reverse()  # their index says which is which
        return httpx2.Response(200, json=shuffled)

    double = Double("openai", answers)
    requests = [*samples_of("a", 1, 3), *samples_of("b", 0), *samples_of("a", 4)]
    outcomes = double.chat().complete(requests)
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == ["a0", "a1", "b0", "a2"]
    assert [(body.get("n"), body["seed"]) for body in double.asked] == [(3, 101), (None, 100)]


def test_what_several_samples_used_is_known_only_together() -> None:
    found = read(completion("a", "b"), samples=2)
    assert isinstance(found, Answer)
    assert (found.usage.input_tokens, found.usage.output_tokens) == (20, 10)
    assert [reply.usage for reply in found.replies] == [Usage(), Usage()]
    assert API.bound(call_of(requests_of("a")[0], 3)).output_tokens == 150


def test_models_that_draw_by_themselves_get_a_call_a_sample() -> None:
    calls = API.calls(samples_of("a", 0, 1, temperature=None))
    assert [call.indexes for call in calls] == [(0,), (1,)]


def test_the_bound_covers_a_token_for_every_byte() -> None:
    text = "你好🙂" * 100
    assert API.bound(call_of(requests_of(text)[0])).input_tokens >= len(text.encode()) + len("Be kind.")


def test_the_bound_covers_what_a_normalizing_tokenizer_makes_of_a_ligature() -> None:
    written_out = "صلى الله عليه وسلم"
    bound = API.bound(call_of(requests_of("\ufdfa" * 100)[0]))
    assert bound.input_tokens >= 100 * len(written_out.encode())


# What comes back


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
    assert isinstance(found, Trouble)
    assert (found.reason, found.charge, found.retry) == ("malformed_reply", "paid", False)
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


# Errors


@pytest.mark.parametrize(
    ("status", "body", "reason", "charge", "retry"),
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
        (502, {}, "http_502", "lost", True),
        (504, {}, "http_504", "lost", True),
        (524, {}, "http_524", "lost", True),
        (408, {}, "http_408", "lost", True),
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
    status: int, body: dict[str, Any], reason: str, charge: str, retry: bool
) -> None:
    found = API.read_error(status, {"error": body}, {})
    assert (found.reason, found.charge, found.retry, found.fatal) == (reason, charge, retry, None)


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
    assert (found.charge, found.retry, found.limited) == ("free", False, False)


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation", "invalid_prompt"])
def test_a_prompt_that_the_filter_declines_is_a_refusal_and_free(code: str) -> None:
    double = Double("openai", lambda body: error(400, "flagged", code=code))
    reply = double.chat().complete(requests_of("a"))[0]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "refusal", Usage(0, 0))


@pytest.mark.parametrize(
    ("answer", "kind", "advice"),
    [
        (error(401, f"Incorrect API key provided: {KEYS['openai']}"), ConfigError, "check OPENAI_API_KEY"),
        (error(404, "no such model"), ConfigError, "check the model's name"),
        (error(429, "pay", code="insufficient_quota"), ModelCallError, "add credit"),
        (httpx2.Response(307, headers={"location": "https://elsewhere.example"}), ConfigError, "redirects"),
    ],
)
def test_fatal_trouble_is_one_clear_error(
    answer: httpx2.Response, kind: type[Exception], advice: str
) -> None:
    double = Double("openai", lambda body: answer)
    with pytest.raises(kind, match=advice) as caught:
        double.chat().complete(requests_of("a"))
    assert KEYS["openai"] not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(double.asked) == 1


# Key, address, silence


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENAI_API_KEY", ""),
        ("OPENAI_API_KEY", "  "),
        ("OPENAI_API_KEY", "sk-ünsafe"),
        ("OPENAI_API_KEY", "sk-two words"),
        ("OPENAI_BASE_URL", "api.openai.com"),
        ("OPENAI_BASE_URL", "https://me:secret@proxy.example/v1"),
        ("OPENAI_BASE_URL", "https://proxy.example/v1?key=secret"),
        ("OPENAI_BASE_URL", "https://[::bad/v1"),
        ("OPENAI_BASE_URL", "https://xn--☃.example/v1"),
    ],
)
def test_a_key_or_address_that_cannot_be_used_is_refused_by_its_variable(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=variable) as caught:
        open_chat("openai:gpt-4o")
    assert "secret" not in str(caught.value)
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", "gpt 4o", "gpt\n4o"])
def test_a_model_needs_a_name(name: str) -> None:
    with pytest.raises(ConfigError, match="gpt-4o"):
        open_chat(f"openai:{name}")


def test_errors_quote_no_key_not_even_a_masked_one() -> None:
    key = KEYS["openai"]
    shown = [key, "sk-proj-****6789", "sk-…89ab", f"{key[:9]}\n  {key[9:]}"]
    answers = iter(f"key {text} is odd" for text in shown)
    double = Double("openai", lambda body: error(400, next(answers)))
    outcomes = double.chat(ChatOptions(concurrency=1)).complete(requests_of("a", "b", "c", "d"))
    messages = [outcome.message for outcome in outcomes if isinstance(outcome, Failure)]
    assert messages == ["HTTP 400: key [key] is odd"] * 4


def test_what_the_sdk_logs_reaches_no_terminal(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    root, heard = logging.getLogger(), logging.StreamHandler(sys.stderr)
    root.addHandler(heard)
    logging.getLogger("openai").setLevel(logging.DEBUG)  # as OPENAI_LOG=debug does
    try:
        Double("openai", lambda body: ok("openai")).chat().complete(requests_of("a"))
    finally:
        logging.getLogger("openai").setLevel(logging.NOTSET)
        root.removeHandler(heard)
    assert capfd.readouterr() == ("", "")
    assert list(recwarn) == []


def test_neither_chat_nor_wire_shows_the_key() -> None:
    chat = open_chat("openai:gpt-4o")
    assert dict(chat.subject) == {"backend": "openai", "model": "gpt-4o"}
    assert KEYS["openai"] not in repr(chat) + repr(API)
