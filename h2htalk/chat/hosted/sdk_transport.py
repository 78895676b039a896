"""Send calls through the official SDKs, over httpx2 with the proxies and certificates of the environment.

The SDKs supply headers, addresses and authentication. Their retries, redirects, logs and typed models are not used:
every attempt is reserved, and answers are read strictly in `openai_wire` and `anthropic_wire`. This module loads
httpx2, so it is imported only where a connection is opened.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import httpx2

from h2htalk.chat.calls import (
    CONNECT_TIMEOUT,
    LARGEST_REPLY,
    Arrived,
    FailedCall,
    broken,
    late,
    no_connection,
    too_large,
)
from h2htalk.chat.provider_errors import scrub
from h2htalk.chat.server.endpoint import is_loopback
from h2htalk.errors import ConfigError

# Compressed, though it was not asked for: a text of a few MB, or a thousand times as much of one letter.
LARGEST_COMPRESSED = 2**20
# What the SDKs ask for the results of batch jobs as. Those may be large: they are streamed, and bounded by the line.
BINARY = "application/binary"
# No compression: the size of compressed answers cannot be limited before they are unpacked.
_PLAIN = {"accept-encoding": "identity"}
KEEP_ALIVE = 15.0  # seconds: shorter than any gateway's, whose closing in the same moment would lose a call


def open_pool(url: str, concurrency: int) -> httpx2.AsyncClient:
    """Open a connection pool that follows no redirect: a reserved call goes to its own address only."""

    async def prepare(response: httpx2.Response) -> None:
        _prepare(response)

    limits = httpx2.Limits(
        max_connections=concurrency, max_keepalive_connections=concurrency, keepalive_expiry=KEEP_ALIVE
    )
    with _network_settings():
        return httpx2.AsyncClient(
            limits=limits,
            follow_redirects=False,
            trust_env=not is_loopback(url),
            headers=_PLAIN,
            event_hooks={"response": [prepare]},
        )


def open_client(url: str) -> httpx2.Client:
    """Open a connection for calls one after the other, such as those about batch jobs."""
    with _network_settings():
        return httpx2.Client(
            follow_redirects=True,
            trust_env=not is_loopback(url),
            headers=_PLAIN,
            event_hooks={"response": [_prepare]},
        )


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
        super().__init__(too_large(most).message)
        self.most = most


class _Bounded(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A byte stream, synchronous or asynchronous, of limited length."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._most = stream, most
        self._read = 0

    def _count(self, chunk: bytes) -> bytes:
        self._read += len(chunk)
        if self._read > self._most:
            raise ReplyTooLarge(self._most)
        return chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = self._stream.__aiter__()
        try:
            async for chunk in chunks:
                yield self._count(chunk)
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            yield self._count(chunk)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        self._stream.close()


@contextmanager
def _network_settings() -> Iterator[None]:
    """Turn errors of proxies and certificates into a ConfigError that quotes no address: it may hold a password."""
    try:
        yield
    except (ValueError, ImportError, OSError):
        names = "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, SSL_CERT_FILE, SSL_CERT_DIR"
        raise ConfigError(f"no connection can be set up: correct or unset what is wrong among {names}") from None


def silence_sdks() -> None:
    """Silence the logs and warnings of the SDKs and their transport, which may quote whole prompts."""
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    # The SDK warns of models that will be switched off.
    warnings.filterwarnings("ignore", r"The model .* is deprecated", DeprecationWarning)


# The SDKs put more than the key into headers: OPENAI_ORG_ID, OPENAI_PROJECT_ID, ..._CUSTOM_HEADERS. What such a
# variable holds may be secret, so it is not quoted.
_UNSENT = FailedCall(
    "connection",
    "nothing was sent: the address, or a header from the environment, holds characters that none may",
    "free",
)


async def exchange(
    post: Callable[[Any], Awaitable[Any]], seconds: float, sdk: ModuleType, key: str
) -> Arrived | FailedCall:
    """Make one attempt, the reading of its answer included, in `seconds`: a slow answer is cut off then.

    Args:
        post: sends, given the transport's timeouts, and returns the SDK's raw response.
        sdk: the SDK's module, for its errors.
    """
    # The transport's own limits only distinguish a failed connection from a missing answer.
    timeouts = httpx2.Timeout(seconds + 1, connect=min(CONNECT_TIMEOUT, seconds / 2))
    try:
        async with asyncio.timeout(seconds):
            raw = await post(timeouts)
        return _arrived(raw.http_response)
    except TimeoutError:
        return late(seconds)
    except (UnicodeEncodeError, httpx2.InvalidURL):
        return _UNSENT
    except sdk.APIStatusError as error:
        return _arrived(error.response)
    except sdk.APIConnectionError as error:
        return connection_failure(error.__cause__ or error, key)


def _arrived(response: httpx2.Response) -> Arrived:
    return Arrived(response.status_code, response.headers, response.content)


def connection_failure(error: BaseException, key: str | None) -> FailedCall:
    """Return the failed call of a broken connection: free before anything was sent, else possibly paid."""
    said = scrub(str(error), key) or type(error).__name__
    if isinstance(error, ReplyTooLarge):
        return too_large(error.most)
    if isinstance(error, httpx2.ConnectTimeout):
        return no_connection("nothing answers")
    if isinstance(error, httpx2.ConnectError | httpx2.PoolTimeout | httpx2.ProxyError):
        return no_connection(said)
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
        return _UNSENT
    if isinstance(error, httpx2.DecodingError):
        return FailedCall("malformed_reply", f"the answer cannot be decompressed: {said}", "paid")
    if isinstance(error, httpx2.TimeoutException):
        return FailedCall("timeout", "the connection was idle for too long", "possibly_paid", retry=True)
    return broken(said)
