"""A server of chat completions, and of Anthropic's messages, on the loopback interface, with faults to order.

In a test, a thread of its own:

    with LoopbackServer(faults={"http_500": 0.02, "hang": 0.005}) as server:
        open_chat(server.spec).complete(...)
        server.mend()

In a benchmark, a process of its own: `python tests/doubles/loopback.py --latency 0.05 --fault http_500=0.02`.
It prints its URL, serves until it is terminated, and answers `GET /counts` and `POST /mend` beside chat.

An item is a request body. Its hash draws the fault, so the same item fails the same way each time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from loopback_answers import FAULTS, REPLY, SPOKEN_FAULTS, Answer, completion, message

__all__ = ["FAULTS", "REPLY", "Answer", "LoopbackServer", "completion", "last_message", "message"]

GIANT_BYTES = 17 * 2**20
DRIP_SECONDS = 0.02
CHAT_ROUTE, MESSAGES_ROUTE = b"POST /v1/chat/completions ", b"POST /v1/messages "


class LoopbackServer:
    """The server in a thread of its own, as a context manager.

    Args:
        faults: fault name -> share of items that meet it, 0 to 1 (`{"unauthorized": 1.0}`: everything).
        faults_at: text in the last user message -> fault name, to order a fault for one item.
        fault_times: each item meets its fault only in its first so many requests; None: for good.
        latency: seconds before each answer.
        reply: the reply's text, or a function of (request JSON, count of this item's requests so far) that
            returns a text, an `Answer`, or the name of a fault.
    """

    def __init__(
        self,
        *,
        faults: Mapping[str, float] | None = None,
        faults_at: Mapping[str, str] | None = None,
        fault_times: int | None = None,
        latency: float = 0.0,
        reply: str | Callable[[dict[str, Any], int], str | Answer] = REPLY,
        port: int = 0,
    ) -> None:
        unknown = {*(faults or {}), *(faults_at or {}).values()} - {*FAULTS}
        if unknown:
            raise ValueError(f"unknown faults {sorted(unknown)}; choose from {', '.join(FAULTS)}")
        self.faults = dict(faults or {})
        self.faults_at = dict(faults_at or {})
        self.fault_times = fault_times
        self.latency = latency
        self.reply = reply
        self.port = port
        self.counts: Counter[bytes] = Counter()  # request body -> times it came
        self.authorizations: set[str] = set()
        self.connections = 0
        self.in_flight = 0
        self.in_flight_max = 0
        self.protocols: set[_Connection] = set()
        self._spoken = {name: answer.encode() for name, answer in SPOKEN_FAULTS.items()}
        self._fixed = Answer(completion(reply)).encode() if isinstance(reply, str) else b""
        self._fixed_message = Answer(message(reply)).encode() if isinstance(reply, str) else b""
        self.cut = Answer(completion()).encode()[:-40]  # ends before its content-length
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def spec(self) -> str:
        """What `open_chat` takes."""
        return f"server:loopback@{self.url}"

    @property
    def requests(self) -> int:
        return sum(self.counts.values())

    def counts_by_message(self) -> Counter[str]:
        """Last user message -> number of requests."""
        by_message: Counter[str] = Counter()
        for body, count in self.counts.copy().items():
            by_message[last_message(body)] += count
        return by_message

    def faults_by_message(self) -> dict[str, str | None]:
        """Last user message -> the fault that is drawn for it, of every item that came."""
        return {last_message(body): self._fault(body) for body in self.counts.copy()}

    def mend(self) -> None:
        """Switch all faults off for the requests to come."""
        self.faults, self.faults_at = {}, {}

    def decide(self, body: bytes, messages: bool = False) -> bytes | str | Answer:
        """The bytes to send for this request, or the name of a fault that is not spoken; `messages`: of that API."""
        self.counts[body] += 1
        count = self.counts[body]
        name = self._fault(body) if self.faults or self.faults_at else None
        if name is None or (self.fault_times is not None and count > self.fault_times):
            if isinstance(self.reply, str):
                return self._fixed_message if messages else self._fixed
            answer = self.reply(json.loads(body), count)
            if isinstance(answer, Answer):
                return answer if answer.delay else answer.encode()
            if answer not in FAULTS:
                return Answer((message if messages else completion)(answer)).encode()
            name = answer
        return self._spoken.get(name, name)

    def _fault(self, body: bytes) -> str | None:
        if self.faults_at:
            message = last_message(body)
            for text, name in self.faults_at.items():
                if text in message:
                    return name
        draw = int.from_bytes(hashlib.blake2b(body, digest_size=8).digest(), "big") / 2**64
        for name, share in self.faults.items():
            if draw < share:
                return name
            draw -= share
        return None

    async def serve(self, started: Callable[[], object]) -> None:
        """Serve until `stop`; `started` is called once the port is known."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listener = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024)
        self.port = listener.sockets[0].getsockname()[1]
        started()
        await self._stop.wait()
        for _ in range(5):  # a connection accepted just now becomes a protocol: Python 3.13.0 fails on a closed port
            await asyncio.sleep(0)
        listener.close()
        for protocol in tuple(self.protocols):
            protocol.transport.abort()

    def stop(self) -> None:
        """Close the port and all connections, from any thread."""
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # another thread has stopped it, and its loop is closed
                self._loop.call_soon_threadsafe(self._stop.set)
        if (thread := self._thread) is not None:
            thread.join(10)
        self._loop = self._thread = None

    def __enter__(self) -> LoopbackServer:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve(started.set)), daemon=True)
        self._thread.start()
        if not started.wait(10):
            raise RuntimeError("the loopback server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Connection(asyncio.Protocol):
    """One keep-alive connection: just enough HTTP/1.1, at little cost."""

    transport: asyncio.Transport

    def __init__(self, server: LoopbackServer) -> None:
        self.server = server
        self.buffer = b""
        self.waiting = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections += 1
        self.server.protocols.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.protocols.discard(self)
        self.server.in_flight -= self.waiting
        self.waiting = 0

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.buffer[:1].isalpha():  # TLS, say
            self.transport.write(Answer("speak HTTP", 400).encode())
            self.transport.close()
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            lower = head.lower()
            at = lower.find(b"content-length:")
            length = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
            if (at := lower.find(b"\r\nauthorization:")) >= 0:
                self.server.authorizations.add(head[at + 16 :].split(b"\r\n", 1)[0].decode().strip())
            self.respond(head, body)

    def respond(self, head: bytes, body: bytes) -> None:
        if not head.startswith((CHAT_ROUTE, MESSAGES_ROUTE)):
            self.transport.write(self._other_route(head).encode())
            return
        server = self.server
        self.waiting += 1
        server.in_flight += 1
        server.in_flight_max = max(server.in_flight_max, server.in_flight)
        answer = server.decide(body, head.startswith(MESSAGES_ROUTE))
        if isinstance(answer, Answer):
            asyncio.get_running_loop().call_later(answer.delay, self.send, answer.encode())
        elif server.latency:
            asyncio.get_running_loop().call_later(server.latency, self.send, answer)
        else:
            self.send(answer)

    def send(self, answer: bytes | str) -> None:
        if self.transport.is_closing():
            return
        if isinstance(answer, bytes):
            self.waiting -= 1
            self.server.in_flight -= 1
            self.transport.write(answer)
        elif answer == "drop":
            self.transport.abort()
        elif answer == "cut":
            self.transport.write(self.server.cut)
            self.transport.close()
        elif answer == "drip":
            self.transport.write(b"HTTP/1.1 200 -\r\ncontent-length: 1000000\r\n\r\n{")
            self.drip()
        elif answer == "giant":
            # Chunked: no content-length gives the size away.
            chunk = b"%x\r\n%s\r\n" % (2**20, b" " * 2**20)
            self.transport.write(b"HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n")
            self.transport.write(chunk * (GIANT_BYTES // 2**20) + b"0\r\n\r\n")
        # "hang": nothing is ever sent.

    def drip(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(b" ")
            asyncio.get_running_loop().call_later(DRIP_SECONDS, self.drip)

    def _other_route(self, head: bytes) -> Answer:
        if head.startswith(b"POST /mend "):
            self.server.mend()
            return Answer({"mended": True})
        if head.startswith(b"GET /counts "):
            counts = self.server.counts
            return Answer(
                {
                    "requests": self.server.requests,
                    "items": len(counts),
                    "most": max(counts.values(), default=0),
                }
            )
        return Answer({"error": {"message": "no such route"}}, 404)


def last_message(body: bytes) -> str:
    """The content of the last user message of a request body."""
    messages = json.loads(body)["messages"]
    return str(next((m["content"] for m in reversed(messages) if m["role"] == "user"), ""))


def main() -> None:
    parser = argparse.ArgumentParser(description="An OpenAI-compatible loopback server with faults to order.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=SHARE", help=", ".join(FAULTS))
    options = parser.parse_args()
    faults = {name: float(share) for name, _, share in (text.partition("=") for text in options.fault)}
    server = LoopbackServer(faults=faults, latency=options.latency, port=options.port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(lambda: print(server.url, flush=True)))


if __name__ == "__main__":
    main()
