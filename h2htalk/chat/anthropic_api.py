"""`anthropic:MODEL`: Anthropic's models, by the messages API, live or as batch jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from h2htalk.chat.anthropic_wire import AnthropicApi
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

if TYPE_CHECKING:
    import httpx2

ANTHROPIC = Provider(
    "Anthropic", "anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"
)


class AnthropicChat:
    """An Anthropic model. Every call is booked in `ChatOptions.ledger` before it is sent.

    The API takes no temperature, top_p or seed: replies are drawn as the model draws by itself.
    """

    def __init__(
        self, name: str, options: ChatOptions, http_client: httpx2.AsyncClient | None = None
    ) -> None:
        """Check name, key and address; nothing is sent before `complete`.

        Args:
            name: the model, such as `claude-sonnet-5-5`.
            options: `timeout` limits an attempt, `deadline` a request in all.
            http_client: another transport for live calls; it stays the caller's to close.

        Raises:
            ConfigError: name, ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL cannot be used.
        """
        self._name = check_name(name, ANTHROPIC, "claude-sonnet-5-5")
        self._key, self._url = ANTHROPIC.read_key(), ANTHROPIC.read_url()
        self._options, self._http_client = options, http_client
        self._api = AnthropicApi(self._name, self._key)

    @property
    def subject(self) -> Mapping[str, str]:
        """`backend` and `model`."""
        return {"backend": "anthropic", "model": self._name}

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`; live in `run_calls`, with `ChatOptions.batch` in `run_batches`."""
        if not requests and self._options.batch is None:  # with batches, open jobs are collected and settled
            return []
        silence_sdks()
        if self._options.batch is not None:
            return self._complete_by_batches(requests, on_done)
        wire = Wire(ANTHROPIC, self._url, self._api, self._connect)
        return run_calls(wire, requests, self._options, on_done)

    def close(self) -> None:
        """Connections live no longer than a call of `complete`: nothing is held."""

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Send]:
        import anthropic

        pool = self._http_client or open_pool(self._url, self._options.concurrency)
        client = anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self._url,
            max_retries=0,
            http_client=pool,
            open_telemetry=False,
        )
        create = client.messages.with_raw_response.create

        async def send(body: Mapping[str, Any], seconds: float) -> Arrived | Trouble:
            return await exchange(
                lambda timeout: create(**body, timeout=timeout), seconds, anthropic, self._key
            )

        try:
            yield send
        finally:
            if self._http_client is None:
                await pool.aclose()

    def _complete_by_batches(self, requests: Sequence[Request], on_done: OnDone | None) -> list[Outcome]:
        import anthropic

        from h2htalk.chat.anthropic_batches import AnthropicJobs
        from h2htalk.chat.batches import run_batches

        with anthropic.Anthropic(
            api_key=self._key,
            base_url=self._url,
            max_retries=0,
            http_client=open_client(self._url),
            open_telemetry=False,
        ) as client:
            return run_batches(AnthropicJobs(client), self._api, requests, self._options, on_done)
