"""`server:`: one endpoint of OpenAI's chat API, asked by aiohttp."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.error_bodies import clean
from h2htalk.chat.live_calls import Connection, run_calls
from h2htalk.chat.openai_wire import OpenAIWire, strict_format
from h2htalk.chat.protocol import (
    LARGEST_REPLY,
    Call,
    CallOutcome,
    FailedCall,
    HttpAnswer,
    OnDone,
    Outcome,
    Request,
    Send,
    reasoning_switch,
)
from h2htalk.chat.wire_formats import TOOL_CALL
from h2htalk.chat.wire_options import ServerOptions
from h2htalk.errors import ConfigError
from h2htalk.masking import hold_key, hold_url

EXAMPLE = "server:qwen2.5@http://127.0.0.1:8000/v1"
KEY_VARIABLE = "H2HTALK_SERVER_KEY"

_ROUTE = "/chat/completions"
CONNECT_TIMEOUT = 30.0  # seconds
KEEP_ALIVE = 4.0  # seconds: uvicorn, which serves vLLM, closes a connection that was idle for 5
VERSION = r"(api-version=[A-Za-z0-9.-]{1,40})?"


def parse_endpoint(name: str) -> tuple[str, str]:
    """Split `MODEL@URL` at the last `@http://` or `@https://` (a model's name may hold `/`, `:` and `@`).

    Return the model and the URL of its requests. Raises ConfigError where a part is missing, or the URL (which every
    run stores) carries a user, a password or a key.
    """
    end = max(name.rfind("@http://"), name.rfind("@https://"))
    model = name[:end]
    if end <= 0 or not model.strip() or not model.isprintable():
        raise ConfigError(f"server needs a model and a URL, such as {EXAMPLE}")
    advice = f"a key belongs in {KEY_VARIABLE}"
    address = http_parts(name[end + 1 :], f"server:{clean(model)}", EXAMPLE, advice)
    base_path = address.path.rstrip("/").removesuffix(_ROUTE)
    return model, urlunsplit(address._replace(path=base_path + _ROUTE))


def http_parts(url: str, what: str, example: str, advice: str, query: str = VERSION) -> SplitResult:
    """Split the URL of `what`, which will be stored with the replies.

    Raises ConfigError, which does not repeat it, where HTTP cannot use it, or it holds a user, a password, a fragment,
    or a query other than the pattern `query`.
    """
    try:
        address = urlsplit(url)
        has_host = (URL(url).host or "").encode("idna")
        usable = address.scheme in ("http", "https") and address.port != 0 and has_host
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise ConfigError(f"{what} has no usable URL; give one such as {example}")
    if "@" in address.netloc or address.fragment or not re.fullmatch(query, address.query):
        secret = f"the URL of {what} holds a user, a password, a fragment or a query"
        raise ConfigError(f"{secret}, which would be stored; take it out ({advice})")
    return address


def base_url(url: str) -> str:
    """Return which server a URL asks: scheme, host and path, without query and route."""
    address = urlsplit(url)
    path = address.path.rstrip("/").removesuffix(_ROUTE)
    return urlunsplit((address.scheme, address.netloc.lower(), path, "", ""))


def is_loopback(url: str) -> bool:
    """Whether a URL is on this machine, which is reached without a proxy."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def read_key(variable: str = KEY_VARIABLE) -> str | None:
    """Read a key from the environment, None where there is none. Raises ConfigError, which does not repeat it, where it
    holds characters that no header can carry."""
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{variable} holds characters that no key has; set it again")
    hold_key(key)
    return key or None


def read_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; never one for this machine itself."""
    address = urlsplit(url)
    if is_loopback(url) or proxy_bypass(address.hostname or ""):
        return None
    proxy = getproxies().get(address.scheme)
    hold_url(proxy or "")
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(
            f"{address.scheme}_proxy is not an HTTP proxy: unset it, or name the host in no_proxy"
        )
    return proxy or None


def open_session(
    connections: int, timeout: float, headers: Mapping[str, str], socket: str | None = None
) -> aiohttp.ClientSession:
    """Open a pool of so many connections, in a running event loop: over TCP, or to the path of a Unix socket.
    `timeout`: seconds of an attempt."""
    limits: dict[str, Any] = {"limit": connections, "keepalive_timeout": KEEP_ALIVE}
    if socket:
        connector: aiohttp.BaseConnector = aiohttp.UnixConnector(socket, **limits)
    else:
        connector = aiohttp.TCPConnector(**limits)
    return aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_TIMEOUT, timeout / 2)),
    )


async def exchange(
    session: aiohttp.ClientSession, method: str, url: URL | str, seconds: float, **sent: Any
) -> HttpAnswer | FailedCall:
    """Make one attempt, the reading of the answer included, in `seconds`; a redirect is not followed.

    `sent`: aiohttp's arguments `data`, `json` or `proxy`.
    """
    content = bytearray()
    try:
        async with (
            asyncio.timeout(seconds),
            session.request(method, url, allow_redirects=False, **sent) as answer,
        ):
            while chunk := await answer.content.readany():  # decompressed
                content += chunk
                if len(content) > LARGEST_REPLY:
                    answer.close()
                    return FailedCall.too_large(LARGEST_REPLY)
            return HttpAnswer(answer.status, answer.headers, bytes(content))
    except aiohttp.ConnectionTimeoutError:
        return FailedCall.unreached("nothing answers")
    except TimeoutError:
        return FailedCall.late(seconds)
    except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
        return FailedCall.unreached(_reason(error))
    except aiohttp.ClientHttpProxyError as error:
        return FailedCall.unreached(f"the proxy answers HTTP {error.status}")
    except aiohttp.ClientResponseError:
        return FailedCall("malformed_reply", "the answer is not HTTP", "possibly_paid", retry=True)
    except (aiohttp.ClientError, OSError) as error:  # after TimeoutError, which is an OSError
        return FailedCall.broken(_reason(error))


def _reason(error: Exception) -> str:
    """Describe a broken connection by the system's error message where there is one."""
    number = getattr(error, "errno", None) or 0
    if number > 0 and not isinstance(error, aiohttp.ClientSSLError):
        return os.strerror(number)
    return clean(str(error)) or type(error).__name__


class ServerChat:
    """An OpenAI-compatible chat completions server, by `MODEL@URL`.

    `subject`: `engine`, `model` and the form of requests where it is not the usual one; the URL is the `endpoint`,
    without query and route: a server may move between a run and its restart. `options.concurrency` requests are in
    flight at once, and each may take 2 x `timeout` seconds in all. Raises ConfigError where name, key or proxy cannot
    be used; nothing is sent before `complete`.
    """

    def __init__(self, name: str, options: ChatOptions) -> None:
        model, self.url = parse_endpoint(name)
        self.subject = {"engine": "server", "model": model}
        self.endpoint = base_url(self.url)
        self._options = options
        forms = ServerOptions.parse(options.engine_options)
        self.subject |= forms.subject()
        self._wire = ServerWire(model, read_key(), self.url, options=forms)
        self._proxy = read_proxy(self.url)
        self._accepted: set[str] = set()

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`. Runs an event loop of its own; `on_done` is called in its thread (`run_alone`). Raises
        ConfigError where the server refuses the key or does not know the model before its first answer, ModelCallError
        where none answers at the URL, PausedError where it stopped answering."""
        advice = "check host, port and proxy" if self._proxy else "start it, or check host and port"
        connection = Connection(self._wire, self.url, advice, self._connect, self._accepted)
        return run_calls(
            connection,
            requests,
            self._options,
            on_done,
            calls=None,
            deadline=2 * self._options.timeout,
        )

    def close(self) -> None:
        """Do nothing: connections are closed at the end of `complete`."""

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Send]:
        url = URL(self.url)
        headers = {"content-type": "application/json"}
        if self._wire.key:
            headers["authorization"] = f"Bearer {self._wire.key}"
        options = self._options
        async with open_session(options.concurrency, options.timeout, headers) as session:

            async def send(body: Mapping[str, Any], seconds: float) -> HttpAnswer | FailedCall:
                content = json.dumps(body).encode()
                return await exchange(
                    session, "POST", url, seconds, data=content, proxy=self._proxy
                )

            yield send


@dataclass(frozen=True, slots=True)
class ServerWire(OpenAIWire):
    """The wire format of a model on a server: OpenAI's, without what only OpenAI takes. Its calls cost nothing."""

    engine = "server"
    address_advice = "the URL (most end in /v1)"
    hosted = False
    url: str = ""

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.url

    @property
    def key_advice(self) -> str:  # type: ignore[override]
        return f"{'check' if self.key else 'set'} {KEY_VARIABLE}"

    def calls(self, requests: Sequence[Request]) -> Iterator[Call]:  # built when they are sent
        """Return one call for each request."""
        return (Call((index,), (request,)) for index, request in enumerate(requests))

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`: without the settings that are left to the model."""
        request = call.requests[0]
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [message.to_dict() for message in request.messages],
            "max_tokens": sampling.budget,
            **sampling.drawing(),
        }
        switches = reasoning_switch(sampling.thinking)
        if switches:  # vLLM and SGLang hand them to the template
            body["chat_template_kwargs"] = switches
        schema = request.response_schema
        if schema is not None:
            body["response_format"] = strict_format(schema.name, schema.schema())
        return self.options.applied(body, schema)

    def read(
        self, body: object, call: Call, request_id: str | None = None, seconds: float | None = None
    ) -> CallOutcome:
        """See `WireFormat.read`. A malformed answer cost nothing: the call is sent again."""
        outcome = OpenAIWire.read(self, body, call, request_id, seconds)
        if isinstance(outcome, FailedCall) and outcome.reason in ("malformed_reply", TOOL_CALL):
            return replace(outcome, retry=True)
        return outcome

    def read_error(
        self,
        status: int,
        body: object,
        headers: Mapping[str, str],
        request: Mapping[str, Any] | None = None,
    ) -> FailedCall:
        """See `WireFormat.read_error`. A rate limit is that of one call: a server has no account."""
        return replace(OpenAIWire.read_error(self, status, body, headers, request), limited=False)
