"""What engines take and return: requests and outcomes, and for the APIs of models calls, answers and failed calls.

An engine takes a batch of requests and returns outcomes in the same order; while others still run it hands
each finished one to `on_done`, so that nothing finished is ever lost. A failed call is a `Failure`, never an
exception and never an empty reply; exceptions are for what no item can survive (wrong model, no server).

`live_calls` sends calls to APIs one by one, `batch/` as jobs; both write and read them through `wire_formats`.
A transport makes one attempt and returns what arrived or how the connection failed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message as a model sees it.

    `shared`: number of characters at the start of `content` that many requests have in common (persona and SAP, a
    judge's rubric). Engines that cache prefixes on request end the cached part there.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    shared: int = field(default=0, compare=False)

    def to_dict(self) -> dict[str, str]:
        """Return it as APIs and chat templates take it."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is sampled.

    `temperature`: 0 is greedy; None leaves temperature, top_p and seed to the model. `max_tokens`: of the reply,
    without reasoning. `seed`: the request's own (see `request_seed`). `thinking`: tokens of reasoning on top of
    `max_tokens`; 0 switches it off where the model allows it; None leaves it to the model, within `max_tokens`.
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

    def drawing(self) -> dict[str, float]:
        """Return temperature, top_p and seed by name; empty where they are left to the model."""
        if self.temperature is None:
            return {}
        return {"temperature": self.temperature, "top_p": self.top_p, "seed": self.seed}

    def require_temperature(self) -> float:
        """The temperature, for engines that draw replies themselves; raises ConfigError where there is none."""
        if self.temperature is None:
            raise ConfigError(
                "this engine draws replies itself: leave out --model-sampling, or name a temperature"
            )
        return self.temperature


def reasoning_switch(thinking: int | None) -> dict[str, bool]:
    """Return the template variables that switch reasoning.

    Qwen's templates and most others read `enable_thinking`, those of DeepSeek and Granite `thinking`.
    """
    if thinking is None:
        return {}
    return {"enable_thinking": thinking > 0, "thinking": thinking > 0}


class ReplySchema(Protocol):
    """The JSON schema that a reply must follow (`response_schema.ResponseSchema`)."""

    @property
    def name(self) -> str: ...

    def schema(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the sample-th answer to item `id`.

    `response_schema`: the schema that the reply must follow. `item`: the item that it is about, where `id` names more.
    """

    id: str
    messages: tuple[Message, ...]
    sampling: Sampling
    sample: int = 0
    response_schema: ReplySchema | None = None
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered; an empty text or a refusal is a reply.

    Attributes:
        finish_reason: a word of `finish_reasons` (`stop`; `length`, cut at the budget; `context`, cut where the
            model's context ends; `refusal`, the model declined; `content_filter`, the provider's filter declined;
            `unknown`), or the engine's own.
        model, system_fingerprint: the names that the server returned.
        seconds: the duration of a live call.
        filtered_by: the filter that stopped it, in the provider's words.
        at: Unix time when a call store wrote it; None where none did.
        served_by: the digests of what gave it (`served_model.py`), where the store's owner asks for them.
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    thinking: str | None = None
    request_id: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    seconds: float | None = None
    filtered_by: str | None = None
    at: float | None = field(default=None, compare=False)
    served_by: str | None = field(default=None, compare=False)


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
        """Answer all requests, in any order; return one outcome a request, in the order of the requests.

        `on_done` is called once a request, as `(index, outcome)`, when it is finished. An exception that it raises
        stops the batch and is passed on. Raises ConfigError or ModelCallError where no item can succeed.
        """
        ...

    def close(self) -> None:
        """Release memory and connections. Calling it twice does no harm."""
        ...


def request_seed(seed: int, item_id: str, sample: int) -> int:
    """The seed of one sample of one item (0 to 2^31 - 1): independent of the order of items."""
    digest = hashlib.sha256(f"{seed}\x00{item_id}\x00{sample}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


# --- Calls to the APIs of models --------------------------------------------------------------------------------

# What a call without a usable reply cost. `free`: the API refused it, or it was never sent. `paid`: a reply arrived
# that cannot be used. `possibly_paid`: no reply arrived, so its cost is unknown.
Billing = Literal["free", "paid", "possibly_paid"]

# The one limit of an answer's size, so that one that never ends cannot fill the memory. Results of batch jobs may be
# larger: they are streamed, and bounded by the line.
LARGEST_REPLY = 16 * 2**20  # bytes: 128 choices of 32,000 tokens


@dataclass(frozen=True, slots=True)
class Call:
    """One paid call for the samples of one item (several where the API has `n`).

    `indexes`: the positions of `requests` among all; messages and sampling are those of the first. `prefix`: a name for
    the start of the prompt that is to be cached. `sharers`: the number of calls with that prefix.
    """

    indexes: tuple[int, ...]
    requests: tuple[Request, ...]
    prefix: str | None = None
    sharers: int = 1


class Bound(NamedTuple):
    """The most tokens that a call can be billed for."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that arrived: one `Reply` for each request of the call, in order.

    `usage`: tokens of the whole call; unknown in each of several replies.
    """

    replies: tuple[Reply, ...]
    usage: Usage
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class FailedCall:
    """Why a call gave no usable reply: a short code to count by, and a message without any part of a key.

    Attributes:
        retry: whether sending it again can help.
        wait: seconds that the API asks the client to wait.
        limited: the whole account is rate-limited (429, 529), so all calls wait.
        fatal: no other call can succeed either (wrong key, unknown model, no credit): advice for the user.
        at_first: `fatal` holds before the first reply only; after it, the failure is that of one call.
        filtered: the provider's own filter declined the prompt, or stopped the reply: a reply without text, whose
            finish reason is `content_filter`; `message` says whose filter.
        parameter: the parameter of the request that was refused (`wire_options.PARAMETERS`); empty for another error.
    """

    reason: str
    message: str
    billing: Billing
    retry: bool = False
    wait: float | None = None
    limited: bool = False
    fatal: str | None = None
    at_first: bool = False
    filtered: bool = False
    parameter: str = ""
    usage: Usage | None = None
    request_id: str | None = None

    @classmethod
    def unreached(cls, why: str) -> FailedCall:
        """Nothing was sent, so the attempt is free."""
        return cls("connection", f"no connection: {why}", "free", retry=True)

    @classmethod
    def broken(cls, why: str) -> FailedCall:
        """The connection broke after something was sent."""
        return cls("connection", f"the connection broke: {why}", "possibly_paid", retry=True)

    @classmethod
    def late(cls, seconds: float) -> FailedCall:
        """The time of the attempt is over."""
        return cls(
            "timeout", f"no complete answer within {seconds:.3g} s", "possibly_paid", retry=True
        )

    @classmethod
    def too_large(cls, most: int) -> FailedCall:
        """The answer is larger than a limit; sent again, it would be so again."""
        return cls("malformed_reply", f"the answer is larger than {most // 2**20} MB", "paid")


CallOutcome = Answer | FailedCall


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A complete answer of any status; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


# A transport: makes one attempt with a body; the second argument is the seconds that it may take in all.
Send = Callable[[Mapping[str, Any], float], Awaitable[HttpAnswer | FailedCall]]
