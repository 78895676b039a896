"""A server of chat completions, and of Anthropic's messages, on the loopback interface, with faults to order.

    with LoopbackServer(faults={"http_500": 0.02, "hang": 0.005}) as server:
        open_chat(server.spec).complete(...)
        server.mend()

An item is a request body. Its hash draws the fault, so the same item fails the same way each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

GIANT_BYTES = 17 * 2**20
DRIP_SECONDS = 0.02
CHAT_ROUTE, MESSAGES_ROUTE = b"POST /v1/chat/completions ", b"POST /v1/messages "
REPLY = "That sounds like a long day. I am here, so tell me what stayed with you the most?"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. `body` may be text, bytes or anything that JSON can hold."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds

    def encode(self) -> bytes:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {self.status} -", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def completion(text: str | None = REPLY, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """The JSON of a chat completion; `message` adds fields such as `refusal` or `reasoning_content`."""
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "model": "loopback",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 120, "completion_tokens": 24, "total_tokens": 144},
    }


def message(text: str = REPLY, **changed: Any) -> dict[str, Any]:
    """The JSON of an answer of Anthropic's messages API."""
    return {
        "id": "msg_loopback",
        "type": "message",
        "role": "assistant",
        "model": "loopback",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 120, "output_tokens": 24},
    } | changed


def _refuse(status: int, message: str, code: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer({"error": {"message": message, "code": code}}, status, named)


# What the server says for each fault. The others (hang, drop, cut, drip, giant) are things it does.
SPOKEN_FAULTS: dict[str, Answer] = {
    "http_500": _refuse(500, "the engine fell over", "internal_error"),
    "rate_limited": _refuse(429, "slow down", "rate_limit_exceeded", retry_after="1"),
    "malformed": Answer('{"choices": [{"message": {"content": "cut o'),
    "unauthorized": _refuse(401, "Incorrect API key provided", "invalid_api_key"),
    "unknown_model": _refuse(404, "The model does not exist", "model_not_found"),
    "context_length": _refuse(400, "This model's maximum context length is 2048 tokens", "context_length_exceeded"),
}
FAULTS = (*SPOKEN_FAULTS, "hang", "drop", "cut", "drip", "giant")


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
            self.transport.write(Answer({"error": {"message": "no such route"}}, 404).encode())
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


def last_message(body: bytes) -> str:
    """The content of the last user message of a request body."""
    messages = json.loads(body)["messages"]
    return str(next((m["content"] for m in reversed(messages) if m["role"] == "user"), ""))
