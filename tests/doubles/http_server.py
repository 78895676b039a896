"""An HTTP server on this machine, in threads, for doubles of services: reads requests, writes answers or hangs up."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: object, status: int = 200, **headers: str) -> Answer:
        return cls(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


class Cut(Exception):
    """The connection ends without an answer."""


class HttpServer:
    """The server, as a context manager; a double says in `serve` what it answers."""

    url: str

    def serve(self, method: str, target: str, headers: Message, read: Callable[[], bytes]) -> Answer:
        """Answer a request, or raise Cut; `read` gives its body."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"server_double": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_double: HttpServer
    protocol_version = "HTTP/1.1"
    # Send each answer in one packet: Nagle's algorithm would delay a second one.
    wbufsize = -1
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        try:
            answer = self.server_double.serve(self.command, self.path, self.headers, self._read)
        except Cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

    def log_message(self, format: str, *args: Any) -> None:
        pass
