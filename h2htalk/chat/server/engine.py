"""`server:MODEL@URL`: any OpenAI-compatible server, by the live loop over aiohttp, and its wire format."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from yarl import URL

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.hosted.openai_wire import OpenAIWire
from h2htalk.chat.live_calls import Connection, run_calls
from h2htalk.chat.local.chat_template import SWITCHES
from h2htalk.chat.protocol import Answer, Arrived, Call, FailedCall, OnDone, Outcome, Request, Send
from h2htalk.chat.provider_answers import Api
from h2htalk.chat.server.aiohttp_transport import exchange, open_session
from h2htalk.chat.server.endpoint import KEY_VARIABLE, base_url, parse_endpoint, read_key, read_proxy


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
        return run_calls(connection, requests, self._options, on_done, calls=None, deadline=deadline)

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


@dataclass(frozen=True, slots=True)
class ServerWire(OpenAIWire):
    """The wire format of a model on a server: OpenAI's, without what only OpenAI takes. Its calls cost nothing."""

    url: str = ""

    @property
    def model(self) -> str:
        return f"server:{self.name}"

    @property
    def api(self) -> Api:
        advice = f"{'check' if self.key else 'set'} {KEY_VARIABLE}"
        return Api(self.url, self.name, advice, "the URL (most end in /v1)", hosted=False)

    def calls(self, requests: Sequence[Request]) -> Iterator[Call]:  # type: ignore[override]  # built when they are sent
        """Return one call for each request."""
        return (Call((index,), (request,)) for index, request in enumerate(requests))

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`: without the settings that are left to the model."""
        request, sampling = call.request, call.request.sampling
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "max_tokens": sampling.budget,
        }
        if sampling.temperature is not None:
            body |= {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
        if sampling.thinking is not None:
            # What templates of thinking models call their switch; vLLM and SGLang hand it to them.
            body["chat_template_kwargs"] = dict.fromkeys(SWITCHES, sampling.thinking > 0)
        if request.response_schema is not None:
            form = {
                "name": request.response_schema.name,
                "schema": request.response_schema.schema(),
                "strict": True,
            }
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    def read(self, body: object, call: Call, request_id: str | None = None) -> Answer | FailedCall:
        """See `WireFormat.read`. A malformed answer cost nothing: the call is sent again."""
        found = OpenAIWire.read(self, body, call, request_id)
        return replace(found, retry=True) if isinstance(found, FailedCall) else found

    def read_error(self, status: int, body: object, headers: Mapping[str, str]) -> FailedCall:
        """See `WireFormat.read_error`. A rate limit is that of one call: a server has no account."""
        return replace(OpenAIWire.read_error(self, status, body, headers), limited=False)
