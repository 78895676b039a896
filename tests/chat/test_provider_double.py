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
from provider_clients import anthropic_client, openai_client
from providers import KEY, ProviderServer

from h2htalk.data.splits import load_split

HELLO = [{"role": "user", "content": "Hello, item1"}]
LONG = "She is forty, and keeps bees. " * 200  # about 2,000 tokens


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def ask_openai(server: ProviderServer, **more: Any) -> Any:
    body = {"model": "gpt-test", "messages": HELLO, "max_completion_tokens": 64, **more}
    with openai_client(server, timeout=5) as client:
        return client.chat.completions.create(**body)


def ask_anthropic(server: ProviderServer, **more: Any) -> Any:
    body = {"model": "claude-test", "messages": HELLO, "max_tokens": 64, **more}
    with anthropic_client(server, timeout=5) as client:
        return client.messages.create(**body)


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


STATUS = {
    "rate_limited": (429, 429),
    "overloaded": (503, 529),
    "http_500": (500, 500),
    "http_503": (503, 503),
    "unauthorized": (401, 401),
    "unknown_model": (404, 404),
    "context_length": (400, 400),
    "no_credit": (429, 402),
    "gateway_timeout": (504, 504),
}


@pytest.mark.parametrize("fault", STATUS)
def test_faults_have_the_status_that_each_provider_gives_them(fault: str) -> None:
    with ProviderServer(faults={fault: 1}) as server:
        with pytest.raises(openai.APIStatusError) as one:
            ask_openai(server)
        with pytest.raises(anthropic.APIStatusError) as other:
            ask_anthropic(server)
        assert (one.value.status_code, other.value.status_code) == STATUS[fault]
        # Computed, and so charged; yet no reply was delivered.
        assert [charge.delivered for charge in server.charged()] == [False] * (
            2 if fault == "gateway_timeout" else 0
        )


@pytest.mark.parametrize(
    ("fault", "charged"), [("drop_before", 0), ("drop_after", 2), ("cut", 2), ("hang", 2)]
)
def test_broken_connections_are_charged_when_the_reply_was_computed(fault: str, charged: int) -> None:
    with ProviderServer(faults={fault: 1}) as server:
        with pytest.raises((openai.APIConnectionError, openai.APITimeoutError)):
            ask_openai(server, timeout=0.3)
        with pytest.raises((anthropic.APIConnectionError, anthropic.APITimeoutError)):
            ask_anthropic(server, timeout=0.3)
        assert [charge.delivered for charge in server.charged()] == [False] * charged


def test_a_slow_body_outlives_every_timeout_of_the_sdks_own() -> None:
    """Their timeout is of one read, and each byte comes in time."""
    with ProviderServer(faults={"drip": 1}) as server:

        async def ask(seconds: float) -> None:
            client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, timeout=0.2)
            async with client, asyncio.timeout(seconds):
                await client.chat.completions.create(model="gpt-test", messages=HELLO)  # type: ignore[arg-type]

        with pytest.raises(TimeoutError):
            asyncio.run(ask(1.0))
        assert [charge.delivered for charge in server.charged()] == [False]


def test_replies_can_refuse_be_cut_short_be_filtered_or_hide_their_usage() -> None:
    at = {
        "a refusal": "refusal",
        "too much": "truncated",
        "a filter": "filtered",
        "no count": "no_usage",
        "junk": "garbage",
    }
    with ProviderServer(faults_at=at) as server:

        def ask(text: str) -> tuple[Any, Any]:
            messages = [{"role": "user", "content": text}]
            return ask_openai(server, messages=messages), ask_anthropic(server, messages=messages)

        completion, message = ask("a refusal")
        assert (completion.choices[0].message.content, message.stop_reason) == (None, "refusal")
        assert completion.choices[0].message.refusal
        completion, message = ask("too much")
        assert (completion.choices[0].finish_reason, message.stop_reason) == ("length", "max_tokens")
        assert completion.usage.completion_tokens == message.usage.output_tokens == 64
        completion, message = ask("a filter")
        assert (completion.choices[0].finish_reason, message.content) == ("content_filter", [])
        completion, message = ask("no count")
        assert completion.usage is None
        assert message.usage is None
        with pytest.raises((openai.APIError, json.JSONDecodeError)):
            ask("junk")
        assert [charge.reported for charge in server.charged()[-3:]] == [False, False, False]


def test_an_item_meets_its_fault_so_many_times_and_credit_ends_after_so_many_calls() -> None:
    with ProviderServer(faults={"http_500": 1}, fault_times=1, after={"no_credit": 2}) as server:
        with pytest.raises(openai.InternalServerError):
            ask_openai(server)
        ask_openai(server)
        ask_openai(server)
        with pytest.raises(openai.RateLimitError) as refused:
            ask_openai(server)
        assert refused.value.code == "insufficient_quota"
        assert server.seen == {"Hello, item1": 4}


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
