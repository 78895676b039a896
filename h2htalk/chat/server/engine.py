"""`server:MODEL@URL`: any OpenAI-compatible server, by the live loop over aiohttp."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from yarl import URL

from h2htalk.chat.calls import Arrived, FailedCall, Send
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.live_calls import Connection, run_calls
from h2htalk.chat.protocol import OnDone, Outcome, Request
from h2htalk.chat.server.aiohttp_transport import exchange, open_session
from h2htalk.chat.server.endpoint import base_url, parse_endpoint, read_key, read_proxy
from h2htalk.chat.server.wire import ServerWire


class ServerChat:
    """An OpenAI-compatible chat completions server."""

    def __init__(self, name: str, options: ChatOptions) -> None:
        """Check the name, the key and the proxy; nothing is sent before `complete`.

        Args:
            name: `MODEL@URL`, such as `qwen2.5@http://127.0.0.1:8000/v1`.
            options: `concurrency` requests are in flight at once; one may take 2 x `timeout` seconds in all.

        Raises:
            ConfigError: name, key or proxy cannot be used.
        """
        self._endpoint = parse_endpoint(name)
        self._options = options
        self._key = read_key()
        self._proxy = read_proxy(self._endpoint)

    @property
    def subject(self) -> Mapping[str, str]:
        """`engine` and `model`; the URL is the `endpoint`: a server may move between a run and its restart."""
        return {"engine": "server", "model": self._endpoint.model}

    @property
    def endpoint(self) -> str:
        """The server's URL without query and route."""
        return base_url(self.url)

    @property
    def url(self) -> str:
        """The URL that requests are sent to."""
        return self._endpoint.url

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`. Runs an event loop of its own; `on_done` is called in its thread (`run_alone`).

        Raises:
            ConfigError: before its first answer the server refuses the key or does not know the model.
            ModelCallError: no server answers at the URL; a `PausedError` where it stopped answering.
        """
        wire = ServerWire(self._endpoint.model, self._key, self.url)
        advice = "check host, port and proxy" if self._proxy else "start it, or check host and port"
        connection = Connection(wire, self.url, advice, self._connect)
        deadline = 2 * self._options.timeout  # time for two timeouts
        return run_calls(connection, requests, self._options, on_done, ledger=None, deadline=deadline)

    def close(self) -> None:
        """Do nothing: connections are closed at the end of `complete`."""

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Send]:
        headers = {"content-type": "application/json"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        url, proxy = URL(self.url), self._proxy
        async with open_session(self._options.concurrency, self._options.timeout, headers) as session:

            async def send(body: Mapping[str, Any], seconds: float) -> Arrived | FailedCall:
                return await exchange(session, "POST", url, seconds, data=json.dumps(body).encode(), proxy=proxy)

            yield send
