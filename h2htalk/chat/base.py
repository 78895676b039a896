"""The protocol that every engine speaks, and the table of engines.

An engine takes a batch of requests and returns outcomes in the same order; while others still run it hands
each finished one to `on_done`, so that nothing finished is ever lost. A failed call is a `Failure`, never an
exception and never an empty reply; exceptions are for what no item can survive (wrong model, no server).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal, Protocol, cast

from h2htalk.data.run import Failure, Usage
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message as a model sees it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is drawn. Temperature 0 is greedy; `seed` is the request's own (see `request_seed`)."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the sample-th answer to item `id`."""

    id: str
    messages: tuple[Message, ...]
    sampling: Sampling
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered. An empty text or a refusal is a reply.

    `finish_reason`: `stop`, `length`, `refusal`, or the engine's own word.
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    thinking: str | None = None
    request_id: str | None = None


Outcome = Reply | Failure
OnDone = Callable[[int, Outcome], None]


class Chat(Protocol):
    """An open model."""

    @property
    def subject(self) -> Mapping[str, str]:
        """What identifies the model in a signature: `backend`, `model`, and what changes its answers
        (revision or weights hash, engine and version)."""
        ...

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests.

        Args:
            requests: any number, in any order; the answers do not depend on the order.
            on_done: called once a request, as `(index, outcome)`, when it is finished. An exception that it
                raises stops the batch and is passed on.

        Returns:
            One outcome a request, in the order of `requests`.

        Raises:
            ConfigError, ModelCallError: no item can succeed (unknown model, wrong key, no server).
        """
        ...

    def close(self) -> None:
        """Give back memory and connections. Harmless when called twice."""
        ...


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How to run an engine. None of these may change what an engine answers.

    `timeout`: seconds one attempt may take; `attempts`: tries a request, the first included.
    """

    concurrency: int = 64
    timeout: float = 120.0
    attempts: int = 4

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1 or not self.timeout > 0:
            raise ConfigError("concurrency and attempts must be 1 or more, timeout more than 0 seconds")


# Backend -> where its class is. Each class is called as Class(name, options).
BACKENDS = {
    "embedded": "h2htalk.chat.embedded:EmbeddedChat",
    "hf": "h2htalk.chat.local:TransformersChat",
    "server": "h2htalk.chat.server:ServerChat",
    "scripted": "h2htalk.chat.scripted:ScriptedChat",
}


def open_chat(model: str, options: ChatOptions | None = None) -> Chat:
    """Open `BACKEND` or `BACKEND:NAME`, such as `embedded`, `hf:PATH`, `server:MODEL@URL`, `scripted:FILE`.

    Raises:
        ConfigError: no such backend, or the model cannot be opened.
        MissingExtraError: the backend's packages are not installed.
    """
    backend, name = parse_model(model)
    module, _, attribute = BACKENDS[backend].partition(":")
    chat_class = getattr(import_module(module), attribute)
    return cast(Chat, chat_class(name, options or ChatOptions()))


def parse_model(model: str, *others: str) -> tuple[str, str]:
    """Backend and name of a model.

    Raises:
        ConfigError: no such backend; the choices are named, with `others` that the caller knows besides.
    """
    backend, _, name = model.partition(":")
    if backend not in BACKENDS:
        choices = ", ".join((*BACKENDS, *others))
        raise ConfigError(
            f"unknown backend {backend!r} in model {model!r}: write BACKEND:NAME; choose from {choices}"
        )
    return backend, name


def request_seed(seed: int, item_id: str, sample: int) -> int:
    """The seed of one sample of one item (0 to 2^31 - 1): independent of the order of items."""
    digest = hashlib.sha256(f"{seed}\x00{item_id}\x00{sample}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
