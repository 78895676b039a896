"""The base of the engines of hosted APIs, live or as batch jobs; providers differ by record and wire format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from h2htalk.chat.batch.batch_runner import run_batches
from h2htalk.chat.calls import FailedCall, WireFormat
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.hosted.connections import open_client, open_pool
from h2htalk.chat.hosted.http_attempt import (
    ApiConnection,
    Arrived,
    Provider,
    Send,
    check_name,
    exchange,
    silence_sdks,
)
from h2htalk.chat.hosted.live_calls import run_calls
from h2htalk.chat.protocol import OnDone, Outcome, Request
from h2htalk.chat.server.endpoint import base_url

if TYPE_CHECKING:
    import httpx2


class HostedChat(ABC):
    """A model of a hosted API. Every call is reserved in `ChatOptions.ledger` before it is sent."""

    provider: ClassVar[Provider]

    def __init__(self, name: str, options: ChatOptions, http_client: httpx2.AsyncClient | None = None) -> None:
        """Check name, key and address; nothing is sent before `complete`.

        Args:
            name: the model, such as `gpt-4o`.
            options: `timeout` limits an attempt, `deadline` a request in all.
            http_client: another transport for live calls; it stays the caller's to close.

        Raises:
            ConfigError: the name, or the key or address in the environment, cannot be used.
        """
        self._name = check_name(name, self.provider)
        self._key, self._url = self.provider.read_key(), self.provider.read_url()
        self._options, self._http_client = options, http_client
        self._wire = self.wire(self._name, self._key)

    @abstractmethod
    def wire(self, name: str, key: str) -> WireFormat:
        """Return what builds the calls of a model and reads its answers."""

    @property
    def subject(self) -> Mapping[str, str]:
        """`engine` and `model`."""
        return {"engine": self.provider.module, "model": self._name}

    @property
    def endpoint(self) -> str:
        """The API's URL. A path that is not the provider's may hold something secret: its hash stands for it."""
        parts, own = urlsplit(base_url(self._url)), urlsplit(self.provider.url).path
        path = parts.path if parts.path in ("", own) else f"/sha256:{sha256(parts.path.encode()).hexdigest()[:12]}"
        return f"{parts.scheme}://{parts.netloc}{path}"

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`; live in `run_calls`, with `ChatOptions.batch` in `run_batches`."""
        if not requests and self._options.batch is None:  # with batches, open jobs are collected and settled
            return []
        silence_sdks()
        if self._options.batch is None:
            connection = ApiConnection(self.provider, self._url, self._wire, self._connect)
            return run_calls(connection, requests, self._options, on_done)
        module, _, jobs_class = self.provider.jobs.partition(":")
        with self.provider.open_client(self._key, self._url, open_client(self._url)) as client:
            jobs = getattr(import_module(module), jobs_class)(client)
            return run_batches(jobs, self._wire, requests, self._options, on_done)

    def close(self) -> None:  # noqa: B027  part of the protocol of engines
        """Do nothing: connections are closed at the end of `complete`."""

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Send]:
        pool = self._http_client or open_pool(self._url, self._options.concurrency)
        create = attrgetter(self.provider.create)(self.provider.open_client(self._key, self._url, pool))
        sdk = import_module(self.provider.module)

        async def send(body: Mapping[str, Any], seconds: float) -> Arrived | FailedCall:
            return await exchange(lambda timeout: create(**body, timeout=timeout), seconds, sdk, self._key)

        try:
            yield send
        finally:
            if self._http_client is None:
                await pool.aclose()
