"""The double of the two providers speaks their protocol to their real SDKs, and its books are right."""

from __future__ import annotations

import asyncio
import json
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
from provider_clients import HELLO, anthropic_client, ask_anthropic, ask_openai, openai_client
from providers import KEY, ProviderServer

from h2htalk.data.splits import load_split

LONG = "She is forty, and keeps bees. " * 200  # about 2,000 tokens


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


def test_a_message_that_was_thought_about(server: ProviderServer) -> None:
    reply = ask_anthropic(server, thinking={"type": "adaptive"}, system="Be kind.")
    assert [block.type for block in reply.content] == ["thinking", "text"]
    assert reply.stop_reason == "end_turn"
    assert 0 < reply.usage.output_tokens_details.thinking_tokens < reply.usage.output_tokens
    assert reply._request_id == server.charged()[-1].request_id


def test_the_asynchronous_clients_are_served_too(server: ProviderServer) -> None:
    async def both() -> tuple[Any, Any]:
        async with (
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as one,
            anthropic.AsyncAnthropic(base_url=server.url, api_key=KEY) as other,
        ):
            return await asyncio.gather(
                one.chat.completions.create(model="gpt-test", messages=HELLO),  # type: ignore[arg-type]
                other.messages.create(model="claude-test", max_tokens=64, messages=HELLO),  # type: ignore[arg-type]
            )

    completion, message = asyncio.run(both())
    assert completion.choices[0].message.content
    assert message.content[0].text


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
def test_openai_refuses_what_it_does_not_take(
    server: ProviderServer, more: dict[str, Any], said: str
) -> None:
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
            {
                "output_config": {
                    "format": {"type": "json_schema", "schema": {"type": "integer", "minimum": 1}}
                }
            },
            "'minimum' is not supported",
        ),
    ],
)
def test_anthropic_refuses_what_it_does_not_take(
    server: ProviderServer, more: dict[str, Any], said: str
) -> None:
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


def test_models_and_token_counts(server: ProviderServer) -> None:
    assert [model.id for model in openai_client(server).models.list()] == list(provider_openai.MODELS)
    client = anthropic_client(server)
    assert [model.id for model in client.models.list()] == list(provider_anthropic.MODELS)
    counted = client.messages.count_tokens(model="claude-test", messages=HELLO).input_tokens  # type: ignore[arg-type]
    assert counted == ask_anthropic(server).usage.input_tokens


def test_a_prefix_is_written_to_the_cache_once_and_read_only_after_that_reply_was_finished() -> None:
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    with ProviderServer(latency=0.3) as server:

        async def three_at_once() -> list[Any]:
            async with anthropic.AsyncAnthropic(base_url=server.url, api_key=KEY) as client:
                body: Any = {
                    "model": "claude-test",
                    "max_tokens": 64,
                    "system": system,
                    "messages": HELLO,
                }
                return list(await asyncio.gather(*(client.messages.create(**body) for _ in range(3))))

        for reply in asyncio.run(three_at_once()):
            assert reply.usage.cache_creation_input_tokens > 1024
            assert reply.usage.cache_creation.ephemeral_5m_input_tokens > 1024
            assert reply.usage.cache_read_input_tokens == 0
        later = ask_anthropic(server, system=system)
        assert later.usage.cache_read_input_tokens > 1024
        assert later.usage.cache_creation_input_tokens == 0
        assert ask_anthropic(server, system=LONG).usage.cache_read_input_tokens == 0


def test_openai_caches_long_prefixes_by_itself(server: ProviderServer) -> None:
    messages = [{"role": "system", "content": LONG}, *HELLO]
    assert ask_openai(server, messages=messages).usage.prompt_tokens_details.cached_tokens == 0
    cached = ask_openai(server, messages=messages).usage.prompt_tokens_details.cached_tokens
    assert cached >= 1024
    assert cached % 128 == 0


RATING = {
    "type": "object",
    "properties": {"evidence": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["evidence", "score"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("fault", [None, "malformed_form", "out_of_range"])
def test_structured_output_has_the_form_unless_told_otherwise(fault: str | None) -> None:
    strict = {"type": "json_schema", "json_schema": {"name": "rating", "schema": RATING, "strict": True}}
    with ProviderServer(faults={fault: 1} if fault else {}) as server:
        texts = [
            ask_openai(server, response_format=strict).choices[0].message.content,
            ask_anthropic(server, output_config={"format": {"type": "json_schema", "schema": RATING}})
            .content[0]
            .text,
        ]
    for text in texts:
        if fault == "malformed_form":
            with pytest.raises(ValueError):
                json.loads(text)
        else:
            assert list(json.loads(text)) == ["evidence", "score"]
            assert (json.loads(text)["score"] > 10) == (fault == "out_of_range")


def test_the_dearest_call_costs_a_token_for_every_byte_and_all_of_its_budget() -> None:
    with ProviderServer(dearest=True) as server:
        ask_anthropic(server, messages=[{"role": "user", "content": "你好 item2"}])
        (charge,) = server.charged()
        assert charge.tokens.input == len("你好 item2".encode()) + 3
        assert charge.tokens.output == 64
        assert server.bill() == (15 * Decimal(3) + 64 * Decimal(15)) / 1_000_000


def test_the_prompts_of_a_split_are_known_by_their_own_words(server: ProviderServer) -> None:
    """What the end-to-end tests rely on: a scenario's last user message is unlike any other's."""
    from h2htalk.benchmark.prompting import PromptSet
    from h2htalk.benchmark.sap import Sap

    split = load_split("mini").select("en", (), 40)
    sap, prompts = Sap.parse("full"), PromptSet.load(None)
    asked = [prompts.messages(s, split.personas[s.persona], sap)[-1] for s in split.scenarios]
    assert {message.role for message in asked} == {"user"}
    assert len({message.content for message in asked}) == len(asked)
