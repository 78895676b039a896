"""Servers that play models of known habits; every reply depends on the request alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.doubles.loopback import Answer, LoopbackServer, completion
from support.judges import HARM, careful, companion, judged

# Shares of requests, in thousandths, that end otherwise than with a reply.
FAULTS: dict[str, tuple[int, Answer | str]] = {
    "server": (40, "http_500"),
    "too long": (20, "context_length"),
    "empty": (40, Answer(completion(""))),
    "filtered": (40, Answer(completion(None, "content_filter"))),
    "truncated": (60, Answer(completion("I hear you, and what I wanted to say is", "length"))),
}


def draw(body: dict[str, Any], salt: str = "") -> int:
    """A number below 1,000 that follows from a request."""
    text = salt + json.dumps(body, sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % 1000


def warm(body: dict[str, Any], count: int) -> str | Answer:
    """A companion without faults, which also answers as a careful judge."""
    texts = [message["content"] for message in body["messages"]]
    return judged(texts, careful) or companion(body)


def faulty(body: dict[str, Any], count: int) -> str | Answer:
    """A companion whose server fails at some items, and whose filter withholds some replies."""
    number = draw(body)
    for share, answer in FAULTS.values():
        if number < share:
            return answer
        number -= share
    return f"{companion(body)} ({draw(body, 'words')})"


def dismissive(body: dict[str, Any], count: int) -> str | Answer:
    """A companion who harms one user in three, and whose filter withholds some replies."""
    number = draw(body)
    if number < 330:
        return HARM
    if number < 350:
        return Answer(completion("", "content_filter"))
    return warm(body, count)


def careless(body: dict[str, Any], count: int) -> str | Answer:
    """A companion without faults, whose answers as a judge cannot be read now and then."""
    texts = [message["content"] for message in body["messages"]]
    judgement = judged(texts, careful)
    if judgement is not None and draw(body) < 100:
        return judgement[: len(judgement) // 2]
    return judgement or companion(body)


def recovering(body: dict[str, Any], count: int) -> str | Answer:
    """A server that fails at the first attempt of some requests."""
    if count == 1 and draw(body) < 100:
        return "http_500"
    return warm(body, count)


@contextmanager
def served(reply: Any, port: int) -> Iterator[str]:
    """Serve a model at a port; yield its name for commands."""
    server = LoopbackServer(reply=reply)
    server.port = port
    with server:
        yield server.spec
