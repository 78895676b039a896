"""How a computed reply leaves the provider double: whole, in pieces, too slowly, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from aiohttp import web
from provider_faults import KEY, Refused
from provider_model import Asked

# `RequestKey` came with aiohttp 3.14.
REQUEST_ID = web.RequestKey("id", str) if hasattr(web, "RequestKey") else "id"
DRIP_SECONDS = 0.05
# Half of a reply, and what a gateway may put into it.
GARBAGE = b'{"id": "%s' % KEY.encode()


@dataclass(frozen=True, slots=True)
class Computed:
    """One request after it was checked: its fault, its reply, and the number of its charge (None: not charged)."""

    fault: str | None
    asked: Asked
    body: dict[str, Any]
    charge: int | None


async def deliver(
    request: web.Request, wire: ModuleType, computed: Computed, on_whole: Callable[[], object]
) -> web.StreamResponse:
    """Send a reply in the way of its fault. May raise Refused, as a gateway does.

    `on_whole` is called when a reply is about to go out whole to a client that is still there: not afterwards, as
    the client may look at the books the moment it has the reply. A reply that hangs is dropped after an hour.
    """
    content = json.dumps(computed.body).encode()
    headers = {wire.ID_HEADER: request[REQUEST_ID], "content-type": "application/json"}
    match computed.fault:
        case "gateway_timeout":
            raise Refused(504, "timeout_error", "The upstream did not answer in time")
        case "drop_before" | "drop_after":
            return drop(request)
        case "cut":
            return await cut(request, content, headers)
        case "drip":
            return await drip(request, content, headers)
        case "hang":
            await asyncio.sleep(3600)
            return drop(request)
        case "garbage":
            content = GARBAGE
    if request.transport is not None and not request.transport.is_closing():
        on_whole()
    return web.Response(body=content, headers=headers)


def drop(request: web.Request) -> web.Response:
    """End the connection without a word."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def cut(request: web.Request, content: bytes, headers: dict[str, str]) -> web.StreamResponse:
    """Two thirds of a body that was announced whole."""
    stream = web.StreamResponse(headers={**headers, "content-length": str(len(content))})
    await stream.prepare(request)
    await stream.write(content[: len(content) * 2 // 3])
    if request.transport is not None:
        request.transport.close()
    return stream


async def drip(request: web.Request, content: bytes, headers: dict[str, str]) -> web.StreamResponse:
    """The whole body, but a byte at a time."""
    stream = web.StreamResponse(headers={**headers, "content-length": str(len(content))})
    await stream.prepare(request)
    for byte in content:
        await stream.write(bytes([byte]))
        await asyncio.sleep(DRIP_SECONDS)
    return stream
