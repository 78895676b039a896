"""Replies of the Hub, in bounded memory and time: its client waits for as long as a server sends anything.

A server may drip a byte now and then, send without an end, link its pages to each other, or ask for a wait of years.
The same bounds hold wherever the client of this process reads, on the way of redirects too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from h2htalk.data.bounded.bounds import DOWNLOAD, LISTING, REPLY
from h2htalk.data.bounded.request_time import (
    RequestTime,
    bound_request_time,
    counting,
    running_request,
)
from h2htalk.errors import HubError, quoted

# Seconds for a request of any size with its reply: a Hub answers in seconds, a commit of many files takes it a minute.
LONGEST_REPLY = 600.0
# A larger body may take as long as at this rate, in bytes a second: a slow line has a hundred times as much.
SLOWEST = 10_000
# Seconds that a server may ask to wait: limits of a Hub are counted anew every five minutes.
LONGEST_WAIT = 900
# Replies that were not asked to be compressed: a text of a few MB, or a thousand times as much of one letter.
COMPRESSED_SHARE = 1000
ENTRIES_A_PAGE = 100  # a Hub lists ten times as many
# A tree may be listed several times in one command.
SAME_PAGE = 20
# Of a server that has no requests left for us: `"api"; r=0; t=55`.
_RESET = re.compile(r"\br\s*=\s*0+\s*;\s*t\s*=\s*(\d+)", re.ASCII)
_SECONDS = re.compile(r"\s*(\d+)\s*", re.ASCII)


class ReplyBounds:
    """The hook of a client that bounds its replies; `begin` starts a command's count of pages."""

    def __init__(self) -> None:
        self._pages: Counter[str] = Counter()

    def begin(self) -> None:
        """Count pages anew."""
        self._pages = Counter()

    def __call__(self, response: Any) -> None:
        """Bound a reply whose head has come and whose body has not. Raises HubError."""
        where = f"{response.request.method} {response.url.copy_with(query=None)}"
        self._check_wait(response, where)
        self._check_page(response, where)
        bound = REPLY if "/api/" in response.url.path else DOWNLOAD
        most = bound.value
        too_large = bound.message("a reply")
        if response.headers.get("content-encoding", "identity") != "identity":
            most //= COMPRESSED_SHARE
            advice = f"where that is right, set {bound.variable}={4 * bound.value}"
            too_large = f"a compressed reply, which was not asked for, of more than {most:,} bytes; {advice}"
        request = running_request() or request_time(response.request)
        response.stream = _bounded_stream(response.stream, most, f"{where}: {too_large}", request)

    def _check_wait(self, response: Any, where: str) -> None:
        """Leave the client no wait to read but one that is short, in the only form that is read here."""
        if response.status_code < 400:
            return
        headers = response.headers
        waits = _RESET.findall(headers.get("ratelimit", ""))
        after = _SECONDS.fullmatch(headers.get("retry-after", ""))
        if after is not None:
            waits.append(after[1])
        for name in ("ratelimit", "retry-after"):
            headers.pop(name, None)
        if not waits:
            return
        # A number of thousands of digits is not read.
        significant = [digits.lstrip("0") or "0" for digits in waits]
        seconds = max(significant, key=lambda digits: (len(digits), digits))
        if len(seconds) > 9 or int(seconds) > LONGEST_WAIT:
            raise HubError(
                f"{where}: the server asks to wait {seconds[:20]} seconds; run the same command later"
            )
        headers["retry-after"] = seconds

    def _check_page(self, response: Any, where: str) -> None:
        following = response.links.get("next", {}).get("url")
        if following is None:
            return
        self._pages[str(following)] += 1
        if self._pages[str(following)] > SAME_PAGE or str(following) == str(response.url):
            raise HubError(
                f"{where}: its pages lead to each other ({quoted(following)}); is HF_ENDPOINT a Hub?"
            )
        if len(self._pages) > LISTING.value // ENTRIES_A_PAGE:
            raise HubError(f"{where}: {LISTING.message('a list')}")


def request_time(request: Any) -> RequestTime:
    """The time that a request of the Hub's client has."""
    where = f"{request.method} {request.url.copy_with(query=None)}"

    def error(problem: str) -> HubError:
        return HubError(
            f"{where}: {problem}; check HF_ENDPOINT and the network, and run the same command again"
        )

    return RequestTime(seconds=LONGEST_REPLY, rate=SLOWEST, error=error)


def _bounded_stream(stream: Any, most: int, too_large: str, request: RequestTime) -> Any:
    """The stream of a reply that ends in HubError where it is too large, or takes too long."""
    # Of httpx or httpx2, by the client's version.
    base = next(kind for kind in type(stream).__mro__ if kind.__name__ == "SyncByteStream")

    class BoundedStream(base):  # type: ignore[misc,valid-type]
        def __iter__(self) -> Iterator[bytes]:
            size = 0
            chunks = iter(stream)
            while True:
                with counting(request):
                    chunk = next(chunks, None)
                if chunk is None:
                    return
                size += len(chunk)
                if size > most:
                    raise HubError(too_large)
                request.moved += len(chunk)
                request.left()
                yield chunk

        def close(self) -> None:
            stream.close()

    return BoundedStream()


BOUNDS = ReplyBounds()


def bound_replies(client: Any) -> Any:
    """Bound the replies of a client, once; return it."""
    hooks = client.event_hooks
    if BOUNDS not in hooks["response"]:
        client.event_hooks = {**hooks, "response": [BOUNDS, *hooks["response"]]}
        client.headers["accept-encoding"] = "identity"
        bound_request_time(client, request_time)
    return client
