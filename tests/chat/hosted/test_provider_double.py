"""The double of the two providers speaks their protocol to their real SDKs, and its reserves are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import anthropic
import openai
import provider_anthropic
import provider_openai
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from provider_faults import KEY
from providers import ProviderServer

from h2htalk.data.splits import load_split

HELLO = [{"role": "user", "content": "Hello, item1"}]


def ask_openai(server: ProviderServer, **more: Any) -> Any:
    """A chat completion: one greeting, but for what is given."""
    body = {"model": "gpt-test", "messages": HELLO, "max_completion_tokens": 64, **more}
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=5) as client:
        return client.chat.completions.create(**body)


def ask_anthropic(server: ProviderServer, **more: Any) -> Any:
    """A message: one greeting, but for what is given."""
    body = {"model": "claude-test", "messages": HELLO, "max_tokens": 64, **more}
    with anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0, timeout=5) as client:
        return client.messages.create(**body)


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


@pytest.mark.parametrize(
    ("ask", "more", "said"),
    [
        (ask_openai, {"extra_body": {"top_k": 3}}, "Unknown parameter: 'top_k'"),
        (ask_openai, {"messages": [{"role": "narrator", "content": "x"}]}, "messages[0].role"),
        (ask_openai, {"messages": [{"role": "user", "content": None}]}, "expected a string"),
        (ask_openai, {"model": "reasoner-test", "temperature": 0}, "Only the default (1) value"),
        (ask_openai, {"reasoning_effort": "none"}, "Unrecognized request argument"),
        (ask_openai, {"response_format": {"type": "json_schema", "json_schema": {"name": "a b"}}}, "json_schema.name"),
        (ask_anthropic, {"extra_body": {"temperature": 0.5}}, "temperature: Extra inputs are not permitted"),
        (ask_anthropic, {"messages": [{"role": "assistant", "content": "Hi"}]}, 'must use the "user" role'),
        (ask_anthropic, {"messages": [{"role": "user", "content": " \n"}]}, "non-whitespace text"),
        (ask_anthropic, {"messages": [{"role": "system", "content": "x"}]}, "'user' or 'assistant'"),
        (ask_anthropic, {"thinking": {"type": "enabled", "budget_tokens": 3}}, "thinking"),
        (
            ask_anthropic,
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "integer", "minimum": 1}}}},
            "'minimum' is not supported",
        ),
    ],
)
def test_it_refuses_what_the_provider_does_not_take(
    server: ProviderServer, ask: Callable[..., Any], more: dict[str, Any], said: str
) -> None:
    before = server.bill()
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as refused:
        ask(server, **more)
    assert said in str(refused.value)
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

    split = load_split("mini@1").select("en", (), 40)
    sap, prompts = Sap.parse("full"), PromptSet.load(None)
    asked = [prompts.messages(s, split.personas[s.persona], sap)[-1] for s in split.scenarios]
    assert {message.role for message in asked} == {"user"}
    assert len({message.content for message in asked}) == len(asked)
