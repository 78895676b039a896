"""Connections to hosted APIs, through the proxies and certificates of the environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from h2htalk.chat.server.endpoint import is_loopback
from h2htalk.errors import ConfigError

if TYPE_CHECKING:
    import httpx2

# No compression: the size of compressed answers cannot be limited before they are unpacked.
_PLAIN = {"accept-encoding": "identity"}
KEEP_ALIVE = 15.0  # seconds: shorter than any gateway's, whose closing in the same moment would lose a call


def open_pool(url: str, concurrency: int) -> httpx2.AsyncClient:
    """Open a connection pool that follows no redirect: a reserved call goes to its own address only."""
    import httpx2

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
    import httpx2

    with _network_settings():
        return httpx2.Client(
            follow_redirects=True,
            trust_env=not is_loopback(url),
            headers=_PLAIN,
            event_hooks={"response": [_prepare]},
        )


def _prepare(response: httpx2.Response) -> None:
    """Limit the size of an answer before it is read, and decode it as UTF-8 whatever its header names: unknown charsets
    break the error reading of the SDKs."""
    from h2htalk.chat.reply_size_limit import bound_reply

    response.encoding = "utf-8"
    bound_reply(response)


@contextmanager
def _network_settings() -> Iterator[None]:
    """Turn errors of proxies and certificates into a ConfigError that quotes no address: it may hold a password."""
    try:
        yield
    except (ValueError, ImportError, OSError):
        names = "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, SSL_CERT_FILE, SSL_CERT_DIR"
        raise ConfigError(f"no connection can be set up: correct or unset what is wrong among {names}") from None
