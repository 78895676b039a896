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
from typing import TYPE_CHECKING, Literal, Protocol, cast

from h2htalk.data.run import Failure, Usage
from h2htalk.errors import ConfigError

if TYPE_CHECKING:
    from h2htalk.chat.batches import BatchFolder
    from h2htalk.chat.ledger import Ledger
    from h2htalk.chat.structured import Form


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
    """How a reply is drawn.

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
            raise ConfigError(
                "this engine draws replies itself: leave out --model-sampling, or name a temperature"
            )
        return self.temperature


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the sample-th answer to item `id`; `form`: the JSON that the reply must be."""

    id: str
    messages: tuple[Message, ...]
    sampling: Sampling
    sample: int = 0
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered. An empty text or a refusal is a reply.

    `finish_reason`: `stop`; `length` (cut at the budget); `refusal` (the model or its provider declined; the
    text may be empty); `context` (cut where the model's context ends); `unknown`; or the engine's own word.
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
    """How to run an engine. Only `engine` may change what it answers (the engine's `subject` then says so).

    Attributes:
        concurrency: requests in flight at once.
        timeout: seconds one attempt may take.
        attempts: tries a request, the first included.
        deadline: seconds one request to a hosted API may take in all, its tries and the waits between included.
        engine: options of this one engine by name, as text (`vllm`: `dtype`, `tensor_parallel_size`, ...).
        ledger: where paid calls are booked before they are sent; None books them in memory only.
        batch: send everything as batch jobs, whose ids are kept in this folder.
    """

    concurrency: int = 64
    timeout: float = 120.0
    attempts: int = 4
    deadline: float = 900.0
    engine: Mapping[str, str] = field(default_factory=dict)
    ledger: Ledger | None = None
    batch: BatchFolder | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1 or not self.timeout > 0 or not self.deadline > 0:
            raise ConfigError(
                "concurrency and attempts must be 1 or more, timeout and deadline above 0 seconds"
            )


# Backend -> where its class is. Each class is called as Class(name, options).
BACKENDS = {
    "embedded": "h2htalk.chat.embedded:EmbeddedChat",
    "hf": "h2htalk.chat.local:TransformersChat",
    "vllm": "h2htalk.chat.vllm_engine:VLLMChat",
    "openai": "h2htalk.chat.openai_api:OpenAIChat",
    "anthropic": "h2htalk.chat.anthropic_api:AnthropicChat",
    "server": "h2htalk.chat.server:ServerChat",
    "scripted": "h2htalk.chat.scripted:ScriptedChat",
}
# Every call costs money: these book each one in a ledger, and can send batches.
HOSTED = ("openai", "anthropic")
# Take no temperature, top_p or seed at all: their answers are drawn as the model draws by itself.
OWN_SAMPLING = ("anthropic",)
# Options of one engine (`--engine KEY=VALUE`) are known to these.
WITH_OPTIONS = ("vllm",)


def open_chat(model: str, options: ChatOptions | None = None) -> Chat:
    """Open `BACKEND` or `BACKEND:NAME`, such as `embedded`, `hf:PATH`, `server:MODEL@URL`, `scripted:FILE`.

    Raises:
        ConfigError: no such backend, or the model cannot be opened.
        MissingExtraError: the backend's packages are not installed.
    """
    backend, name = parse_model(model)
    options = options or ChatOptions()
    if options.engine and backend not in WITH_OPTIONS:
        given = ", ".join(options.engine)
        raise ConfigError(f"{backend} has no engine options ({given}); {', '.join(WITH_OPTIONS)} has")
    if options.batch is not None and backend not in HOSTED:
        raise ConfigError(f"{backend} has no batches; {' and '.join(HOSTED)} have")
    module, _, attribute = BACKENDS[backend].partition(":")
    chat_class = getattr(import_module(module), attribute)
    return cast(Chat, chat_class(name, options))


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
