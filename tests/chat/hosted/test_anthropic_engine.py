"""`anthropic:MODEL`: what its API is told through the real SDK, what is cached there, and with which key."""

from __future__ import annotations

from typing import Any

import pytest
from hosted_made import KEYS, Api, requests_of, set_keys
from loopback import Answer, LoopbackServer

from h2htalk.chat.protocol import Call, Message, Request, Sampling
from h2htalk.chat.wires import LEAST_CACHED_BYTES, AnthropicWire
from h2htalk.errors import ConfigError

API = AnthropicWire("claude-made-up", KEYS["anthropic"])
PERSONA = "You are Ava, who keeps a lighthouse. " * 90  # longer than the least that is cached


@pytest.fixture(autouse=True)
def anthropic(monkeypatch: pytest.MonkeyPatch) -> Api:
    set_keys(monkeypatch)
    return Api("anthropic", monkeypatch)


def body_of(*messages: Message, **sampling: Any) -> dict[str, Any]:
    sampling = {"temperature": None} | sampling
    request = Request("a", messages or (Message("user", "Hi"),), Sampling(**sampling))
    return dict(API.body(Call((0,), (request,))))


def turns_of(*messages: Message) -> list[tuple[str, str]]:
    return [(turn["role"], turn["content"]) for turn in body_of(*messages)["messages"]]


# What is sent


def test_a_call_says_all_that_it_may_cost_and_nothing_more(anthropic: Api) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], _: int) -> Answer:
        asked.append(body)
        return Answer(anthropic.answer())

    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=96, seed=41)
    with LoopbackServer(reply=answer) as server:
        anthropic.open(server.url).complete(requests_of("Hello", sampling=sampling))
    assert server.authorizations == {f"Bearer {KEYS['anthropic']}"}
    assert asked == [
        {
            "model": "made-up",
            "max_tokens": 96,
            "messages": [{"role": "user", "content": "Hello"}],
            "system": [{"type": "text", "text": "Be kind."}],
            "service_tier": "standard_only",
        }
    ]


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
    assert AnthropicWire(model, "k").body(Call((0,), (request,)))["thinking"] == sent


def test_a_budget_of_reasoning_below_the_least_is_refused_before_anything_is_sent() -> None:
    (request,) = requests_of("a", sampling=Sampling(None, thinking=500))
    with pytest.raises(ConfigError, match="claude-opus-4-5 takes 1,024 tokens or more, or 0"):
        AnthropicWire("claude-opus-4-5", "k").body(Call((0,), (request,)))


# Turns: the user first, never two in a row, none of them blank


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


def test_calls_that_share_a_prefix_follow_each_other() -> None:
    other = "You are Bo, who mends nets. " * 120
    requests = [sharing("a"), sharing("b", other), sharing("c", "alone"), sharing("d"), sharing("e", other)]
    assert [call.indexes[0] for call in API.calls(requests)] == [0, 3, 1, 4, 2]
