"""Limit the size of answers of hosted APIs, so that one that never ends cannot fill the memory.

It imports the transport of the SDKs, so it is imported only where a connection is opened.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator

import httpx2

LARGEST_REPLY = 16 * 2**20  # bytes: 128 choices of 32,000 tokens
# Compressed, though it was not asked for: a text of a few MB, or a thousand times as much of one letter.
LARGEST_COMPRESSED = 2**20
# What the SDKs ask for the results of batch jobs as. Those may be large: they are streamed, and bounded by the line.
BINARY = "application/binary"


class ReplyTooLarge(httpx2.TransportError):
    """An answer is larger than its bound; its connection is closed."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer is larger than {most // 2**20} MB")


def bound_reply(response: httpx2.Response) -> None:
    """Make reading the body raise ReplyTooLarge where it is too large."""
    if response.is_success and response.request.headers.get("accept") == BINARY:
        return
    plain = response.headers.get("content-encoding", "identity") == "identity"
    response.stream = _Bounded(response.stream, LARGEST_REPLY if plain else LARGEST_COMPRESSED)


class _Bounded(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A byte stream, synchronous or asynchronous, of limited length."""

    def __init__(self, stream: httpx2.AsyncByteStream | httpx2.SyncByteStream, most: int) -> None:
        self._stream, self._most = stream, most
        self._read = 0

    def _count(self, chunk: bytes) -> bytes:
        self._read += len(chunk)
        if self._read > self._most:
            raise ReplyTooLarge(self._most)
        return chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        chunks = self._stream.__aiter__()
        try:
            async for chunk in chunks:
                yield self._count(chunk)
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self._stream, httpx2.SyncByteStream)
        for chunk in self._stream:
            yield self._count(chunk)

    async def aclose(self) -> None:
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        await self._stream.aclose()

    def close(self) -> None:
        assert isinstance(self._stream, httpx2.SyncByteStream)
        self._stream.close()
