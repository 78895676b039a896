"""`anthropic:MODEL`: what its API is told, and what its answers and errors mean, through the real SDK."""

from __future__ import annotations

import logging
import sys
from typing import Any

import httpx2
import pytest
from hosted_made import KEYS, Double, error, message, ok, requests_of, set_keys

from h2htalk.chat.anthropic_wire import LEAST_CACHED_BYTES, AnthropicApi
from h2htalk.chat.base import ChatOptions, Message, Reply, Request, Sampling, open_chat
from h2htalk.chat.calls import Answer, Call, Trouble
from h2htalk.data.run import Failure, Usage
from h2htalk.errors import ConfigError, ModelCallError

API = AnthropicApi("claude-made-up", KEYS["anthropic"])
PERSONA = "You are Ava, who keeps a lighthouse. " * 90  # longer than the least that is cached


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


def body_of(*messages: Message, **sampling: Any) -> dict[str, Any]:
    sampling = {"temperature": None} | sampling
    request = Request("a", messages or (Message("user", "Hi"),), Sampling(**sampling))
    return dict(API.body(Call((0,), (request,))))


def turns_of(*messages: Message) -> list[tuple[str, str]]:
    return [(turn["role"], turn["content"]) for turn in body_of(*messages)["messages"]]


def read(body: object) -> Answer | Trouble:
    return API.read(body, Call((0,), (requests_of("a")[0],)), "req_1")


# What is sent


def test_a_call_says_all_that_it_may_cost_and_nothing_more() -> None:
    double = Double("anthropic", lambda body: ok("anthropic"))
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=96, seed=41)
    double.chat(model="claude-haiku-4-5").complete(requests_of("Hello", sampling=sampling))
    assert double.paths == ["/v1/messages"]
    assert double.headers[0]["authorization"] == f"Bearer {KEYS['anthropic']}"
    assert double.headers[0]["anthropic-version"]
    assert double.asked == [
        {
            "model": "claude-haiku-4-5",
            "max_tokens": 96,
            "messages": [{"role": "user", "content": "Hello"}],
            "system": [{"type": "text", "text": "Be kind."}],
            "service_tier": "standard_only",
        }
    ]


@pytest.mark.parametrize(
    ("thinking", "kind", "budget"), [(None, None, 256), (0, "disabled", 256), (1000, "adaptive", 1256)]
)
def test_thinking_widens_the_budget_or_is_switched_off(
    thinking: int | None, kind: str | None, budget: int
) -> None:
    body = body_of(thinking=thinking)
    assert (body.get("thinking", {}).get("type"), body["max_tokens"]) == (kind, budget)


@pytest.mark.parametrize(
    ("model", "thinking", "sent"),
    [
        ("claude-sonnet-5", 0, {"type": "disabled"}),
        ("claude-sonnet-5-5", 0, {"type": "between_tools"}),
        ("claude-sonnet-5-5", 2048, {"type": "adaptive"}),
        ("claude-haiku-4-5", 0, {"type": "disabled"}),
        ("claude-haiku-4-5-20251001", 2048, {"type": "enabled", "budget_tokens": 2048}),
    ],
)
def test_each_model_is_told_to_reason_in_its_own_words(model: str, thinking: int, sent: object) -> None:
    (request,) = requests_of("a", sampling=Sampling(None, thinking=thinking))
    assert AnthropicApi(model, "k").body(Call((0,), (request,)))["thinking"] == sent


def test_a_budget_of_reasoning_below_the_least_is_refused_before_anything_is_sent() -> None:
    (request,) = requests_of("a", sampling=Sampling(None, thinking=500))
    with pytest.raises(ConfigError, match="claude-opus-4-5 takes 1,024 tokens or more, or 0"):
        AnthropicApi("claude-opus-4-5", "k").body(Call((0,), (request,)))


def test_a_large_budget_needs_no_stream() -> None:
    double = Double("anthropic", lambda body: ok("anthropic"))
    outcomes = double.chat().complete(requests_of("a", sampling=Sampling(None, max_tokens=60_000)))
    assert isinstance(outcomes[0], Reply)


def test_several_samples_are_several_calls() -> None:
    requests = [Request("a", (Message("user", "Hi"),), Sampling(None), sample) for sample in range(3)]
    assert [call.indexes for call in API.calls(requests)] == [(0,), (1,), (2,)]


# Turns: the user first, never two in a row, none of them blank


def test_a_conversation_is_sent_as_it_is() -> None:
    turns = [("user", "Hi"), ("assistant", "Hello."), ("user", "Sad.")]
    assert turns_of(*(Message(role, text) for role, text in turns)) == turns  # type: ignore[arg-type]


def test_blank_turns_go_and_their_neighbours_are_joined() -> None:
    messages = [
        Message("system", "  "),
        Message("user", "Hi"),
        Message("assistant", " \n"),
        Message("user", "Are you there?"),
        Message("assistant", ""),
    ]
    assert turns_of(*messages) == [("user", "Hi\nAre you there?")]
    assert "system" not in body_of(*messages)


@pytest.mark.parametrize(
    "messages", [(Message("assistant", "Welcome."), Message("user", "Hi")), (Message("system", "Write."),)]
)
def test_a_conversation_that_the_user_does_not_open_gets_an_opening(messages: tuple[Message, ...]) -> None:
    assert turns_of(*messages)[0] == ("user", "…")


def test_system_messages_become_one() -> None:
    body = body_of(Message("system", "One."), Message("system", "Two."), Message("user", "Hi"))
    assert body["system"] == [{"type": "text", "text": "One.\n\nTwo."}]


def test_half_a_surrogate_pair_is_sent_as_a_replacement_character() -> None:
    assert turns_of(Message("user", "half \ud83d")) == [("user", "half \ufffd")]


# Caches


def sharing(item: str, persona: str = PERSONA) -> Request:
    system = Message("system", f"{persona}Today: {item}", shared=len(persona))
    return Request(item, (system, Message("user", item)), Sampling(None))


def system_of(requests: list[Request], batch: bool = False) -> list[Any]:
    return [API.body(call, batch)["system"] for call in API.calls(requests)]


def test_what_two_calls_share_is_cached_for_five_minutes() -> None:
    for blocks, item in zip(system_of([sharing("a"), sharing("b")]), "ab", strict=True):
        assert blocks == [
            {"type": "text", "text": PERSONA, "cache_control": {"type": "ephemeral", "ttl": "5m"}},
            {"type": "text", "text": f"Today: {item}"},
        ]


def test_in_a_batch_three_must_share_it_and_it_lives_for_an_hour() -> None:
    two, three = [sharing("a"), sharing("b")], [sharing("a"), sharing("b"), sharing("c")]
    assert all("cache_control" not in str(blocks) for blocks in system_of(two, batch=True))
    assert all(blocks[0]["cache_control"]["ttl"] == "1h" for blocks in system_of(three, batch=True))


def test_what_nobody_shares_or_is_too_short_is_not_cached() -> None:
    short = "You are Ava. "
    assert len(short) < LEAST_CACHED_BYTES < len(PERSONA)
    requests = [sharing("a"), sharing("b", short), sharing("c", short), sharing("d", "I" * len(PERSONA))]
    assert "cache_control" not in str(system_of(requests))
    unmarked = Request("e", (Message("system", PERSONA), Message("user", "e")), Sampling(None))
    assert "cache_control" not in str(system_of([unmarked, unmarked]))


def test_a_prefix_that_ends_the_text_leaves_no_blank_block() -> None:
    system = Message("system", f"{PERSONA}\n", shared=len(PERSONA))
    requests = [Request(item, (system, Message("user", item)), Sampling(None)) for item in "ab"]
    assert all(len(blocks) == 1 for blocks in system_of(requests))


def test_calls_that_share_a_prefix_follow_each_other() -> None:
    other = "You are Bo, who mends nets. " * 120
    requests = [sharing("a"), sharing("b", other), sharing("c", "alone"), sharing("d"), sharing("e", other)]
    assert [call.indexes[0] for call in API.calls(requests)] == [0, 3, 1, 4, 2]


# What comes back


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
    assert reply == Reply(
        "I am here.", "stop", Usage(1220, 300, 1024, 64, 32, 250), "They are sad.", "req_made_up"
    )


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


def test_a_refusal_may_have_no_text() -> None:
    found = read(message("") | {"stop_reason": "refusal", "content": []})
    assert isinstance(found, Answer)
    assert (found.replies[0].text, found.replies[0].finish_reason) == ("", "refusal")


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
    assert isinstance(found, Trouble)
    assert (found.reason, found.charge, found.retry) == ("malformed_reply", "paid", False)
    assert KEYS["anthropic"] not in found.message


@pytest.mark.parametrize("usage", [None, "many", {}, {"input_tokens": -1}, {"input_tokens": True}])
def test_counts_that_make_no_sense_are_unknown_and_lose_no_reply(usage: object) -> None:
    found = read(message("a") | {"usage": usage})
    assert isinstance(found, Answer)
    assert found.usage.input_tokens is None
    assert found.replies[0].text == "a"


# Errors


@pytest.mark.parametrize(
    ("status", "kind", "text", "reason", "charge", "retry"),
    [
        (429, "rate_limit_error", "slow down", "rate_limited", "free", True),
        (529, "overloaded_error", "busy", "overloaded", "free", True),
        (500, "api_error", "oops", "http_500", "free", True),
        (504, "timeout_error", "late", "http_504", "lost", True),
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
    status: int, kind: str, text: str, reason: str, charge: str, retry: bool
) -> None:
    found = API.read_error(status, {"type": "error", "error": {"type": kind, "message": text}}, {})
    assert (found.reason, found.charge, found.retry, found.fatal) == (reason, charge, retry, None)


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
    assert (found.charge, found.retry) == ("free", False)


def test_a_reply_that_the_filter_blocks_is_a_refusal_and_possibly_paid() -> None:
    blocked = error(400, "Output blocked by content filtering policy", type="invalid_request_error")
    double = Double("anthropic", lambda body: blocked)
    reply = double.chat().complete(requests_of("a"))[0]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "refusal", Usage())
    assert len(double.asked) == 1


@pytest.mark.parametrize(
    ("answer", "kind", "advice"),
    [
        (error(401, f"invalid x-api-key {KEYS['anthropic']}"), ConfigError, "check ANTHROPIC_API_KEY"),
        (error(404, "model: x", type="not_found_error"), ConfigError, "check the model's name"),
        (error(400, "Your credit balance is too low"), ModelCallError, "add credit"),
    ],
)
def test_fatal_trouble_is_one_clear_error(
    answer: httpx2.Response, kind: type[Exception], advice: str
) -> None:
    double = Double("anthropic", lambda body: answer)
    with pytest.raises(kind, match=advice) as caught:
        double.chat().complete(requests_of("a"))
    assert KEYS["anthropic"] not in str(caught.value)
    assert len(double.asked) == 1


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(ConfigError, match="set ANTHROPIC_API_KEY"):
        open_chat("anthropic:claude-haiku-4-5")


def test_errors_quote_no_key() -> None:
    double = Double("anthropic", lambda body: error(400, f"key {KEYS['anthropic']} is odd"))
    outcome = double.chat(ChatOptions(concurrency=1)).complete(requests_of("a"))[0]
    assert isinstance(outcome, Failure)
    assert outcome.message == "HTTP 400: key [key] is odd"


def test_what_the_sdk_logs_and_warns_of_reaches_no_terminal(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    root, heard = logging.getLogger(), logging.StreamHandler(sys.stderr)
    root.addHandler(heard)
    logging.getLogger("anthropic").setLevel(logging.DEBUG)  # as ANTHROPIC_LOG=debug does
    try:
        double = Double("anthropic", lambda body: ok("anthropic"))
        double.chat(model="claude-sonnet-4-5").complete(requests_of("a"))  # of which the SDK warns
    finally:
        logging.getLogger("anthropic").setLevel(logging.NOTSET)
        root.removeHandler(heard)
    assert capfd.readouterr() == ("", "")
    assert list(recwarn) == []
