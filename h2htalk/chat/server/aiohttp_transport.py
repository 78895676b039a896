"""Send calls over aiohttp: to OpenAI-compatible servers, and to applications under test.

The official SDK costs 1.0-1.5 ms of CPU a call, this transport about a tenth of it (docs/measurements.md).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from h2htalk.chat.protocol import (
    CONNECT_TIMEOUT,
    LARGEST_REPLY,
    Arrived,
    FailedCall,
    broken,
    late,
    no_connection,
    too_large,
)
from h2htalk.chat.provider_answers import clean

KEEP_ALIVE = 4.0  # seconds: uvicorn, which serves vLLM, closes a connection that was idle for 5


def open_session(
    connections: int, timeout: float, headers: Mapping[str, str], socket: str | None = None
) -> aiohttp.ClientSession:
    """Open a pool of so many connections, in a running event loop.

    `timeout`: of an attempt, in seconds. `socket`: the path of a Unix socket that all of them go to.
    """
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
    """Make one attempt, the reading of the answer included, in `seconds`; a redirect is not followed.

    `sent`: what aiohttp takes as `data`, `json` or `proxy`.
    """
    chunks: list[bytes] = []
    left = LARGEST_REPLY
    try:
        async with (
            asyncio.timeout(seconds),
            session.request(method, url, allow_redirects=False, **sent) as answer,
        ):
            async for chunk in answer.content.iter_any():  # decompressed
                left -= len(chunk)
                if left < 0:
                    answer.close()
                    return too_large(LARGEST_REPLY)
                chunks.append(chunk)
            return Arrived(answer.status, answer.headers, b"".join(chunks))
    except aiohttp.ConnectionTimeoutError:
        return no_connection("nothing answers")
    except TimeoutError:
        return late(seconds)
    except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
        return no_connection(_reason(error))
    except aiohttp.ClientHttpProxyError as error:
        return no_connection(f"the proxy answers HTTP {error.status}")
    except aiohttp.ClientResponseError:
        return FailedCall("malformed_reply", "the answer is not HTTP", "possibly_paid", retry=True)
    except (aiohttp.ClientError, OSError) as error:  # after TimeoutError, which is an OSError
        return broken(_reason(error))


def _reason(error: Exception) -> str:
    """Describe a broken connection by the system's error message where there is one."""
    number = getattr(error, "errno", None)
    if number and number > 0 and not isinstance(error, aiohttp.ClientSSLError):
        return os.strerror(number)
    return clean(str(error)) or type(error).__name__
