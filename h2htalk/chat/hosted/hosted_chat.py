"""`openai:MODEL` and `anthropic:MODEL`, live or as batch jobs, through the official SDKs over httpx2.

The SDKs supply headers, addresses and authentication. Their retries, redirects, logs and typed models are not used:
every attempt is reserved, and answers are read strictly by the wire formats.
"""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from hashlib import sha256
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2

from h2htalk.chat.anthropic_wire import AnthropicWire
from h2htalk.chat.batch.batch_runner import BatchRun
from h2htalk.chat.batch.job_apis import AnthropicJobs, JobsApi, OpenAIJobs
from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.error_bodies import clean
from h2htalk.chat.live_calls import Connection, run_calls
from h2htalk.chat.openai_wire import OpenAIWire
from h2htalk.chat.protocol import (
    LARGEST_REPLY,
    FailedCall,
    HttpAnswer,
    OnDone,
    Outcome,
    Request,
    Send,
)
from h2htalk.chat.server import CONNECT_TIMEOUT, base_url, http_parts, is_loopback, read_key
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.stage_calls import StageCalls
from h2htalk.chat.wire_formats import WireFormat
from h2htalk.chat.wire_options import AnthropicOptions, OpenAIOptions, WireOptions
from h2htalk.errors import ConfigError

# Compressed, though it was not asked for: a text of a few MB, or a thousand times as much of one letter.
LARGEST_COMPRESSED = 2**20
# What the SDKs ask for the results of batch jobs as. Those may be large: they are streamed, and bounded by the line.
BINARY = "application/binary"
KEEP_ALIVE = (
    15.0  # seconds: shorter than any gateway's, whose closing in the same moment would lose a call
)
# The SDKs put more than the key into headers: OPENAI_ORG_ID, OPENAI_PROJECT_ID, ..._CUSTOM_HEADERS. What such a
# variable holds may be secret, so it is not quoted.
_STRANGE = "nothing was sent: the address, or a header from the environment, holds characters that none may"
_UNSENT = FailedCall("connection", _STRANGE, "free")


class HostedChat:
    """A model of a hosted API. Every call is reserved in `ChatOptions.calls` before it is sent.

    Attributes:
        wire: its bodies, and the engine's name, after which the variables of key and address are named.
        forms: its engine options.
        module: the module of its SDK.
        client: the SDK's class; the asynchronous one begins with `Async`.
        create: the client's method that sends a call, as a path of attributes.
        example: one of its models, for messages.
    """

    wire: ClassVar[type[WireFormat]]
    jobs: ClassVar[type[JobsApi]]
    forms: ClassVar[type[WireOptions]]
    module: ClassVar[str]
    url: ClassVar[str]
    client: ClassVar[str]
    create: ClassVar[str]
    example: ClassVar[str]
    client_options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, name: str, options: ChatOptions) -> None:
        """Check name, key and address; nothing is sent before `complete`. Raises ConfigError where the name, or the key
        or address in the environment, cannot be used; no message repeats the key."""
        if not name or not name.isprintable() or " " in name:
            example = f"{self.wire.engine}:{self.example}"
            raise ConfigError(f"{self.wire.engine}: needs the name of a model, such as {example}")
        self._name = name
        self._options = options
        self._key, self._url = self.read_environment()
        self._forms = self.forms.parse(options.engine_options)
        self._wire = self.wire(name, self._key, options=self._forms)
        self._local = is_loopback(self._url)
        self._accepted: set[str] = set()

    @classmethod
    def address(cls) -> str:
        """Return the address that the environment names, else the provider's."""
        return os.environ.get(cls.variable("BASE_URL"), "").strip() or cls.url

    @classmethod
    def variable(cls, name: str) -> str:
        """Return the name of a variable of the environment, such as OPENAI_API_KEY for `API_KEY`."""
        return f"{cls.wire.engine.upper()}_{name}"

    @classmethod
    def read_environment(cls) -> tuple[str, str]:
        """Read the key and the address, else the provider's; raises ConfigError, which repeats neither."""
        key_variable = cls.variable("API_KEY")
        url_variable = cls.variable("BASE_URL")
        key = read_key(key_variable)
        if key is None:
            raise ConfigError(f"{cls.wire.engine}: needs a key: set {key_variable}")
        url = cls.address()
        http_parts(url, url_variable, cls.url, f"a key belongs in {key_variable}")
        try:
            httpx2.URL(url)  # is stricter about what a host may be called
        except httpx2.InvalidURL:
            raise ConfigError(
                f"{url_variable} has no usable URL; give one such as {cls.url}"
            ) from None
        return key, url

    @classmethod
    def open_client(cls, key: str, url: str, http_client: Any = None) -> Any:
        """Return the SDK's client over a connection, asynchronous where that is; None: for calls one after another."""
        # Their logs and warnings may quote whole prompts; one warns of models that will be switched off.
        for name in ("openai", "anthropic", "httpx2", "httpcore2"):
            logger = logging.getLogger(name)
            logger.propagate = False
            if not logger.handlers:
                logger.addHandler(logging.NullHandler())
        warnings.filterwarnings("ignore", r"The model .* is deprecated", DeprecationWarning)
        name = cls.client
        if isinstance(http_client, httpx2.AsyncClient):
            name = f"Async{name}"
        client_class = getattr(import_module(cls.module), name)
        address = urlsplit(url)
        return client_class(
            api_key=key,
            base_url=urlunsplit(address._replace(query="")),
            default_query=dict(parse_qsl(address.query, keep_blank_values=True)),
            max_retries=0,  # every attempt is reserved
            http_client=http_client or open_connection(url),
            **cls.client_options,
        )

    @property
    def subject(self) -> Mapping[str, str]:
        """`engine`, `model`, and the form of requests where it is not the usual one."""
        return {"engine": self.wire.engine, "model": self._name, **self._forms.subject()}

    @property
    def endpoint(self) -> str:
        """The API's URL. A path that is not the provider's may hold something secret: its hash stands for it."""
        address = urlsplit(base_url(self._url))
        path = address.path
        if path not in ("", urlsplit(self.url).path):
            path = f"/sha256:{sha256(path.encode()).hexdigest()[:12]}"
        return f"{address.scheme}://{address.netloc}{path}"

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`; live in `run_calls`, with `ChatOptions.batch` in a `BatchRun`."""
        options = self._options
        calls = options.calls or StageCalls(CallStore(), "", self._wire.model)
        if not options.batch:
            address = urlsplit(self._url)  # whose path may hold something secret
            connection = Connection(
                wire=self._wire,
                address=f"{address.scheme}://{address.netloc}",
                advice=f"check the connection and its proxy, or {self.variable('BASE_URL')}",
                connect=self._connect,
                accepted=self._accepted,
            )
            return run_calls(
                connection, requests, options, on_done, calls=calls, deadline=options.deadline
            )
        with self.open_client(self._key, self._url) as client:
            # Without requests too: open jobs are collected and settled.
            jobs = self.jobs(client, self._wire, connection_failure)
            return BatchRun(jobs, self._wire, requests, options, calls, on_done).run()

    def close(self) -> None:
        """Do nothing: connections are closed at the end of `complete`."""

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Send]:
        sdk = import_module(self.module)
        key = self._key
        concurrency = self._options.concurrency
        limits = httpx2.Limits(
            max_connections=concurrency,
            max_keepalive_connections=concurrency,
            keepalive_expiry=KEEP_ALIVE,
        )

        async def prepare(response: httpx2.Response) -> None:
            _prepare(response)

        with _network_settings(self._local) as settings:
            pool = httpx2.AsyncClient(
                limits=limits, event_hooks={"response": [prepare]}, **settings
            )
        async with pool:
            create = attrgetter(self.create)(self.open_client(key, self._url, pool))

            async def send(body: Mapping[str, Any], seconds: float) -> HttpAnswer | FailedCall:
                # The transport's own limits only distinguish a failed connection from a missing answer.
                limits = httpx2.Timeout(seconds + 1, connect=min(CONNECT_TIMEOUT, seconds / 2))
                try:
                    async with asyncio.timeout(seconds):  # a slow answer is cut off
                        response = (await create(**body, timeout=limits)).http_response
                except TimeoutError:
                    return FailedCall.late(seconds)
                except (UnicodeEncodeError, httpx2.InvalidURL):
                    return _UNSENT
                except sdk.APIStatusError as error:
                    response = error.response
                except sdk.APIConnectionError as error:
                    return connection_failure(error.__cause__ or error, key)
                return HttpAnswer(response.status_code, response.headers, response.content)

            yield send


class OpenAIChat(HostedChat):
    """An OpenAI model, by chat completions."""

    wire = OpenAIWire
    jobs = OpenAIJobs
    forms = OpenAIOptions
    module = "openai"
    url = "https://api.openai.com/v1"
    client = "OpenAI"
    create = "chat.completions.with_raw_response.create"
    example = "gpt-4o"


class AnthropicChat(HostedChat):
    """An Anthropic model, by the messages API, which takes no temperature, top_p or seed."""

    wire = AnthropicWire
    jobs = AnthropicJobs
    forms = AnthropicOptions
    module = "anthropic"
    url = "https://api.anthropic.com"
    client = "Anthropic"
    create = "messages.with_raw_response.create"
    example = "claude-sonnet-5-5"
    client_options: ClassVar[Mapping[str, Any]] = {"open_telemetry": False}


# --- The connection ---------------------------------------------------------------------------------------------


def open_connection(url: str) -> httpx2.Client:
    """Open a connection for calls one after the other, such as those about batch jobs."""
    with _network_settings(is_loopback(url)) as settings:
        return httpx2.Client(event_hooks={"response": [_prepare]}, **settings)


@contextmanager
def _network_settings(local: bool) -> Iterator[Mapping[str, Any]]:
    """Give a client's settings. No redirect is followed: calls, and the key, go to their own address only. Errors of
    proxies and certificates become a ConfigError that quotes no address: it may hold a password."""
    # No compression: the size of compressed answers cannot be limited before they are unpacked.
    plain = {"accept-encoding": "identity"}
    try:
        yield {"trust_env": not local, "headers": plain, "follow_redirects": False}
    except (ValueError, ImportError, OSError):
        names = "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, SSL_CERT_FILE, SSL_CERT_DIR"
        raise ConfigError(
            f"no connection can be set up: correct or unset what is wrong among {names}"
        ) from None


def _prepare(response: httpx2.Response) -> None:
    """Limit the size of an answer before it is read, and decode it as UTF-8 whatever its header names: unknown charsets
    break the error reading of the SDKs. Results of batch jobs are not limited."""
    response.encoding = "utf-8"
    if not (response.is_success and response.request.headers.get("accept") == BINARY):
        plain = response.headers.get("content-encoding", "identity") == "identity"
        response.stream = _Bounded(response.stream, LARGEST_REPLY if plain else LARGEST_COMPRESSED)


class ReplyTooLarge(httpx2.TransportError):
    """An answer is larger than its bound; its connection is closed."""

    def __init__(self, most: int) -> None:
        super().__init__(FailedCall.too_large(most).message)
        self.most = most


class _Bounded(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A byte stream, synchronous or asynchronous, of limited length."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._most = most
        self._size = 0

    def _count(self, chunk: bytes) -> bytes:
        self._size += len(chunk)
        if self._size > self._most:
            raise ReplyTooLarge(self._most)
        return chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._stream.__aiter__()) as chunks:
            async for chunk in chunks:
                yield self._count(chunk)

    def __iter__(self) -> Iterator[bytes]:
        return map(self._count, self._stream)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        self._stream.close()


def connection_failure(error: BaseException, key: str | None) -> FailedCall:
    """Return the failed call of a broken connection: free before anything was sent, else possibly paid."""
    why = clean(str(error), key) or type(error).__name__
    match error:
        case ReplyTooLarge():
            return FailedCall.too_large(error.most)
        case httpx2.ConnectTimeout():
            return FailedCall.unreached("nothing answers")
        case httpx2.ConnectError() | httpx2.PoolTimeout() | httpx2.ProxyError():
            return FailedCall.unreached(why)
        case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            return _UNSENT
        case httpx2.DecodingError():
            return FailedCall(
                "malformed_reply", f"the answer cannot be decompressed: {why}", "paid"
            )
        case httpx2.TimeoutException():
            return FailedCall(
                "timeout", "the connection was idle for too long", "possibly_paid", retry=True
            )
    return FailedCall.broken(why)
