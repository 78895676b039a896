"""What hosted APIs have in common, live or in a batch: a call, its answer, its failed, and who speaks the wire.

No connection is made here. `hosted` sends calls one by one, `batches` as jobs; both build the same bodies and read
the same replies, through an `WireFormat` (`openai_api`, `anthropic_api`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.data.responses import Failure, SampleKey, Usage

# What a call without a usable reply cost. `free`: the API itself refused it, or it never left this machine.
# `paid`: a reply came that cannot be used. `lost`: no reply arrived, so nobody knows: possibly paid.
Billing = Literal["free", "paid", "possibly_paid"]


@dataclass(frozen=True, slots=True)
class Call:
    """One paid call: the samples of one item that it asks for (several where the API has `n`).

    `indexes`: the places of `requests` among all; messages and sampling are the first one's. `prefix`: names the
    start of the prompt that is to be cached on request, None where it is not; `sharers`: calls with that prefix.
    """

    indexes: tuple[int, ...]
    requests: tuple[Request, ...]
    prefix: str | None = None
    sharers: int = 1

    @property
    def request(self) -> Request:
        """The first one: messages and sampling of all."""
        return self.requests[0]

    @property
    def items(self) -> tuple[SampleKey, ...]:
        """Item and sample of each request, as the books name the call."""
        return tuple((request.id, request.sample) for request in self.requests)


@dataclass(frozen=True, slots=True)
class Bound:
    """The most tokens that a call can be billed for."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that arrived: one `Reply` a request of the call, in order; `usage` is the whole call's.

    A `Reply`'s own usage is the call's where it holds one reply, unknown where it holds several.
    """

    replies: tuple[Reply, ...]
    usage: Usage
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class FailedCall:
    """Why a call gave no usable reply.

    Attributes:
        reason: short code to count by, as in `Failure`.
        message: for people, without any part of a key.
        charge: what it cost (see `Billing`).
        retry: whether asking again can help. A call whose reply arrived is never asked again by itself.
        wait: seconds that the API asks to be left alone, None where it does not say.
        limited: the whole account is asked to slow down (429, 529), so all calls wait.
        fatal: no other call can succeed either (wrong key, unknown model, no credit): advice for people.
        refusal: the provider's own filter declined the prompt; for the benchmark that is a reply without text.
        usage: of a paid call, where it is known.
        request_id: the API's own name of the call.
    """

    reason: str
    message: str
    billing: Billing
    retry: bool = False
    wait: float | None = None
    limited: bool = False
    fatal: str | None = None
    refusal: bool = False
    usage: Usage | None = None
    request_id: str | None = None


class WireFormat(Protocol):
    """One provider's wire."""

    @property
    def model(self) -> str:
        """`ENGINE:MODEL`, as price files name it."""
        ...

    def calls(self, requests: Sequence[Request]) -> list[Call]:
        """The calls that ask for all requests, in an order that reads caches soonest after they were written."""
        ...

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """The JSON of a call, the same live and in a batch but for the lifetime of caches.

        Raises:
            ConfigError: the request asks for what the API does not have.
        """
        ...

    def bound(self, call: Call) -> Bound:
        """The most that a call can be billed for: a token is at least one byte of UTF-8."""
        ...

    def read(self, body: object, call: Call, request_id: str | None = None) -> Answer | FailedCall:
        """The answer in the JSON of a successful call. FailedCall is `paid` then: something arrived."""
        ...

    def read_error(self, status: int, body: object, headers: Mapping[str, str]) -> FailedCall:
        """What an error of the API means, live or in a batch's result.

        `status` 0: not known, as in a batch's results of Anthropic; the error's own type tells then.
        """
        ...


def outcomes(found: Answer | FailedCall, call: Call, attempts: int = 1) -> list[Outcome]:
    """What each request of a call gets, in order, when the call is not asked again."""
    if isinstance(found, Answer):
        return list(found.replies)
    outcome: Outcome = Failure(found.reason, found.message, attempts)
    if found.refusal:
        usage = Usage(0, 0) if found.billing == "free" else found.usage or Usage()
        outcome = Reply("", "refusal", usage, request_id=found.request_id)
    return [outcome] * len(call.requests)
