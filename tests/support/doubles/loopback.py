"""Servers on the loopback interface: just enough HTTP at little cost, chat completions with faults to order.

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
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email import message_from_string
from email.message import Message
from typing import Any, Self

GIANT_MEGABYTES = 17
CHAT_ROUTE, MESSAGES_ROUTE = b"POST /v1/chat/completions ", b"POST /v1/messages "
REPLY = "That sounds like a long day. I am here, so tell me what stayed with you the most?"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. `body` may be text, bytes or anything that JSON can hold.

    `delay`: seconds before it. `share`: of its bytes that are sent, before the connection ends where some are missing.
    `sent`: called when it goes out.
    """

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    share: float = 1.0
    sent: Callable[[], object] | None = None

    def encode(self) -> bytes:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        headers = dict(self.headers)
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"content-type": "application/json", **headers}
        lines = [f"HTTP/1.1 {self.status} -", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def completion(
    text: str | None = REPLY, finish_reason: str = "stop", **message: Any
) -> dict[str, Any]:
    """The JSON of a chat completion; `message` adds fields such as `refusal` or `reasoning_content`."""
    said = {"role": "assistant", "content": text, **message}
    choices = [{"index": 0, "message": said, "finish_reason": finish_reason}]
    usage = {"prompt_tokens": 120, "completion_tokens": 24, "total_tokens": 144}
    named = {"id": "chatcmpl-loopback", "object": "chat.completion", "model": "loopback"}
    return {**named, "choices": choices, "usage": usage}


def message(text: str = REPLY, **changed: Any) -> dict[str, Any]:
    """The JSON of an answer of Anthropic's messages API."""
    named = {"id": "msg_loopback", "type": "message", "role": "assistant", "model": "loopback"}
    said = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    return {**named, **said, "usage": {"input_tokens": 120, "output_tokens": 24}, **changed}


# What is sent at first, and then again and again.
DRIPS = {
    "drip": (b"HTTP/1.1 200 -\r\ncontent-length: 1000000\r\n\r\n{", b" "),
    "drip head": (b"HTTP/1.1 200 -\r\nx-a: ", b"a"),
    "drip 102": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "drip chunk": (b"HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n1;", b"a"),
}


SETTLE = b"GET /settle"


class LoopbackHttp:
    """A server in a thread of its own, as a context manager; a double says in `reply_to` what it answers.

    `latency`: seconds before each answer.
    """

    def __init__(self, latency: float = 0.0) -> None:
        self.latency = latency
        self.port = self.connections = self.in_flight = self.in_flight_max = 0
        self.protocols: set[_Connection] = set()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reply_to(self, head: bytes, body: bytes) -> bytes | Answer | str:
        """Answer a request by the bytes to send, an answer, or the name of something to do (`_Connection.do`)."""
        raise NotImplementedError

    async def listen(self, started: Callable[[], object]) -> None:
        """Serve until `stop`; `started` is called once the port is known."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listener = await self._loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024
        )
        self.port = listener.sockets[0].getsockname()[1]
        started()
        await self._stop.wait()
        for _ in range(
            5
        ):  # a connection accepted just now becomes a protocol: Python 3.13.0 fails on a closed port
            await asyncio.sleep(0)
        listener.close()
        for protocol in tuple(self.protocols):
            protocol.transport.abort()

    def stop(self) -> None:
        """Close the port and all connections, from any thread."""
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(
                RuntimeError
            ):  # another thread has stopped it, and its loop is closed
                self._loop.call_soon_threadsafe(self._stop.set)
        if (thread := self._thread) is not None:
            thread.join(10)
        self._loop = self._thread = None

    def settle(self) -> None:
        """Wait until every request of clients that are gone was read: one that was killed leaves some in the queue."""
        # Connections are accepted in their order, so those before this one are known once it is answered.
        with socket.create_connection(("127.0.0.1", self.port), timeout=100) as connection:
            connection.sendall(SETTLE + b" HTTP/1.1\r\n\r\n")
            assert connection.recv(1)
        deadline = time.monotonic() + 100
        while self.protocols:
            assert time.monotonic() < deadline, "a client is still connected"
            time.sleep(0.01)

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self.listen(started.set)), daemon=True
        )
        self._thread.start()
        assert started.wait(100), "the loopback server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class HttpServer(LoopbackHttp):
    """A server for doubles of services, which say in `serve` what they answer."""

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        """Answer a request, or name something to do (`_Connection.do`)."""
        raise NotImplementedError

    def reply_to(self, head: bytes, body: bytes) -> bytes | Answer | str:
        line, _, headers = head.decode().partition("\r\n")
        method, target, _ = line.split(" ")
        answer = self.serve(method, target, message_from_string(headers), body)
        if method == "HEAD" and isinstance(answer, Answer):
            return answer.encode().partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        return answer


class _Connection(asyncio.Protocol):
    """One keep-alive connection."""

    transport: asyncio.Transport

    def __init__(self, server: LoopbackHttp) -> None:
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
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            length = int(header(head, b"content-length") or 0)
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = (
                self.buffer[end + 4 : end + 4 + length],
                self.buffer[end + 4 + length :],
            )
            server = self.server
            if head.startswith(SETTLE):
                self.transport.write(Answer({}).encode())
                continue
            self.waiting += 1
            server.in_flight += 1
            server.in_flight_max = max(server.in_flight_max, server.in_flight)
            answer = server.reply_to(head, body)
            if delay := (answer.delay if isinstance(answer, Answer) else 0) or server.latency:
                asyncio.get_running_loop().call_later(delay, self.send, answer)
            else:
                self.send(answer)

    def send(self, answer: bytes | Answer | str) -> None:
        if self.transport.is_closing():
            return
        if isinstance(answer, str):
            self.do(answer)
            return
        self.waiting -= 1
        self.server.in_flight -= 1
        if isinstance(answer, bytes):
            self.transport.write(answer)
            return
        if (
            answer.sent is not None
        ):  # before it goes out: the client may ask what happened the moment it has it
            answer.sent()
        whole = answer.encode()
        self.transport.write(whole[: int(len(whole) * answer.share)])
        if answer.share < 1:
            self.transport.close()

    def do(self, fault: str) -> None:
        """`drop` the connection, `drip` an answer without end, send a `giant` one, or nothing (`hang`).

        What drips is a body, or before it a head (`drip head`), heads of `102 Processing` (`drip 102`), or the size of
        a chunk (`drip chunk`).
        """
        if fault == "drop":
            self.transport.abort()
        elif fault in DRIPS:
            first, again = DRIPS[fault]
            self.transport.write(first)
            self.drip(again)
        elif fault == "giant":
            chunk = b"100000\r\n%s\r\n" % (b" " * 2**20)  # no content-length gives the size away
            self.transport.write(b"HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n")
            self.transport.write(chunk * GIANT_MEGABYTES + b"0\r\n\r\n")

    def drip(self, again: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(again)
            asyncio.get_running_loop().call_later(0.02, self.drip, again)


def header(head: bytes, name: bytes) -> str:
    """A header of a request; empty where there is none."""
    at = head.lower().find(b"\r\n" + name + b":")
    return head[at + len(name) + 3 :].split(b"\r\n", 1)[0].decode().strip() if at >= 0 else ""


def _refuse(status: int, message: str, code: str) -> Answer:
    return Answer({"error": {"message": message, "code": code}}, status)


# What the server says for each fault; the others are things it does.
SPOKEN_FAULTS: dict[str, Answer] = {
    "http_500": _refuse(500, "the engine fell over", "internal_error"),
    "unauthorized": _refuse(401, "Incorrect API key provided", "invalid_api_key"),
    "no_credit": _refuse(402, "The account has no credit left", "insufficient_quota"),
    "context_length": _refuse(
        400, "This model's maximum context length is 2048 tokens", "context_length_exceeded"
    ),
    "cut": Answer(completion(), share=0.9),
}
FAULTS = (*SPOKEN_FAULTS, "hang", "drop", "drip", "giant")


class LoopbackServer(LoopbackHttp):
    """A server of chat completions.

    Args:
        faults: fault name -> share of items that meet it, 0 to 1.
        faults_at: text in the last user message -> fault name.
        reply: the reply's text, or a function of (request JSON, count of this item's requests so far) that
            returns a text, an `Answer`, or the name of a fault.
    """

    def __init__(
        self,
        *,
        faults: Mapping[str, float] | None = None,
        faults_at: Mapping[str, str] | None = None,
        latency: float = 0.0,
        reply: str | Callable[[dict[str, Any], int], str | Answer] = REPLY,
    ) -> None:
        super().__init__(latency)
        self.faults, self.faults_at, self.reply = dict(faults or {}), dict(faults_at or {}), reply
        assert {*self.faults, *self.faults_at.values()} <= {*FAULTS}
        self.counts: Counter[bytes] = Counter()  # request body -> times it came
        self.authorizations: set[str] = set()

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
        return Counter(last_message(body) for body in self.counts.copy().elements())

    def mend(self) -> None:
        """Switch all faults off for the requests to come."""
        self.faults, self.faults_at = {}, {}

    def reply_to(self, head: bytes, body: bytes) -> bytes | Answer | str:
        if authorization := header(head, b"authorization"):
            self.authorizations.add(authorization)
        if head.startswith((CHAT_ROUTE, MESSAGES_ROUTE)):
            return self.decide(body, head.startswith(MESSAGES_ROUTE))
        return Answer({"error": {"message": "no such route"}}, 404)

    def decide(self, body: bytes, messages: bool = False) -> bytes | Answer | str:
        """Answer a request for a reply; `messages`: of Anthropic's API."""
        self.counts[body] += 1
        name = self._fault(body) if self.faults or self.faults_at else None
        if name is None:
            answer = (
                self.reply
                if isinstance(self.reply, str)
                else self.reply(json.loads(body), self.counts[body])
            )
            if isinstance(answer, Answer):
                return answer
            if answer not in FAULTS:
                return Answer((message if messages else completion)(answer))
            name = answer
        return SPOKEN_FAULTS.get(name, name)

    def _fault(self, body: bytes) -> str | None:
        for text, name in self.faults_at.items():
            if text in last_message(body):
                return name
        draw = int.from_bytes(hashlib.blake2b(body, digest_size=8).digest(), "big") / 2**64
        for name, share in self.faults.items():
            if draw < share:
                return name
            draw -= share
        return None


def last_message(body: bytes) -> str:
    """The content of the last user message of a request body."""
    messages = json.loads(body)["messages"]
    return str(next((m["content"] for m in reversed(messages) if m["role"] == "user"), ""))
