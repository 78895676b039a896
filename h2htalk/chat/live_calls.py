"""The one loop of live calls: workers, tries, pauses and deadlines, over either transport.

Paid attempts are reserved in a store before they are sent; what came of one is its settlement there, and goes to
`on_done` afterwards. Only calls whose reply never arrived, and calls that were refused free of charge, are sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.inner_errors import ERROR_IN_REPLY
from h2htalk.chat.protocol import (
    Answer,
    Call,
    CallOutcome,
    FailedCall,
    HttpAnswer,
    OnDone,
    Outcome,
    Request,
    Send,
)
from h2htalk.chat.store.call_records import PaidCall
from h2htalk.chat.store.stage_calls import CostLimitError, StageCalls
from h2htalk.chat.wire_formats import WireFormat, outcomes
from h2htalk.chat.wire_options import parameters_of
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError, PausedError

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds between tries: doubling
SHORTEST_TRY = 0.1  # of `timeout`: a shorter attempt would only hide why the previous one failed
# Of `timeout`: wait before a call that timed out is sent again, so that those sent with it time out first.
PAUSE_AFTER_TIMEOUT = 0.05
# The run pauses at twice as many failed calls in a row as are in flight, and at half as many timeouts, which are long
# waits themselves: one wave without any answer.
FAILURES_A_WORKER = 2
MIN_FAILURES = 16
MIN_FAILURES_AT_FIRST = 8  # before the first answer
TIMEOUT_COUNTS = 2
# After so many malformed answers, each of them paid, without a well-formed one, the address is not that of the API.
MAX_MALFORMED = 8
_OUTAGES = frozenset({
    "timeout", "connection", "overloaded", "rate_limited", "malformed_reply", "http_408", ERROR_IN_REPLY,
})  # fmt: skip
_CLOSED = FailedCall("rate_limited", "the API asked for a pause", "free")


@dataclass(frozen=True, slots=True)
class Connection:
    """How an API is reached.

    `address`: its address for messages, without anything secret. `advice`: what to do where nothing answers there.
    `connect`: opens the transport, in the event loop. `accepted`: the parameters of calls that were answered, which the
    owner keeps over several batches of requests.
    """

    wire: WireFormat
    address: str
    advice: str
    connect: Callable[[], AbstractAsyncContextManager[Send]]
    accepted: set[str] = field(default_factory=set)


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
    become `Failure("max_cost", ...)` with 0 attempts. Raises ConfigError where the key or the model is refused or the
    address is wrong, ModelCallError where nothing answers or credit is gone, PausedError where it stopped answering.
    """

    async def complete() -> list[Outcome]:
        async with connection.connect() as send:
            queue = CallQueue(connection.wire.calls(requests))
            concurrency = min(options.concurrency, len(requests))
            run = _Run(
                connection=connection,
                send=send,
                options=options,
                deadline=deadline,
                calls=calls,
                queue=queue,
                concurrency=concurrency,
                outcomes=[None for _ in range(len(requests))],
                on_done=on_done,
            )
            run.workers = [asyncio.create_task(run.work()) for _ in range(concurrency)]
            await run_all(run.workers)
        if run.stopped is not None:
            raise run.stopped
        return [outcome for outcome in run.outcomes if outcome is not None]

    return run_alone(complete) if requests else []


@dataclass(slots=True)
class _Run:
    """One call of `run_calls`, shared by its workers.

    Attributes:
        answered: whether a call was answered: later a broken connection fails single calls only.
        malformed_so_far: malformed answers before the first well-formed one.
        failed: timeouts and given-up calls since the last answer.
        failure_weight: what these count for `FAILURES_A_WORKER`.
        paused_until, jitter: end of the pause while the API limits the account, and the range of its jitter.
        in_flight: workers with a call in flight.
        reserving: held while a call is reserved, so that small calls do not starve a large one.
        settled: set when a call is settled, which may free part of the limit.
        limit_message: why the limit admits no more calls; None while it does.
        stopped: the error that ends the run after the calls in flight.
    """

    connection: Connection
    send: Send
    options: ChatOptions
    deadline: float
    calls: StageCalls | None
    queue: CallQueue
    concurrency: int
    outcomes: list[Outcome | None]
    on_done: OnDone | None
    answered: bool = False
    malformed_so_far: int = 0
    failed: int = 0
    failure_weight: int = 0
    paused_until: float = 0.0
    jitter: float = 0.0
    in_flight: set[asyncio.Task[None] | None] = field(default_factory=set)
    reserving: asyncio.Lock = field(default_factory=asyncio.Lock)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    limit_message: str | None = None
    stopped: H2HTalkError | None = None
    workers: list[asyncio.Task[None]] = field(default_factory=list)
    clock: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)

    async def work(self) -> None:
        while self.stopped is None and (call := await self.queue.take()) is not None:
            self.queue.done(call, await self._ask(call))

    async def _ask(self, call: Call) -> bool:
        """Send one call until it is delivered or the run stops; returns whether it was answered."""
        body = self.connection.wire.body(call)
        deadline = self.clock() + self.deadline
        shortest = SHORTEST_TRY * min(self.options.timeout, self.deadline)
        failure: FailedCall = _CLOSED
        sent = 0  # attempts that went out
        tries = 0  # of them, those that count against `attempts`: refusals of the whole account only cost time
        refusals = 0
        while True:
            if not await self._wait_for_rate_limit(deadline - shortest):
                return self._give_up(call, self._too_late(failure), sent)
            started = self.clock()
            reservation = None if self.calls is None else await self._reserve(call, self.calls)
            deadline += self.clock() - started  # waiting for the limit does not count
            if self.limit_message is not None and reservation is None:
                return self._give_up(call, FailedCall("max_cost", self.limit_message, "free"), sent)
            sent += 1
            seconds = min(self.options.timeout, deadline - self.clock())
            answer = await self._attempt(call, body, reservation, seconds)
            if isinstance(answer, Answer):
                return True
            failure = answer
            if self._stops(failure):
                return False
            if failure.limited:
                refusals += 1
            else:
                tries += 1
            if failure.parameter:
                # Other calls with it were answered, so that the run goes on; its end says what to do.
                advice = self.connection.wire.refusal(failure.parameter, failure.message)
                failure = replace(
                    failure, message=f"{advice}; other calls that sent it were answered"
                )
            if not failure.retry or tries >= self.options.attempts:
                return self._give_up(call, failure, sent)
            if failure.reason == "timeout":
                wait = PAUSE_AFTER_TIMEOUT * seconds
            else:
                wait = wait_for_next(failure, tries, refusals)
            late = self.clock() + wait > deadline - shortest
            if failure.limited:
                # A wait beyond the deadline does not stop the other calls for as long.
                pause = min(wait, doubling_wait(refusals)) if late else wait
                self.paused_until = max(self.paused_until, self.clock() + pause)
                self.jitter = min(0.1 * pause, 2.0)
            if late:
                return self._give_up(call, self._too_late(failure), sent)
            if not failure.limited:
                await asyncio.sleep(wait)

    async def _wait_for_rate_limit(self, deadline: float) -> bool:
        """Wait until the rate limit ends, with random jitter; False where it lasts beyond the last moment to send."""
        while (pause := self.paused_until - self.clock()) > 0:
            pause += random.uniform(0, self.jitter)
            if self.clock() + pause > deadline:
                return False
            await asyncio.sleep(pause)
        return True

    async def _reserve(self, call: Call, calls: StageCalls) -> PaidCall | None:
        """Reserve one attempt; None where the limit does not admit it even with nothing in flight."""
        bound = self.connection.wire.bound(call)
        async with self.reserving:  # in the order of waiting
            while self.limit_message is None:
                try:
                    return calls.reserve(call, bound)
                except CostLimitError as error:
                    if not self.in_flight:
                        self.limit_message = str(error)
                        break
                await self.settled.wait()
        return None

    async def _attempt(
        self, call: Call, body: Mapping[str, Any], reserved: PaidCall | None, seconds: float
    ) -> CallOutcome:
        """Send once; settle what was reserved by what came, then deliver an answer."""
        worker = asyncio.current_task()
        started = self.clock()
        self.in_flight.add(worker)
        try:
            answer = await self.send(body, seconds)
        except BaseException:  # Ctrl-C or a bug: passed on after the call is settled
            self._settle(reserved, FailedCall("interrupted", "", "possibly_paid"))
            raise
        finally:
            self.in_flight.discard(worker)
        duration = round(self.clock() - started, 3)
        if isinstance(answer, FailedCall):
            outcome: CallOutcome = answer
        else:
            outcome = self._read(answer, call, body, duration)
        self._settle(reserved, outcome)
        if isinstance(outcome, Answer):
            self.answered = True
            self.connection.accepted.update(parameters_of(body))
            self.failed = self.failure_weight = 0
            self._deliver(call, outcome.replies)
        return outcome

    def _read(
        self, answer: HttpAnswer, call: Call, sent: Mapping[str, Any], seconds: float
    ) -> CallOutcome:
        try:
            body: object = json.loads(answer.content)
        except (ValueError, RecursionError):
            body = answer.content
        wire = self.connection.wire
        headers = answer.headers
        if answer.status >= 300:
            return wire.read_error(answer.status, body, headers, sent)
        request_id = headers.get("x-request-id") or headers.get("request-id")
        return wire.read(body, call, request_id, seconds)

    def _settle(self, reservation: PaidCall | None, outcome: CallOutcome) -> None:
        if self.calls is not None and reservation is not None:
            with self._ending():
                self.calls.settle(reservation, outcome)
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
        except BaseException:  # passed on once the other calls are cancelled
            self._cancel(set(self.workers))
            raise

    def _stops(self, failure: FailedCall) -> bool:
        address = self.connection.address
        advice = self.connection.advice
        if failure.parameter:
            # One that was accepted elsewhere is the difference of one item.
            if failure.parameter not in self.connection.accepted:
                self._stop(self.connection.wire.refusal(failure.parameter, failure.message))
        elif failure.fatal is not None and not (failure.at_first and self.answered):
            kind = ModelCallError if failure.reason == "no_credit" else ConfigError
            self._stop(kind(failure.fatal))
        elif failure.reason == "connection" and failure.billing == "free" and not self.answered:
            self._stop(ModelCallError(f"{address} does not answer ({failure.message}): {advice}"))
        elif self.calls is not None and failure.reason == "malformed_reply" and not self.answered:
            self.malformed_so_far += 1
            if self.malformed_so_far == MAX_MALFORMED:
                evidence = f"(the first {MAX_MALFORMED} answers are malformed: {failure.message})"
                model = self.connection.wire.model
                self._stop(ConfigError(f"{address} is not the API of {model} {evidence}: {advice}"))
        elif failure.reason == "timeout":
            self._count_failed(failure, TIMEOUT_COUNTS)
        return self.stopped is not None

    def _give_up(self, call: Call, failure: FailedCall, sent: int) -> bool:
        """Deliver a failure that is not sent again; returns False: the call was not answered."""
        self._deliver(call, outcomes(failure, call, sent))
        # A refusal of one item (HTTP 400, too long a prompt, a filter) is neither an outage nor an answer.
        outage = failure.reason in _OUTAGES or failure.reason.startswith("http_5")
        if outage and failure.reason != "timeout":
            self._count_failed(failure, 1)
        return False

    def _count_failed(self, failure: FailedCall, weight: int) -> None:
        """Pause the run once too many calls in a row failed: the circuit breaker."""
        self.failed += 1
        self.failure_weight += weight
        minimum = MIN_FAILURES if self.answered else MIN_FAILURES_AT_FIRST
        if self.failure_weight >= max(minimum, FAILURES_A_WORKER * self.concurrency):
            calls = f"{self.failed:,} calls in a row (the last: {failure.message})"
            advice = "answers are kept, and the same command continues when it answers again"
            self._stop(
                PausedError(f"paused: {self.connection.address} did not answer {calls}; {advice}")
            )

    def _stop(self, error: H2HTalkError) -> None:
        """End the run, after the calls in flight where their replies are paid."""
        if self.stopped is not None:
            return
        self.stopped = error
        workers = set(self.workers)
        if self.calls is not None:
            workers -= self.in_flight
        self._cancel(workers)

    def _cancel(self, workers: set[asyncio.Task[None]]) -> None:
        """Cancel these workers except the current one."""
        for worker in workers - {asyncio.current_task()}:
            worker.cancel()

    def _too_late(self, failure: FailedCall) -> FailedCall:
        pause = f"it asks for a pause of {failure.wait:,g} s, and " if failure.wait else ""
        late = f"{pause}no time is left of the {self.deadline:.6g} s that one request may take"
        return replace(failure, message=f"{failure.message}; {late}")


# --- When a call is sent ----------------------------------------------------------------------------------------


class CallQueue:
    """Calls by cached prefix. The first call of a prefix is sent alone, because its answer shows that the cache is
    written; the others follow in turns, so that no cache expires. Calls that come from an iterator have no prefix, and
    are built when they are taken. Create it inside an event loop."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._groups: dict[str | None, deque[Call]] = {}
        self._built_late: Iterator[Call] = iter(())
        if isinstance(calls, Sequence):
            for call in calls:
                self._groups.setdefault(call.prefix, deque()).append(call)
        else:
            self._built_late = iter(calls)
        self._warm: set[str | None] = {None}
        self._ahead: set[str | None] = set()  # prefixes whose first call is on its way
        self._changed = asyncio.Event()

    async def take(self) -> Call | None:
        """Return the next call, None when all are taken; waits while all others wait for the first of their prefix."""
        while self._groups:
            for prefix in self._groups:
                if prefix in self._ahead:
                    continue
                calls = self._groups.pop(prefix)
                call = calls.popleft()
                if calls:
                    self._groups[prefix] = calls  # the last in turn
                if prefix not in self._warm:
                    self._ahead.add(prefix)
                return call
            await self._changed.wait()
        return next(self._built_late, None)

    def done(self, call: Call, answered: bool) -> None:
        """Release the calls of a prefix after its first call was answered, else send the next one alone."""
        if call.prefix is None or call.prefix in self._warm:
            return
        if answered:
            self._warm.add(call.prefix)
        self._ahead.discard(call.prefix)
        self._changed.set()
        self._changed = asyncio.Event()


def wait_for_next(failure: FailedCall, tries: int, refusals: int) -> float:
    """Return the seconds until the next attempt of a call: as the API asks, else doubling, with random jitter."""
    if failure.wait is None:
        return doubling_wait(refusals if failure.limited else tries)
    if not failure.limited:
        return failure.wait * random.uniform(1.0, 1.1)
    if refusals > 1:  # an API that asks for no wait and refuses again is not called in a tight loop
        return max(failure.wait, doubling_wait(refusals - 1))
    return failure.wait


def doubling_wait(tries: int) -> float:
    """Return the seconds to wait after the tries-th failure (from 1): doubling up to a limit, with random jitter."""
    doubling: float = min(FIRST_WAIT * 2 ** min(tries - 1, 10), LONGEST_WAIT)
    return doubling * random.uniform(0.75, 1.25)


# --- The event loop ---------------------------------------------------------------------------------------------


def run_alone(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in an event loop of its own; where a loop runs already (a notebook), in a thread of its own.
    Ctrl-C cancels the coroutine and waits for its end in both cases."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # none runs in this thread
        return asyncio.run(start())
    tasks: list[asyncio.Task[Any] | None] = []

    async def run() -> T:
        tasks.append(asyncio.current_task())
        return await start()

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(lambda: asyncio.run(run()))
        try:
            return future.result()
        except KeyboardInterrupt:
            for task in filter(None, tasks):
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    task.get_loop().call_soon_threadsafe(task.cancel)
            raise


async def run_all(workers: Sequence[asyncio.Task[None]]) -> None:
    """Wait for all workers; when one raises, or this is cancelled (Ctrl-C), cancel the others and wait for them."""
    try:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for worker in workers:
            worker.cancel()
        # Every exception is collected here, so none is reported later as never retrieved.
        results = await asyncio.gather(*workers, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
