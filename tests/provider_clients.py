"""The providers' own SDK clients, pointed at the double, without retries of their own."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
from provider_faults import KEY
from providers import ProviderServer

HELLO = [{"role": "user", "content": "Hello, item1"}]


def openai_client(server: ProviderServer, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, **options)


def anthropic_client(server: ProviderServer, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0, **options)


def ask_openai(server: ProviderServer, **more: Any) -> Any:
    """A chat completion: one greeting, but for what is given."""
    body = {"model": "gpt-test", "messages": HELLO, "max_completion_tokens": 64, **more}
    with openai_client(server, timeout=5) as client:
        return client.chat.completions.create(**body)


def ask_anthropic(server: ProviderServer, **more: Any) -> Any:
    """A message: one greeting, but for what is given."""
    body = {"model": "claude-test", "messages": HELLO, "max_tokens": 64, **more}
    with anthropic_client(server, timeout=5) as client:
        return client.messages.create(**body)
