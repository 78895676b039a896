"""`openai:MODEL` and `anthropic:MODEL`: what their APIs are told through the real SDKs, and with which key."""

from __future__ import annotations

from typing import Any

import pytest
from hosted_made import KEYS, PERSONA, Api, completion, requests_of, set_keys, text_of
from loopback import Answer, LoopbackServer

from h2htalk.chat.engines import open_chat
from h2htalk.chat.protocol import Call, Message, Reply, Request, Sampling
from h2htalk.chat.wires import LEAST_CACHED_BYTES, AnthropicWire, OpenAIWire
from h2htalk.errors import ConfigError

OPENAI, ANTHROPIC = OpenAIWire("gpt-made-up", KEYS["openai"]), AnthropicWire("claude-made-up", KEYS["anthropic"])


def call_of(request: Request) -> Call:
    return Call((0,), (request,))


SENT = {
    "openai": {
        "model": "made-up",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}],
        "max_completion_tokens": 96,
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 41,
        "service_tier": "default",
        "store": False,
    },
    "anthropic": {
        "model": "made-up",
        "max_tokens": 96,
        "service_tier": "standard_only",
        "messages": [{"role": "user", "content": "Hello"}],
        "system": [{"type": "text", "text": "Be kind."}],
    },
}


def test_a_call_says_all_that_it_may_cost_and_nothing_more(provider: Api) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], _: int) -> Answer:
        asked.append(body)
        return Answer(provider.answer())

    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=96, seed=41)
    with LoopbackServer(reply=answer) as server:
        provider.open(server.url).complete(requests_of("Hello", sampling=sampling))
    assert server.authorizations == {f"Bearer {provider.key}"}
    assert asked == [SENT[provider.name]]


@pytest.mark.parametrize(("thinking", "effort", "budget"), [(None, None, 256), (0, "none", 256), (1000, None, 1256)])
def test_thinking_widens_the_budget_or_is_switched_off(thinking: int | None, effort: str | None, budget: int) -> None:
    body = OPENAI.body(call_of(Request("a", (Message("user", "Hi"),), Sampling(thinking=thinking))))
    assert (body.get("reasoning_effort"), body["max_completion_tokens"]) == (effort, budget)


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
    assert AnthropicWire(model, "k").body(call_of(request))["thinking"] == sent


def test_a_budget_of_reasoning_below_the_least_is_refused_before_anything_is_sent() -> None:
    (request,) = requests_of("a", sampling=Sampling(None, thinking=500))
    with pytest.raises(ConfigError, match="claude-opus-4-5 takes 1,024 tokens or more, or 0"):
        AnthropicWire("claude-opus-4-5", "k").body(call_of(request))


def test_missing_samples_are_one_call_with_the_first_seed(hosted_loop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], _: int) -> Answer:
        asked.append(body)
        made = completion(*(f"{text_of(body)}{number}" for number in range(body.get("n", 1))))
        made["choices"].reverse()  # their index says which is which
        return Answer(made)

    wanted = (("a", 1), ("a", 3), ("b", 0), ("a", 4))
    requests = [Request(i, (Message("user", i),), Sampling(temperature=0.7, seed=100 + n), n) for i, n in wanted]
    with LoopbackServer(reply=answer) as server:
        outcomes = Api("openai", monkeypatch).open(server.url).complete(requests)
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == ["a0", "a1", "b0", "a2"]
    assert sorted((body.get("n", 1), body["seed"]) for body in asked) == [(1, 100), (3, 101)]


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC])
def test_the_bound_covers_what_a_normalizing_tokenizer_makes_of_a_ligature(wire: OpenAIWire | AnthropicWire) -> None:
    written_out = "صلى الله عليه وسلم"
    bound = wire.bound(call_of(requests_of("\ufdfa" * 100)[0]))
    assert bound.input_tokens >= 100 * len(written_out.encode())


@pytest.mark.parametrize(
    ("turns", "sent"),
    [
        # The user opens, nobody speaks twice in a row, and no turn is blank.
        ([("user", "Hi"), ("assistant", " \n"), ("user", "You there?"), ("assistant", "")], ["Hi\nYou there?"]),
        ([("assistant", "Welcome."), ("user", "Hi")], ["…", "Welcome.", "Hi"]),
        ([], ["…"]),
    ],
)
def test_turns_are_as_anthropic_wants_them(turns: list[tuple[Any, str]], sent: list[str]) -> None:
    said = (Message("system", "  "), *(Message(role, text) for role, text in turns))
    body = ANTHROPIC.body(call_of(Request("a", said, Sampling(None))))
    assert [message["content"] for message in body["messages"]] == sent
    assert "system" not in body


def sharing(item: str, persona: str = PERSONA) -> Request:
    system = Message("system", f"{persona}Today: {item}", shared=len(persona))
    return Request(item, (system, Message("user", item)), Sampling(None))


def system_of(*requests: Request, batch: bool = False) -> list[Any]:
    return [ANTHROPIC.body(call, batch)["system"] for call in ANTHROPIC.calls(requests)]


def test_prompts_that_start_alike_share_a_cache_key() -> None:
    one, two, other = (OPENAI.body(call_of(r)) for r in (sharing("a"), sharing("b"), sharing("a", "You are Bo.")))
    assert one["prompt_cache_key"] == two["prompt_cache_key"] != other["prompt_cache_key"]


def test_what_two_calls_share_is_cached_for_five_minutes_and_what_three_share_in_a_batch_for_an_hour() -> None:
    requests = [sharing(item) for item in "abc"]
    for lifetime, blocks in (("5m", system_of(*requests[:2])[1]), ("1h", system_of(*requests, batch=True)[1])):
        assert blocks == [
            {"type": "text", "text": PERSONA, "cache_control": {"type": "ephemeral", "ttl": lifetime}},
            {"type": "text", "text": "Today: b"},
        ]
    assert "cache_control" not in str(system_of(*requests[:2], batch=True))


def test_what_nobody_shares_or_is_too_short_is_not_cached() -> None:
    short = "You are Ava. "
    assert len(short) < LEAST_CACHED_BYTES < len(PERSONA)
    requests = [sharing("a"), sharing("b", short), sharing("c", short), sharing("d", "I" * len(PERSONA))]
    unmarked = Request("e", (Message("system", PERSONA), Message("user", "e")), Sampling(None))
    assert "cache_control" not in str(system_of(*requests) + system_of(unmarked, unmarked))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("OPENAI_API_KEY", value) for value in ("", "  ", "sk-ünsafe", "sk-two words")),
        ("OPENAI_BASE_URL", "api.openai.com"),
        ("OPENAI_BASE_URL", "https://me:secret@proxy.example/v1"),
        ("OPENAI_BASE_URL", "https://proxy.example/v1?key=secret"),
    ],
)
def test_a_wrong_key_or_address_names_its_variable(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=variable) as caught:
        open_chat("openai:gpt-4o")
    assert "secret" not in str(caught.value)
    assert "sk-" not in str(caught.value)
