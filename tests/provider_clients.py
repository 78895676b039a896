"""The providers' own SDK clients, pointed at the double, without retries of their own."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
from provider_faults import KEY
from providers import ProviderServer


def openai_client(server: ProviderServer, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, **options)


def anthropic_client(server: ProviderServer, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0, **options)
