"""`openai:MODEL` and `anthropic:MODEL`, live or as batch jobs; the providers differ by record and wire format."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from h2htalk.chat.batch.batch_runner import run_batches
from h2htalk.chat.calls import Arrived, FailedCall, Send, WireFormat
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.hosted.anthropic_wire import AnthropicWire
from h2htalk.chat.hosted.openai_wire import OpenAIWire
from h2htalk.chat.live_calls import Connection, run_calls
from h2htalk.chat.protocol import OnDone, Outcome, Request
from h2htalk.chat.server.endpoint import base_url, http_parts, read_key
from h2htalk.chat.store.call_store import CallStore, StageCalls
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Provider:
    """The names of a provider: its SDK, and the variables that hold key and address.

    Attributes:
        wire: the class of its wire format.
        module: of the SDK, and the engine's name. client: the SDK's class; the asynchronous one begins with `Async`.
        create: the client's method that sends a call, as a path of attributes.
        example: a model of it.
        jobs: `module:Class` of its batch jobs.
        client_options: for the client's class.
    """

    wire: Callable[[str, str], WireFormat]
    module: str
    key_variable: str
    url_variable: str
    url: str
    client: str
    create: str
    example: str
    jobs: str
    client_options: Mapping[str, Any] = field(default_factory=dict)

    def open_client(self, key: str, url: str, http_client: Any) -> Any:
        """Return the SDK's client over the given connection; asynchronous where the connection is."""
        import httpx2

        name = ("Async" if isinstance(http_client, httpx2.AsyncClient) else "") + self.client
        client_class = getattr(import_module(self.module), name)
        parts = urlsplit(url)
        return client_class(
            api_key=key,
            base_url=urlunsplit(parts._replace(query="")),
            default_query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            max_retries=0,  # every attempt is reserved
            http_client=http_client,
            **self.client_options,
        )

    def read_key(self) -> str:
        """Read the key from the environment; raises ConfigError where it cannot be one. No message repeats it."""
        if (key := read_key(self.key_variable)) is None:
            raise ConfigError(f"{self.module}: needs a key: set {self.key_variable}")
        return key

    def read_url(self) -> str:
        """Return the address in the environment, else the provider's; raises ConfigError where it cannot be one."""
        import httpx2

        url = os.environ.get(self.url_variable, "").strip() or self.url
        http_parts(url, self.url_variable, self.url, f"a key belongs in {self.key_variable}")
        try:
            httpx2.URL(url)  # is stricter about what a host may be called
        except httpx2.InvalidURL:
            raise ConfigError(f"{self.url_variable} has no usable URL; give one such as {self.url}") from None
        return url


OPENAI = Provider(
    wire=OpenAIWire,
    module="openai",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    url="https://api.openai.com/v1",
    client="OpenAI",
    create="chat.completions.with_raw_response.create",
    example="gpt-4o",
    jobs="h2htalk.chat.batch.openai_batches:OpenAIJobs",
)

ANTHROPIC = Provider(
    wire=AnthropicWire,
    module="anthropic",
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    url="https://api.anthropic.com",
    client="Anthropic",
    create="messages.with_raw_response.create",
    example="claude-sonnet-5-5",
    jobs="h2htalk.chat.batch.anthropic_batches:AnthropicJobs",
    client_options={"open_telemetry": False},
)


class HostedChat:
    """A model of a hosted API. Every call is reserved in `ChatOptions.calls` before it is sent."""

    provider: ClassVar[Provider]

    def __init__(self, name: str, options: ChatOptions) -> None:
        """Check name, key and address; nothing is sent before `complete`. No message repeats the key.

        Raises ConfigError where the name, or the key or address in the environment, cannot be used.
        """
        if not name or not name.isprintable() or any(c.isspace() for c in name):
            engine = self.provider.module
            raise ConfigError(f"{engine}: needs the name of a model, such as {engine}:{self.provider.example}")
        self._name, self._key, self._url = name, self.provider.read_key(), self.provider.read_url()
        self._options = options
        self._wire = self.provider.wire(name, self._key)

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
        options = self._options
        calls = options.calls or StageCalls(CallStore(), "", self._wire.model)
        if not options.batch:
            parts = urlsplit(self._url)  # whose path may hold something secret
            advice = f"check the connection and its proxy, or {self.provider.url_variable}"
            connection = Connection(self._wire, f"{parts.scheme}://{parts.netloc}", advice, self._connect)
            return run_calls(connection, requests, options, on_done, calls=calls, deadline=options.deadline)
        from h2htalk.chat.hosted.sdk_transport import open_client, silence_sdks

        module, _, jobs_class = self.provider.jobs.partition(":")
        silence_sdks()
        with self.provider.open_client(self._key, self._url, open_client(self._url)) as client:
            # Without requests too: open jobs are collected and settled.
            jobs = getattr(import_module(module), jobs_class)(client)
            return run_batches(jobs, self._wire, requests, options, calls, on_done)

    def close(self) -> None:
        """Do nothing: connections are closed at the end of `complete`."""

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Send]:
        from h2htalk.chat.hosted.sdk_transport import exchange, open_pool, silence_sdks

        silence_sdks()
        sdk = import_module(self.provider.module)
        async with open_pool(self._url, self._options.concurrency) as pool:
            create = attrgetter(self.provider.create)(self.provider.open_client(self._key, self._url, pool))

            async def send(body: Mapping[str, Any], seconds: float) -> Arrived | FailedCall:
                return await exchange(lambda timeout: create(**body, timeout=timeout), seconds, sdk, self._key)

            yield send


class OpenAIChat(HostedChat):
    """An OpenAI model, by chat completions."""

    provider = OPENAI


class AnthropicChat(HostedChat):
    """An Anthropic model, by the messages API, which takes no temperature, top_p or seed."""

    provider = ANTHROPIC
