"""The time of a whole request: HTTP clients of the httpx family only bound the silence between two bytes.

A server that sends its head byte by byte, or `102 Processing` again and again, begins the client's timeout anew each
time, before a hook for replies is called. Here the sockets themselves count down what the request has left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

# Bytes that are sent at once: a server that takes them slowly is noticed between two of these.
_SLICE = 1 << 14


@dataclass(slots=True)
class RequestTime:
    """The time of one request, redirects and its reply's body included.

    Attributes:
        seconds: what a request of any size has.
        error: makes the error that ends the request from what happened.
        rate: bytes a second; a request whose bodies are larger than that allows has as much more time.
        moved: bytes that were sent and received.
        began: when the request began, by the monotonic clock.
    """

    seconds: float
    error: Callable[[str], Exception]
    rate: float = float("inf")
    moved: int = 0
    began: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """Seconds that are left; raises the error where there are none."""
        elapsed = time.monotonic() - self.began
        remaining = self.seconds + self.moved / self.rate - elapsed
        if remaining <= 0:
            raise self.error(f"no whole reply came in {elapsed:,.0f} seconds")
        return remaining


_running: ContextVar[RequestTime | None] = ContextVar("_running", default=None)


def running_request() -> RequestTime | None:
    """The time of the request that this thread waits for."""
    return _running.get()


@contextmanager
def counting(request: RequestTime) -> Iterator[None]:
    """Count the time of a request down in every read and write of this thread."""
    token = _running.set(request)
    try:
        yield
    finally:
        _running.reset(token)


def bound_request_time(client: Any, begin_request: Callable[[Any], RequestTime]) -> None:
    """Give each request of a client the time that `begin_request` returns for it.

    Between bytes the client's timeouts hold. A reply whose body is read later must be read under `counting`.
    """
    send = client.send

    def send_in_time(request: Any, **options: Any) -> Any:
        with counting(begin_request(request)):
            return send(request, **options)

    client.send = send_in_time
    # The sockets have no public name; without these the time is counted between parts of a body alone.
    mounts = getattr(client, "_mounts", {})
    for transport in (getattr(client, "_transport", None), *mounts.values()):
        pool = getattr(transport, "_pool", None)
        backend = getattr(pool, "_network_backend", None)
        if pool is not None and backend is not None:
            pool._network_backend = _TimedBackend(backend)


class _Wrapped:
    """What another object does, but for the methods that a subclass has."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


class _TimedBackend(_Wrapped):
    """What opens connections."""

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, **options: Any
    ) -> _TimedStream:
        return _TimedStream(
            _in_time(self._wrapped.connect_tcp, host, port, timeout=timeout, **options)
        )

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, **options: Any
    ) -> _TimedStream:
        return _TimedStream(
            _in_time(self._wrapped.connect_unix_socket, path, timeout=timeout, **options)
        )


class _TimedStream(_Wrapped):
    """A connection, used for one request after the other."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        received: bytes = _in_time(self._wrapped.read, max_bytes, timeout=timeout)
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _SLICE):
            part = buffer[start : start + _SLICE]
            _in_time(self._wrapped.write, part, timeout=timeout)
            request = running_request()
            if request is not None:
                request.moved += len(part)

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> _TimedStream:
        return _TimedStream(
            _in_time(self._wrapped.start_tls, ssl_context, server_hostname, timeout=timeout)
        )


def _in_time(act: Callable[..., Any], *words: Any, timeout: float | None, **options: Any) -> Any:
    """Act on a connection, for no longer than the timeout and what its request has left."""
    request = running_request()
    if request is None:
        return act(*words, timeout=timeout, **options)
    remaining = request.left()
    try:
        return act(
            *words, timeout=remaining if timeout is None else min(timeout, remaining), **options
        )
    except Exception:  # whatever ends it when the request has no time left, it ends for that reason
        request.left()
        raise
