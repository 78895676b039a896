"""The one loop of live calls: workers, tries, pauses and deadlines, over either transport.

Paid attempts are reserved in a store before they are sent; what came of one is its settlement there, and goes to
`on_done` afterwards. Only calls whose reply never arrived, and calls that were refused free of charge, are sent again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from h2htalk.chat.calls import Answer, Arrived, Call, FailedCall, Send, WireFormat, outcomes
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.event_loop import run_all, run_alone
from h2htalk.chat.pacing import (
    PAUSE_AFTER_TIMEOUT,
    CallQueue,
    CircuitBreaker,
    RateLimitPause,
    doubling_wait,
    seconds_text,
    wait_for_next,
)
from h2htalk.chat.protocol import OnDone, Outcome, Request
from h2htalk.chat.store.call_store import CostLimitError, StageCalls
from h2htalk.chat.store.records import PaidCall
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError

SHORTEST_TRY = 0.1  # of `timeout`
# After so many malformed answers, from the first on, the address is not that of the API.
MOST_NONSENSE = 8
INTERRUPTED = "interrupted"
CLOSED = FailedCall("rate_limited", "the API asked for a pause", "free")


@dataclass(frozen=True, slots=True)
class Connection:
    """How an API is reached.

    Attributes:
        wire: builds its calls and reads its answers.
        place: its address for messages, without anything secret.
        advice: what to do where nothing answers there.
        connect: opens the transport, in the event loop.
    """

    wire: WireFormat
    place: str
    advice: str
    connect: Callable[[], AbstractAsyncContextManager[Send]]

    def read(self, arrived: Arrived, call: Call) -> Answer | FailedCall:
        """Read an answer that arrived."""
        try:
            body: object = json.loads(arrived.content)
        except (ValueError, RecursionError):
            body = arrived.content
        if arrived.status >= 300:
            return self.wire.read_error(arrived.status, body, arrived.headers)
        return self.wire.read(body, call, arrived.headers.get("x-request-id") or arrived.headers.get("request-id"))


def run_calls(
    connection: Connection,
    requests: Sequence[Request],
    options: ChatOptions,
    on_done: OnDone | None = None,
    *,
    calls: StageCalls | None,
    deadline: float,
) -> list[Outcome]:
    """Answer all requests by live calls; see `Chat.complete`. `deadline`: seconds that one call may take in all.

    Attempts are reserved and replies stored in `calls`, None where they cost nothing. Calls that would exceed its limit
    become `Failure("max_cost", ...)` with 0 attempts.

    Raises:
        ConfigError: the key or the model is refused, the address is wrong.
        ModelCallError: nothing answers there, or the account has no credit left; a `PausedError` where it stopped
            answering. Finished outcomes went to `on_done`; calls that cost something have ended.
    """
    if not requests:
        return []
    return run_alone(lambda: _complete(connection, requests, options, on_done, calls, deadline))


async def _complete(
    connection: Connection,
    requests: Sequence[Request],
    options: ChatOptions,
    on_done: OnDone | None,
    calls: StageCalls | None,
    deadline: float,
) -> list[Outcome]:
    queued = connection.wire.calls(requests)
    async with connection.connect() as send:
        workers = min(options.concurrency, len(queued) if isinstance(queued, Sequence) else len(requests))
        breaker = CircuitBreaker(connection.place, workers)
        queue, found = CallQueue(queued), list[Outcome | None]([None] * len(requests))
        run = _Run(connection, send, options, deadline, calls, queue, RateLimitPause(), breaker, found, on_done)
        await run.work(workers)
    return [outcome for outcome in run.outcomes if outcome is not None]


@dataclass(slots=True)
class _Run:
    """One call of `complete`, shared by its workers.

    Attributes:
        answered: a call was answered: later a broken connection fails single calls only.
        nonsense: the number of malformed answers, each of them paid, from the first on; None after a well-formed one.
        flying: the workers that have a call in flight.
        desk: the lock of reservations: one worker at a time reserves, so that small calls do not starve a large one.
        settled: set when a call is settled, which may free part of the limit.
        over: why the limit admits no more calls; None while it does.
        stopped: the error that ends the run after the calls in flight.
    """

    connection: Connection
    send: Send
    options: ChatOptions
    deadline: float
    calls: StageCalls | None
    queue: CallQueue
    rate_limit: RateLimitPause
    breaker: CircuitBreaker
    outcomes: list[Outcome | None]
    on_done: OnDone | None
    answered: bool = False
    nonsense: int | None = 0
    flying: set[asyncio.Task[None] | None] = field(default_factory=set)
    desk: asyncio.Lock = field(default_factory=asyncio.Lock)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    over: str | None = None
    stopped: H2HTalkError | None = None
    workers: list[asyncio.Task[None]] = field(default_factory=list)

    async def work(self, workers: int) -> None:
        self.workers = [asyncio.create_task(self._work()) for _ in range(workers)]
        await run_all(self.workers)
        if self.stopped is not None:
            raise self.stopped

    async def _work(self) -> None:
        while self.stopped is None and (call := await self.queue.take()) is not None:
            answered = await self._ask(call)
            self.queue.done(call, answered)

    async def _ask(self, call: Call) -> bool:
        """Send one call until it is delivered or the run stops; returns whether it was answered."""
        clock = asyncio.get_running_loop().time
        body = self.connection.wire.body(call)
        deadline = clock() + self.deadline
        failure: FailedCall = CLOSED
        sent = 0  # attempts that went out
        tries = 0  # of them, those that count against `attempts`: refusals of the whole account only cost time
        refusals = 0
        while True:
            if not await self._wait_for_rate_limit(deadline):
                return self._give_up(call, self._too_late(failure), sent)
            started = clock()
            reservation = None if self.calls is None else await self._reserve(call, self.calls)
            deadline += clock() - started  # waiting for the limit does not count
            if self.over is not None and reservation is None:
                self._deliver(call, [Failure("max_cost", str(self.over), sent)] * len(call.requests))
                return False
            sent += 1
            seconds = min(self.options.timeout, deadline - clock())
            answer = await self._attempt(call, body, reservation, seconds)
            if isinstance(answer, Answer):
                return True
            failure = answer
            if self._stops(failure):
                return False
            tries, refusals = (tries, refusals + 1) if failure.limited else (tries + 1, refusals)
            if not failure.retry or tries >= self.options.attempts:
                return self._give_up(call, failure, sent)
            timed_out = failure.reason == "timeout"
            wait = PAUSE_AFTER_TIMEOUT * seconds if timed_out else wait_for_next(failure, tries, refusals)
            late = clock() + wait > deadline - self._shortest
            if failure.limited:
                # A wait beyond the deadline does not stop the other calls for as long.
                self.rate_limit.close(min(wait, doubling_wait(refusals)) if late else wait)
            if late:
                return self._give_up(call, self._too_late(failure), sent)
            if not failure.limited:
                await asyncio.sleep(wait)

    @property
    def _shortest(self) -> float:
        """The least seconds for an attempt: a shorter one would only hide why the attempt before it failed."""
        return SHORTEST_TRY * min(self.options.timeout, self.deadline)

    async def _wait_for_rate_limit(self, deadline: float) -> bool:
        """Wait until the rate limit ends; False where it lasts until the deadline."""
        clock = asyncio.get_running_loop().time
        while (closed := self.rate_limit.remaining()) > 0:
            if clock() + closed > deadline - self._shortest:
                return False
            await asyncio.sleep(closed)
        return clock() < deadline

    async def _reserve(self, call: Call, calls: StageCalls) -> PaidCall | None:
        """Reserve one attempt; None where the limit does not admit it even with nothing in flight."""
        bound = self.connection.wire.bound(call)
        async with self.desk:  # in the order of waiting
            while self.over is None:
                try:
                    return calls.reserve(call, bound)
                except CostLimitError as error:
                    if not self.flying:
                        self.over = str(error)
                        break
                await self.settled.wait()
        return None

    async def _attempt(
        self, call: Call, body: Mapping[str, Any], reservation: PaidCall | None, seconds: float
    ) -> Answer | FailedCall:
        """Send once; settle the reservation by what came, then deliver an answer."""
        worker, clock = asyncio.current_task(), asyncio.get_running_loop().time
        started = clock()
        self.flying.add(worker)
        try:
            arrived = await self.send(body, seconds)
        except BaseException:  # Ctrl-C or a bug: passed on after the call is settled
            self._settle(reservation, FailedCall(INTERRUPTED, "", "possibly_paid"))
            raise
        finally:
            self.flying.discard(worker)
        response = arrived if isinstance(arrived, FailedCall) else self.connection.read(arrived, call)
        if isinstance(response, Answer):
            took = round(clock() - started, 3)
            response = replace(response, replies=tuple(replace(one, seconds=took) for one in response.replies))
        self._settle(reservation, response)
        if isinstance(response, Answer):
            self.nonsense = None
            self.answered = True
            self.breaker.answered()
            self._deliver(call, list(response.replies))
        return response

    def _settle(self, reservation: PaidCall | None, found: Answer | FailedCall) -> None:
        if self.calls is None or reservation is None:
            return
        with self._ending():
            self.calls.settle(reservation, found)
        self.settled.set()
        self.settled = asyncio.Event()

    def _deliver(self, call: Call, results: Sequence[Outcome]) -> None:
        for index, outcome in zip(call.indexes, results, strict=True):
            self.outcomes[index] = outcome
            if self.on_done is not None:
                with self._ending():
                    self.on_done(index, outcome)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the run where an answer cannot be stored: calls in flight are possibly paid."""
        try:
            yield
        except BaseException:
            self._cancel(set(self.workers))
            raise

    def _stops(self, failure: FailedCall) -> bool:
        """Whether the run ends."""
        error: H2HTalkError | None = None
        if failure.fatal is not None and not (failure.at_first and self.answered):
            error = (ModelCallError if failure.reason == "no_credit" else ConfigError)(failure.fatal)
        elif failure.reason == "connection" and failure.billing == "free" and not self.answered:
            place = self.connection.place
            error = ModelCallError(f"{place} does not answer ({failure.message}): {self.connection.advice}")
        if self.calls is not None and self.nonsense is not None and failure.reason == "malformed_reply":
            self.nonsense += 1
            if self.nonsense == MOST_NONSENSE:
                error = ConfigError(
                    f"{self.connection.place} is not the API of {self.connection.wire.model} (the first "
                    f"{MOST_NONSENSE} answers are malformed: {failure.message}): {self.connection.advice}"
                )
        self._stop(error or self.breaker.failed(failure.reason, failure.message, given_up=False))
        return self.stopped is not None

    def _give_up(self, call: Call, failure: FailedCall, sent: int) -> bool:
        """Deliver a failure that is not sent again; returns False: the call was not answered."""
        self._deliver(call, outcomes(failure, call, sent))
        self._stop(self.breaker.failed(failure.reason, failure.message, given_up=True))
        return False

    def _stop(self, error: H2HTalkError | None) -> None:
        """End the run, after the calls in flight where their replies are paid; None does nothing."""
        if error is not None and self.stopped is None:
            self.stopped = error
            self._cancel(set(self.workers) - (self.flying if self.calls is not None else set()))

    def _cancel(self, workers: set[asyncio.Task[None]]) -> None:
        """Cancel these workers except the current one."""
        for worker in workers - {asyncio.current_task()}:
            worker.cancel()

    def _too_late(self, failure: FailedCall) -> FailedCall:
        asked = f"it asks for a pause of {seconds_text(failure.wait)}, and " if failure.wait else ""
        late = f"{asked}no time is left of the {self.deadline:.6g} s that one request may take"
        return replace(failure, message=f"{failure.message}; {late}")
