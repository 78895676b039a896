"""The double of the two providers speaks their protocol to their real SDKs, and its reserves are right."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import anthropic
import openai
import provider_anthropic
import provider_openai
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from provider_clients import HELLO, ask_anthropic, ask_openai
from providers import ProviderServer

from h2htalk.data.splits import load_split


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def test_the_parameters_it_knows_are_those_of_the_installed_sdks() -> None:
    openai_own = set(CompletionCreateParamsNonStreaming.__annotations__)
    anthropic_own = set(MessageCreateParamsNonStreaming.__annotations__)
    # These two go out as headers.
    assert anthropic_own - {"user_profile_id", "workspace_id"} == provider_anthropic.PARAMETERS
    assert openai_own == provider_openai.PARAMETERS


def test_a_chat_completion_with_several_samples(server: ProviderServer) -> None:
    before = len(server.charged())
    reply = ask_openai(server, n=3, temperature=0.7, seed=4, store=False, service_tier="default")
    assert len({choice.message.content for choice in reply.choices}) == 3
    assert [choice.finish_reason for choice in reply.choices] == ["stop"] * 3
    (charge,) = server.charged()[before:]
    assert (charge.samples, charge.delivered, charge.item) == (3, True, "Hello, item1")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (
        charge.tokens.input,
        charge.tokens.output,
    )
    assert reply._request_id == charge.request_id


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"extra_body": {"top_k": 3}}, "Unknown parameter: 'top_k'"),
        ({"messages": []}, "empty array"),
        ({"messages": [{"role": "narrator", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": None}]}, "expected a string"),
        ({"n": 0}, "must be 1 to 128"),
        ({"temperature": 3}, "must be 0 to 2"),
        ({"model": "reasoner-test", "temperature": 0}, "Only the default (1) value"),
        ({"reasoning_effort": "none"}, "Unrecognized request argument"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a b", "schema": {}, "strict": True},
                }
            },
            "json_schema.name",
        ),
    ],
)
def test_openai_refuses_what_it_does_not_take(server: ProviderServer, more: dict[str, Any], said: str) -> None:
    before = server.bill()
    with pytest.raises(openai.BadRequestError) as refused:
        ask_openai(server, **more)
    assert said in refused.value.message
    assert server.bill() == before


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"extra_body": {"temperature": 0.5}}, "temperature: Extra inputs are not permitted"),
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, 'must use the "user" role'),
        (
            {"messages": [*HELLO, {"role": "assistant", "content": "The"}]},
            "does not support assistant message prefill",
        ),
        ({"messages": [{"role": "user", "content": " \n"}]}, "non-whitespace text"),
        ({"messages": [{"role": "system", "content": "x"}]}, "'user' or 'assistant'"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 3}}, "thinking"),
        (
            {
                "system": [
                    {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                    {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                ]
            },
            "must not come after",
        ),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "integer", "minimum": 1}}}},
            "'minimum' is not supported",
        ),
    ],
)
def test_anthropic_refuses_what_it_does_not_take(server: ProviderServer, more: dict[str, Any], said: str) -> None:
    before = server.bill()
    with pytest.raises(anthropic.BadRequestError) as refused:
        ask_anthropic(server, **more)
    assert said in str(refused.value)
    assert refused.value.request_id
    assert server.bill() == before


def test_nothing_is_served_without_the_key(server: ProviderServer) -> None:
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk-other", max_retries=0).models.list()
    with pytest.raises(anthropic.AuthenticationError):
        anthropic.Anthropic(base_url=server.url, api_key="sk-other", max_retries=0).models.list()
    with pytest.raises(openai.NotFoundError):
        ask_openai(server, model="gpt-nowhere")
    with pytest.raises(anthropic.NotFoundError):
        ask_anthropic(server, model="claude-nowhere")


def test_the_dearest_call_costs_a_token_for_every_byte_and_all_of_its_budget() -> None:
    with ProviderServer(dearest=True) as server:
        ask_anthropic(server, messages=[{"role": "user", "content": "你好 item2"}])
        (charge,) = server.charged()
        assert charge.tokens.input == len("你好 item2".encode()) + 3
        assert charge.tokens.output == 64
        assert server.bill() == (15 * Decimal(3) + 64 * Decimal(15)) / 1_000_000


def test_the_prompts_of_a_split_are_known_by_their_own_words(server: ProviderServer) -> None:
    """What the end-to-end tests rely on: a scenario's last user message is unlike any other's."""
    from h2htalk.benchmark.prompts.prompt_set import PromptSet
    from h2htalk.benchmark.prompts.sap import Sap

    split = load_split("mini").select("en", (), 40)
    sap, prompts = Sap.parse("full"), PromptSet.load(None)
    asked = [prompts.messages(s, split.personas[s.persona], sap)[-1] for s in split.scenarios]
    assert {message.role for message in asked} == {"user"}
    assert len({message.content for message in asked}) == len(asked)
