"""The faults of the double of the two providers, as their real SDKs see them, and what each is charged."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest
from provider_clients import HELLO, ask_anthropic, ask_openai
from providers import KEY, ProviderServer

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
