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
from h2htalk.chat.live_calls import Connection, run_calls
from h2htalk.chat.local.chat_template import reasoning_switch
from h2htalk.chat.protocol import LARGEST_REPLY, Arrived, Call, FailedCall, Found, OnDone, Outcome, Request, Send
from h2htalk.chat.wires import OpenAIWire, clean
from h2htalk.errors import ConfigError

EXAMPLE = "server:qwen2.5@http://127.0.0.1:8000/v1"
KEY_VARIABLE = "H2HTALK_SERVER_KEY"

_ROUTE = "/chat/completions"
CONNECT_TIMEOUT = 30.0  # seconds
KEEP_ALIVE = 4.0  # seconds: uvicorn, which serves vLLM, closes a connection that was idle for 5
VERSION = r"(api-version=[A-Za-z0-9.-]{1,40})?"


def parse_endpoint(name: str) -> tuple[str, str]:
    """Split `MODEL@URL` at the last `@http://` or `@https://` (a model's name may hold `/`, `:` and `@`); return the
    model and the URL of its requests. Raises ConfigError where a part is missing, or the URL (which every run stores)
    carries a user, a password or a key."""
    at = max(name.rfind("@http://"), name.rfind("@https://"))
    model, url = name[:at], name[at + 1 :]
    if at <= 0 or not model.strip() or not model.isprintable():
        raise ConfigError(f"server needs a model and a URL, such as {EXAMPLE}")
    parts = http_parts(url, f"server:{clean(model)}", EXAMPLE, f"a key belongs in {KEY_VARIABLE}")
    return model, urlunsplit(parts._replace(path=parts.path.rstrip("/").removesuffix(_ROUTE) + _ROUTE))


def http_parts(url: str, what: str, example: str, advice: str, query: str = VERSION) -> SplitResult:
    """Split the URL of `what`, which will be stored with what it answers. Raises ConfigError, which does not repeat it,
    where HTTP cannot use it, or it holds a user, a password, a fragment, or a query other than the pattern `query`."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.port != 0 and (URL(url).host or "").encode("idna")
    except ValueError:
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise ConfigError(f"{what} has no usable URL; give one such as {example}")
    if "@" in parts.netloc or parts.fragment or not re.fullmatch(query, parts.query):
        held = f"the URL of {what} holds a user, a password, a fragment or a query"
        raise ConfigError(f"{held}, which would be stored; take it out ({advice})")
    return parts


def base_url(url: str) -> str:
    """Return which server a URL asks: scheme, host and path, without query and route."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path.rstrip("/").removesuffix(_ROUTE), "", ""))


def is_loopback(url: str) -> bool:
    """Whether a URL is on this machine, which is reached without a proxy."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def read_key(variable: str = KEY_VARIABLE) -> str | None:
    """Read a key from the environment, None where there is none. Raises ConfigError, which does not repeat it, where it
    holds characters that no header can carry."""
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not all(c.isprintable() and c != " " for c in key):
        raise ConfigError(f"{variable} holds characters that no key has; set it again")
    return key or None


def read_proxy(url: str) -> str | None:
    """The proxy that the environment names for a URL; never one for this machine itself."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(f"{parts.scheme}_proxy is not an HTTP proxy: unset it, or name the host in no_proxy")
    return proxy or None


def open_session(
    connections: int, timeout: float, headers: Mapping[str, str], socket: str | None = None
) -> aiohttp.ClientSession:
    """Open a pool of so many connections, in a running event loop: over TCP, or to the path of a Unix socket.
    `timeout`: seconds of an attempt."""
    kept: dict[str, Any] = {"limit": connections, "keepalive_timeout": KEEP_ALIVE}
    return aiohttp.ClientSession(
        connector=aiohttp.UnixConnector(socket, **kept) if socket else aiohttp.TCPConnector(**kept),
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_TIMEOUT, timeout / 2)),
    )


async def exchange(
    session: aiohttp.ClientSession, method: str, url: URL | str, seconds: float, **sent: Any
) -> Arrived | FailedCall:
    """Make one attempt, the reading of the answer included, in `seconds`; a redirect is not followed. `sent`: what
    aiohttp takes as `data`, `json` or `proxy`."""
    content = bytearray()
    try:
        async with asyncio.timeout(seconds), session.request(method, url, allow_redirects=False, **sent) as answer:
            while chunk := await answer.content.readany():  # decompressed
                content += chunk
                if len(content) > LARGEST_REPLY:
                    answer.close()
                    return FailedCall.too_large(LARGEST_REPLY)
            return Arrived(answer.status, answer.headers, bytes(content))
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
    number = 0 if isinstance(error, aiohttp.ClientSSLError) else getattr(error, "errno", None) or 0
    return os.strerror(number) if number > 0 else clean(str(error)) or type(error).__name__


class ServerChat:
    """An OpenAI-compatible chat completions server, by `MODEL@URL`.

    `subject`: `engine` and `model`; the URL is the `endpoint`, without query and route: a server may move between a run
    and its restart. `options.concurrency` requests are in flight at once; one may take 2 x `timeout` seconds in all.
    Raises ConfigError where name, key or proxy cannot be used; nothing is sent before `complete`."""

    def __init__(self, name: str, options: ChatOptions) -> None:
        model, self.url = parse_endpoint(name)
        self.subject = {"engine": "server", "model": model}
        self.endpoint = base_url(self.url)
        self._options = options
        self._wire = ServerWire(model, read_key(), self.url)
        self._proxy = read_proxy(self.url)

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`. Runs an event loop of its own; `on_done` is called in its thread (`run_alone`). Raises
        ConfigError where the server refuses the key or does not know the model before its first answer, ModelCallError
        where none answers at the URL, PausedError where it stopped answering."""
        advice = "check host, port and proxy" if self._proxy else "start it, or check host and port"
        connection = Connection(self._wire, self.url, advice, self._connect)
        return run_calls(connection, requests, self._options, on_done, calls=None, deadline=2 * self._options.timeout)

    def close(self) -> None:
        """Do nothing: connections are closed at the end of `complete`."""

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Send]:
        key, url, proxy = self._wire.key, URL(self.url), self._proxy
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        async with open_session(self._options.concurrency, self._options.timeout, headers) as session:

            async def send(body: Mapping[str, Any], seconds: float) -> Arrived | FailedCall:
                return await exchange(session, "POST", url, seconds, data=json.dumps(body).encode(), proxy=proxy)

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
        request, sampling = call.requests[0], call.requests[0].sampling
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "max_tokens": sampling.budget,
        }
        if sampling.temperature is not None:
            body |= {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
        if switches := reasoning_switch(sampling.thinking):  # vLLM and SGLang hand them to the template
            body["chat_template_kwargs"] = switches
        if (schema := request.response_schema) is not None:
            form = {"name": schema.name, "schema": schema.schema(), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    def read(self, body: object, call: Call, request_id: str | None = None, seconds: float | None = None) -> Found:
        """See `WireFormat.read`. A malformed answer cost nothing: the call is sent again."""
        found = OpenAIWire.read(self, body, call, request_id, seconds)
        return replace(found, retry=True) if isinstance(found, FailedCall) else found

    def read_error(self, status: int, body: object, headers: Mapping[str, str]) -> FailedCall:
        """See `WireFormat.read_error`. A rate limit is that of one call: a server has no account."""
        return replace(OpenAIWire.read_error(self, status, body, headers), limited=False)
