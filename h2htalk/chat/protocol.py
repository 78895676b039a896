"""The protocol that every engine speaks.

An engine takes a batch of requests and returns outcomes in the same order; while others still run it hands
each finished one to `on_done`, so that nothing finished is ever lost. A failed call is a `Failure`, never an
exception and never an empty reply; exceptions are for what no item can survive (wrong model, no server).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol

from h2htalk.data.responses import Failure, Usage, masked
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message as a model sees it.

    `shared`: how many characters at the start of `content` many requests have in common (persona and SAP, a
    judge's rubric). Engines that cache prefixes on request end the cached part there; it changes no answer.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    shared: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is sampled.

    `temperature`: 0 is greedy; None leaves temperature, top_p and seed to the model, for APIs that take none.
    `max_tokens`: of the reply, without reasoning. `seed`: the request's own (see `request_seed`).
    `thinking`: tokens of reasoning before the reply, on top of `max_tokens`; 0 switches reasoning off where the
    model allows it; None leaves it as the model does by itself, within `max_tokens`.
    """

    temperature: float | None = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    seed: int = 0
    thinking: int | None = None

    @property
    def budget(self) -> int:
        """Tokens that the model may write in all, reasoning included."""
        return self.max_tokens + (self.thinking or 0)

    def require_temperature(self) -> float:
        """The temperature, for engines that draw replies themselves; raises ConfigError where there is none."""
        if self.temperature is None:
            raise ConfigError("this engine draws replies itself: leave out --model-sampling, or name a temperature")
        return self.temperature


class ReplySchema(Protocol):
    """The JSON schema that a reply must follow (`response_schema.ResponseSchema`)."""

    @property
    def name(self) -> str: ...

    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the sample-th answer to item `id`; `response_schema`: what the reply must follow; `item`: the item that
    it is about, where `id` names more."""

    id: str
    messages: tuple[Message, ...]
    sampling: Sampling
    sample: int = 0
    response_schema: ReplySchema | None = None
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered. An empty text or a refusal is a reply.

    `finish_reason`: `stop`; `length` (cut at the budget); `refusal` (the model or its provider declined; the
    text may be empty); `context` (cut where the model's context ends); `unknown`; or the engine's own reason.
    `model` and `system_fingerprint`: what the server returned. `seconds`: what a live call took, its answer included.
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    thinking: str | None = None
    request_id: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    seconds: float | None = None


def mask_key(reply: Reply, key: str | None) -> Reply:
    """Replace the key in every text of a reply by `KEY_MASK`: a server may repeat what it was sent.

    A key of fewer than 8 characters, as servers on one's own machine take it, is no secret and may be a word.
    """
    if key is None or len(key) < 8:
        return reply
    changed: dict[str, Any] = {}
    for one in fields(reply):
        if isinstance(text := getattr(reply, one.name), str):
            changed[one.name] = masked(text, key)
    return replace(reply, **changed)


Outcome = Reply | Failure
OnDone = Callable[[int, Outcome], None]


class Chat(Protocol):
    """An open model. One behind a URL also has `endpoint`: that URL without anything secret, and without its query."""

    @property
    def subject(self) -> Mapping[str, str]:
        """What identifies the model in a signature: `engine`, `model`, and what changes its answers
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
        """Release memory and connections. Calling it twice does no harm."""
        ...


def request_seed(seed: int, item_id: str, sample: int) -> int:
    """The seed of one sample of one item (0 to 2^31 - 1): independent of the order of items."""
    digest = hashlib.sha256(f"{seed}\x00{item_id}\x00{sample}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
