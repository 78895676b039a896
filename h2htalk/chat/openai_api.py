"""`openai:MODEL`: OpenAI's models, by chat completions, live or as batch jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from h2htalk.chat.base import OnDone, Outcome, Request
from h2htalk.chat.calls import Trouble
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.connections import open_client, open_pool
from h2htalk.chat.exchange import (
    Arrived,
    Provider,
    Send,
    Wire,
    check_name,
    exchange,
    silence_sdks,
)
from h2htalk.chat.hosted import run_calls
from h2htalk.chat.openai_wire import OpenAIApi

if TYPE_CHECKING:
    import httpx2

OPENAI = Provider("OpenAI", "openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1")


class OpenAIChat:
    """An OpenAI model. Every call is booked in `ChatOptions.ledger` before it is sent."""

    def __init__(
        self, name: str, options: ChatOptions, http_client: httpx2.AsyncClient | None = None
    ) -> None:
        """Check name, key and address; nothing is sent before `complete`.

        Args:
            name: the model, such as `gpt-4o`.
            options: `timeout` limits an attempt, `deadline` a request in all.
            http_client: another transport for live calls; it stays the caller's to close.

        Raises:
            ConfigError: name, OPENAI_API_KEY or OPENAI_BASE_URL cannot be used.
        """
        self._name = check_name(name, OPENAI, "gpt-4o")
        self._key, self._url = OPENAI.read_key(), OPENAI.read_url()
        self._options, self._http_client = options, http_client
        self._api = OpenAIApi(self._name, self._key)

    @property
    def subject(self) -> Mapping[str, str]:
        """`backend` and `model`."""
        return {"backend": "openai", "model": self._name}

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`; live in `run_calls`, with `ChatOptions.batch` in `run_batches`."""
        if not requests and self._options.batch is None:  # with batches, open jobs are collected and settled
            return []
        silence_sdks()
        if self._options.batch is not None:
            return self._complete_by_batches(requests, on_done)
        wire = Wire(OPENAI, self._url, self._api, self._connect)
        return run_calls(wire, requests, self._options, on_done)

    def close(self) -> None:
        """Connections live no longer than a call of `complete`: nothing is held."""

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Send]:
        import openai

        pool = self._http_client or open_pool(self._url, self._options.concurrency)
        client = openai.AsyncOpenAI(api_key=self._key, base_url=self._url, max_retries=0, http_client=pool)
        create = client.chat.completions.with_raw_response.create

        async def send(body: Mapping[str, Any], seconds: float) -> Arrived | Trouble:
            return await exchange(lambda timeout: create(**body, timeout=timeout), seconds, openai, self._key)

        try:
            yield send
        finally:
            if self._http_client is None:
                await pool.aclose()

    def _complete_by_batches(self, requests: Sequence[Request], on_done: OnDone | None) -> list[Outcome]:
        import openai

        from h2htalk.chat.batches import run_batches
        from h2htalk.chat.openai_batches import OpenAIJobs

        with openai.OpenAI(
            api_key=self._key, base_url=self._url, max_retries=0, http_client=open_client(self._url)
        ) as client:
            return run_batches(OpenAIJobs(client), self._api, requests, self._options, on_done)
