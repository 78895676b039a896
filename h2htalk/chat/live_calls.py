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
from h2htalk.chat.protocol import Answer, Arrived, Call, FailedCall, Found, OnDone, Outcome, Request, Send
from h2htalk.chat.store.call_store import CostLimitError, PaidCall, StageCalls
from h2htalk.chat.wires import WireFormat, outcomes
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError, PausedError

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds between tries: doubling
SHORTEST_TRY = 0.1  # of `timeout`: a shorter attempt would only hide why the one before it failed
# Of `timeout`: wait before a call that timed out is sent again, so that those sent with it time out first.
PAUSE_AFTER_TIMEOUT = 0.05
# The run pauses at twice as many failed calls in a row as are in flight, and at half as many timeouts, which are long
# waits themselves: one wave without any answer.
FAILURES_A_WORKER = 2
LEAST_FAILURES, LEAST_AT_FIRST = 16, 8  # after the first answer; before it
TIMEOUT_COUNTS = 2
# After so many malformed answers, each of them paid, without a well-formed one, the address is not that of the API.
MOST_NONSENSE = 8
_OUTAGES = frozenset({"timeout", "connection", "overloaded", "rate_limited", "malformed_reply", "http_408"})
_CLOSED = FailedCall("rate_limited", "the API asked for a pause", "free")


@dataclass(frozen=True, slots=True)
class Connection:
    """How an API is reached. `place`: its address for messages, without anything secret. `advice`: what to do where
    nothing answers there. `connect`: opens the transport, in the event loop."""

    wire: WireFormat
    place: str
    advice: str
    connect: Callable[[], AbstractAsyncContextManager[Send]]


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
        found: list[Outcome | None] = [None] * len(requests)
        async with connection.connect() as send:
            queue, workers = CallQueue(connection.wire.calls(requests)), min(options.concurrency, len(requests))
            run = _Run(connection, send, options, deadline, calls, queue, workers, found, on_done)
            run.workers = [asyncio.create_task(run.work()) for _ in range(workers)]
            await run_all(run.workers)
        if run.stopped is not None:
            raise run.stopped
        return [outcome for outcome in found if outcome is not None]

    return run_alone(complete) if requests else []


@dataclass(slots=True)
class _Run:
    """One call of `run_calls`, shared by its workers.

    `answered`: a call was: later a broken connection fails single calls only. `nonsense`: malformed answers before the
    first well-formed one. `failed`, `weight`: timeouts and given-up calls since the last answer, and what they count
    for `FAILURES_A_WORKER`. `paused_until`, `spread`: of the pause while the API limits the account, and its jitter.
    `flying`: workers with a call in flight. `reserving`: one at a time, so that small calls do not starve a large one.
    `settled`: set when a call is settled, which may free part of the limit; `over`: why it admits no more
    calls. `stopped`: the error that ends the run after the calls in flight.
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
    nonsense: int = 0
    failed: int = 0
    weight: int = 0
    paused_until: float = 0.0
    spread: float = 0.0
    flying: set[asyncio.Task[None] | None] = field(default_factory=set)
    reserving: asyncio.Lock = field(default_factory=asyncio.Lock)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    over: str | None = None
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
            if self.over is not None and reservation is None:
                return self._give_up(call, FailedCall("max_cost", self.over, "free"), sent)
            sent += 1
            seconds = min(self.options.timeout, deadline - self.clock())
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
            late = self.clock() + wait > deadline - shortest
            if failure.limited:
                # A wait beyond the deadline does not stop the other calls for as long.
                pause = min(wait, doubling_wait(refusals)) if late else wait
                self.paused_until = max(self.paused_until, self.clock() + pause)
                self.spread = min(0.1 * pause, 2.0)
            if late:
                return self._give_up(call, self._too_late(failure), sent)
            if not failure.limited:
                await asyncio.sleep(wait)

    async def _wait_for_rate_limit(self, deadline: float) -> bool:
        """Wait until the rate limit ends, with random jitter; False where it lasts beyond the last moment to send."""
        while (left := self.paused_until - self.clock()) > 0:
            left += random.uniform(0, self.spread)
            if self.clock() + left > deadline:
                return False
            await asyncio.sleep(left)
        return True

    async def _reserve(self, call: Call, calls: StageCalls) -> PaidCall | None:
        """Reserve one attempt; None where the limit does not admit it even with nothing in flight."""
        bound = self.connection.wire.bound(call)
        async with self.reserving:  # in the order of waiting
            while self.over is None:
                try:
                    return calls.reserve(call, bound)
                except CostLimitError as error:
                    if not self.flying:
                        self.over = str(error)
                        break
                await self.settled.wait()
        return None

    async def _attempt(self, call: Call, body: Mapping[str, Any], reserved: PaidCall | None, seconds: float) -> Found:
        """Send once; settle what was reserved by what came, then deliver an answer."""
        worker, started = asyncio.current_task(), self.clock()
        self.flying.add(worker)
        try:
            arrived = await self.send(body, seconds)
        except BaseException:  # Ctrl-C or a bug: passed on after the call is settled
            self._settle(reserved, FailedCall("interrupted", "", "possibly_paid"))
            raise
        finally:
            self.flying.discard(worker)
        took = round(self.clock() - started, 3)
        response = arrived if isinstance(arrived, FailedCall) else self._read(arrived, call, took)
        self._settle(reserved, response)
        if isinstance(response, Answer):
            self.answered = True
            self.failed = self.weight = 0
            self._deliver(call, list(response.replies))
        return response

    def _read(self, arrived: Arrived, call: Call, seconds: float) -> Found:
        wire, headers = self.connection.wire, arrived.headers
        try:
            body: object = json.loads(arrived.content)
        except (ValueError, RecursionError):
            body = arrived.content
        if arrived.status >= 300:
            return wire.read_error(arrived.status, body, headers)
        return wire.read(body, call, headers.get("x-request-id") or headers.get("request-id"), seconds)

    def _settle(self, reservation: PaidCall | None, found: Found) -> None:
        if self.calls is not None and reservation is not None:
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
        except BaseException:  # passed on once the other calls are cancelled
            self._cancel(set(self.workers))
            raise

    def _stops(self, failure: FailedCall) -> bool:
        place, advice = self.connection.place, self.connection.advice
        if failure.fatal is not None and not (failure.at_first and self.answered):
            self._stop((ModelCallError if failure.reason == "no_credit" else ConfigError)(failure.fatal))
        elif failure.reason == "connection" and failure.billing == "free" and not self.answered:
            self._stop(ModelCallError(f"{place} does not answer ({failure.message}): {advice}"))
        elif self.calls is not None and failure.reason == "malformed_reply" and not self.answered:
            self.nonsense += 1
            if self.nonsense == MOST_NONSENSE:
                what = f"(the first {MOST_NONSENSE} answers are malformed: {failure.message}): {advice}"
                self._stop(ConfigError(f"{place} is not the API of {self.connection.wire.model} {what}"))
        elif failure.reason == "timeout":
            self._count_failed(failure, TIMEOUT_COUNTS)
        return self.stopped is not None

    def _give_up(self, call: Call, failure: FailedCall, sent: int) -> bool:
        """Deliver a failure that is not sent again; returns False: the call was not answered."""
        self._deliver(call, outcomes(failure, call, sent))
        # A refusal of one item (HTTP 400, too long a prompt, a filter) is neither an outage nor an answer.
        if failure.reason != "timeout" and (failure.reason in _OUTAGES or failure.reason.startswith("http_5")):
            self._count_failed(failure, 1)
        return False

    def _count_failed(self, failure: FailedCall, weight: int) -> None:
        """Pause the run once too many calls in a row failed: the circuit breaker."""
        self.failed += 1
        self.weight += weight
        least = LEAST_FAILURES if self.answered else LEAST_AT_FIRST
        if self.weight >= max(least, FAILURES_A_WORKER * self.concurrency):
            what = f"{self.failed:,} calls in a row (the last: {failure.message})"
            goes_on = "answers are kept, and the same command continues when it answers again"
            self._stop(PausedError(f"paused: {self.connection.place} did not answer {what}; {goes_on}"))

    def _stop(self, error: H2HTalkError) -> None:
        """End the run, after the calls in flight where their replies are paid."""
        if self.stopped is None:
            self.stopped = error
            self._cancel(set(self.workers) - (self.flying if self.calls is not None else set()))

    def _cancel(self, workers: set[asyncio.Task[None]]) -> None:
        """Cancel these workers except the current one."""
        for worker in workers - {asyncio.current_task()}:
            worker.cancel()

    def _too_late(self, failure: FailedCall) -> FailedCall:
        asked = f"it asks for a pause of {failure.wait:,g} s, and " if failure.wait else ""
        late = f"{asked}no time is left of the {self.deadline:.6g} s that one request may take"
        return replace(failure, message=f"{failure.message}; {late}")


# --- When a call is sent ----------------------------------------------------------------------------------------


class CallQueue:
    """Calls by cached prefix. The first call of a prefix is sent alone, because its answer shows that the cache is
    written; the others follow in turns, so that no cache expires. Calls that come from an iterator have no prefix, and
    are built when they are taken. Create it inside an event loop."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._groups: dict[str | None, deque[Call]] = {}
        self._built_late = iter(() if isinstance(calls, Sequence) else calls)
        for call in calls if isinstance(calls, Sequence) else ():
            self._groups.setdefault(call.prefix, deque()).append(call)
        self._warm: set[str | None] = {None}
        self._ahead: set[str | None] = set()  # prefixes whose first call is on its way
        self._changed = asyncio.Event()

    async def take(self) -> Call | None:
        """Return the next call, None when all are taken; waits while all others wait for the first of their prefix."""
        while self._groups:
            if (prefix := next((one for one in self._groups if one not in self._ahead), ...)) is not ...:
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
    # An API that asks for no wait and refuses again is not called in a tight loop.
    return max(failure.wait, doubling_wait(refusals - 1) if refusals > 1 else 0.0)


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
    begun: list[asyncio.Task[Any]] = []

    async def run() -> T:
        begun.extend(filter(None, [asyncio.current_task()]))
        return await start()

    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(lambda: asyncio.run(run()))
        try:
            return ended.result()
        except KeyboardInterrupt:
            for task in begun:
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
        ends = await asyncio.gather(*workers, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end
