"""`openai:MODEL`: what its API is told through the real SDK, and with which key and address."""

from __future__ import annotations

from typing import Any

import pytest
from hosted_made import KEYS, Api, completion, requests_of, set_keys, text_of
from loopback import Answer, LoopbackServer

from h2htalk.chat.engines import open_chat
from h2htalk.chat.protocol import Call, Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.wires import OpenAIWire
from h2htalk.errors import ConfigError

API = OpenAIWire("gpt-made-up", KEYS["openai"])


@pytest.fixture(autouse=True)
def openai(monkeypatch: pytest.MonkeyPatch) -> Api:
    set_keys(monkeypatch)
    return Api("openai", monkeypatch)


def asked_for(openai: Api, requests: list[Request]) -> tuple[list[Outcome], list[dict[str, Any]]]:
    """The outcomes, and the bodies that arrived; each text of a reply is the prompt's and its number."""
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], _: int) -> Answer:
        asked.append(body)
        made = completion(*(f"{text_of(body)}{number}" for number in range(body.get("n", 1))))
        made["choices"].reverse()  # their index says which is which
        return Answer(made)

    with LoopbackServer(reply=answer) as server:
        return openai.open(server.url).complete(requests), asked


def call_of(request: Request, samples: int = 1) -> Call:
    return Call(tuple(range(samples)), (request,) * samples)


def body_of(**sampling: Any) -> dict[str, Any]:
    request = Request("a", (Message("user", "Hi"),), Sampling(**sampling))
    return dict(API.body(call_of(request)))


# What is sent


def test_a_call_says_all_that_it_may_cost_and_nothing_more(openai: Api) -> None:
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=96, seed=41)
    _, asked = asked_for(openai, requests_of("Hello", sampling=sampling))
    assert asked == [
        {
            "model": "made-up",
            "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}],
            "max_completion_tokens": 96,
            "temperature": 0.7,
            "top_p": 0.9,
            "seed": 41,
            "service_tier": "default",
            "store": False,
        }
    ]


@pytest.mark.parametrize(("thinking", "effort", "budget"), [(None, None, 256), (0, "none", 256), (1000, None, 1256)])
def test_thinking_widens_the_budget_or_is_switched_off(thinking: int | None, effort: str | None, budget: int) -> None:
    body = body_of(thinking=thinking)
    assert (body.get("reasoning_effort"), body["max_completion_tokens"]) == (effort, budget)


def test_prompts_that_start_alike_share_a_cache_key() -> None:
    def key(persona: str, text: str) -> object:
        messages = (Message("system", f"{persona}: {text}", shared=len(persona)), Message("user", text))
        return API.body(call_of(Request("a", messages, Sampling()))).get("prompt_cache_key")

    assert key("Ava", "one") == key("Ava", "two") != key("Bo", "one")
    assert "prompt_cache_key" not in body_of()


# Several samples


def samples_of(item: str, *samples: int, temperature: float | None = 0.7) -> list[Request]:
    messages = (Message("user", item),)
    return [Request(item, messages, Sampling(temperature=temperature, seed=100 + number), number) for number in samples]


def test_the_missing_samples_of_an_item_are_one_call_with_the_seed_of_the_first(openai: Api) -> None:
    outcomes, asked = asked_for(openai, [*samples_of("a", 1, 3), *samples_of("b", 0), *samples_of("a", 4)])
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == ["a0", "a1", "b0", "a2"]
    assert sorted((body.get("n", 1), body["seed"]) for body in asked) == [(1, 100), (3, 101)]


def test_the_bound_covers_what_a_normalizing_tokenizer_makes_of_a_ligature() -> None:
    written_out = "صلى الله عليه وسلم"
    bound = API.bound(call_of(requests_of("\ufdfa" * 100)[0]))
    assert bound.input_tokens >= 100 * len(written_out.encode())


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
