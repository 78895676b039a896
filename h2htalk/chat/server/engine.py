"""`server:MODEL@URL`: any OpenAI-compatible server, over aiohttp.

The official SDK costs 1.0-1.5 ms of CPU a call, this engine about a tenth of it (docs/measurements.md). A fixed number
of workers takes requests from one iterator, over one connection pool.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import aiohttp
from yarl import URL

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.circuit_breaker import PAUSE_AFTER_TIMEOUT, CircuitBreaker
from h2htalk.chat.event_loop import run_all, run_alone
from h2htalk.chat.protocol import OnDone, Outcome, Reply, Request
from h2htalk.chat.server.endpoint import KEY_VARIABLE, base_url, parse_endpoint, read_key, read_proxy
from h2htalk.chat.server.wire import (
    FailedAttempt,
    clean,
    read_error,
    read_reply,
    request_body,
    wait_before_retry,
)
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, ModelCallError

LARGEST_REPLY = 8 * 2**20  # bytes
CONNECT_TIMEOUT = 30.0  # seconds
KEEP_ALIVE = 4.0  # seconds: uvicorn, which serves vLLM, closes a connection that was idle for 5
SHORTEST_TRY = 0.1  # of `timeout`: a try with less time left would only hide why the one before it failed


@dataclass(slots=True)
class _Batch:
    """One call of `complete`, shared by its workers."""

    session: aiohttp.ClientSession
    todo: Iterator[tuple[int, Request]]
    outcomes: list[Outcome | None]
    on_done: OnDone | None
    breaker: CircuitBreaker
    answered: bool = False  # the server has answered one request: later failures concern single items


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
        self._url = URL(self._endpoint.url)
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
        """See `Chat.complete`. Runs an event loop of its own; `on_done` is called in this thread.

        Raises:
            ConfigError: before its first answer the server refuses the key or does not know the model, or
                this is called inside a running event loop.
            ModelCallError: no server answers at the URL; a `PausedError` where it stopped answering.
        """
        return run_alone(lambda: self._complete(requests, on_done))

    def close(self) -> None:
        """Do nothing: connections are closed at the end of `complete`."""

    async def _complete(self, requests: Sequence[Request], on_done: OnDone | None) -> list[Outcome]:
        if not requests:
            return []
        concurrency, timeout = self._options.concurrency, self._options.timeout
        headers = {"content-type": "application/json"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=concurrency, keepalive_timeout=KEEP_ALIVE),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_TIMEOUT, timeout / 2)),
        ) as session:
            workers = min(concurrency, len(requests))
            breaker = CircuitBreaker(self.url, workers)
            batch = _Batch(session, iter(enumerate(requests)), [None] * len(requests), on_done, breaker)
            await run_all([asyncio.create_task(self._work(batch)) for _ in range(workers)])
        return [outcome for outcome in batch.outcomes if outcome is not None]

    async def _work(self, batch: _Batch) -> None:
        for index, request in batch.todo:
            outcome = await self._ask(batch, request)
            batch.outcomes[index] = outcome
            if batch.on_done is not None:
                try:
                    batch.on_done(index, outcome)
                except BaseException:
                    batch.on_done = None  # not called for requests that end before the workers are cancelled
                    raise
            if isinstance(outcome, Failure):
                self._count(batch, outcome.reason, outcome.message, given_up=True)

    async def _ask(self, batch: _Batch, request: Request) -> Outcome:
        """Send one request with its retries, in 2 x `timeout` seconds at most: time for two timeouts."""
        body = request_body(self._endpoint.model, request)
        clock, timeout = asyncio.get_running_loop().time, self._options.timeout
        deadline = clock() + 2 * timeout
        tries = 0
        while True:
            tries += 1
            found = await self._try(batch.session, body, min(timeout, deadline - clock()))
            if isinstance(found, Reply):
                batch.answered = True
                batch.breaker.answered()
                return found
            if not batch.answered:
                self._raise_if_hopeless(found)
            self._count(batch, found.reason, found.message, given_up=False)
            timed_out = found.reason == "timeout"
            wait = PAUSE_AFTER_TIMEOUT * timeout if timed_out else wait_before_retry(found, tries)
            if not found.retry or tries >= self._options.attempts or clock() + wait + SHORTEST_TRY * timeout > deadline:
                return Failure(found.reason, found.message, tries)
            await asyncio.sleep(wait)

    def _count(self, batch: _Batch, reason: str, message: str, given_up: bool) -> None:
        """Raise PausedError where too many calls in a row failed."""
        if (paused := batch.breaker.failed(reason, message, given_up)) is not None:
            raise paused

    async def _try(self, session: aiohttp.ClientSession, body: bytes, seconds: float) -> Reply | FailedAttempt:
        """Make one attempt, the reading of the body included, in `seconds`."""
        try:
            async with (
                asyncio.timeout(seconds),
                session.post(self._url, data=body, allow_redirects=False, proxy=self._proxy) as answer,
            ):
                content = await _read_body(answer)
        except aiohttp.ConnectionTimeoutError:
            return FailedAttempt("connection", "no connection: nothing answers", True, reached=False)
        except TimeoutError:
            return FailedAttempt("timeout", f"no complete answer within {seconds:.3g} s", True)
        except aiohttp.ClientConnectorError as error:
            return FailedAttempt("connection", f"no connection: {_reason(error)}", True, reached=False)
        except aiohttp.ClientHttpProxyError as error:
            return FailedAttempt("connection", f"the proxy answers HTTP {error.status}", True, reached=False)
        except aiohttp.ClientResponseError:
            return FailedAttempt("malformed_reply", "the answer is not HTTP", True)
        except (aiohttp.ClientError, OSError) as error:  # after TimeoutError, which is an OSError
            return FailedAttempt("connection", f"the connection broke: {_reason(error)}", True)
        if content is None:
            what = f"the reply is larger than {LARGEST_REPLY // 2**20} MB"
            return FailedAttempt("malformed_reply", what, False)
        if answer.status != 200:
            return read_error(answer.status, answer.headers, content, self._key)
        return read_reply(content, answer.headers.get("x-request-id"), self._key)

    def _raise_if_hopeless(self, failed: FailedAttempt) -> None:
        """Raise, before the first answer, for a failure that all requests would meet."""
        url, model = self._endpoint.url, self._endpoint.model
        if not failed.reached:
            what = "check host, port and proxy" if self._proxy else "start it, or check host and port"
            raise ModelCallError(f"no server answers at {url} ({failed.message}): {what}")
        if failed.reason == "unauthorized":
            what = "check" if self._key else "set"
            raise ConfigError(f"{url} refused the call (HTTP {failed.status}): {what} {KEY_VARIABLE}")
        if failed.reason == "not_found":
            raise ConfigError(
                f"{url} knows no model {model!r} ({failed.message}): check the model's name, "
                "and the URL (most end in /v1)"
            )
        if failed.status is not None and 300 <= failed.status < 400:
            raise ConfigError(f"{url} redirects (HTTP {failed.status}), which is not followed: give the final URL")


async def _read_body(answer: aiohttp.ClientResponse) -> bytes | None:
    """The whole body, decompressed; None when it is larger than LARGEST_REPLY."""
    chunks: list[bytes] = []
    left = LARGEST_REPLY
    async for chunk in answer.content.iter_any():
        left -= len(chunk)
        if left < 0:
            answer.close()
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _reason(error: Exception) -> str:
    """Describe a broken connection by the system's error message where there is one."""
    number = getattr(error, "errno", None)
    if number and number > 0 and not isinstance(error, aiohttp.ClientSSLError):
        return os.strerror(number)
    return clean(str(error)) or type(error).__name__
