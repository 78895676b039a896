"""When a call is sent: after the first of its cached prefix, after a pause that the API asks for, or no more at all."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from h2htalk.chat.calls import Call, FailedCall
from h2htalk.errors import PausedError

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds between tries: doubling
# The run pauses at twice as many failed calls in a row as are in flight, and at half as many timeouts, which are long
# waits themselves: one wave without any answer.
FAILURES_A_WORKER = 2
LEAST_FAILURES, LEAST_AT_FIRST = 16, 8  # after the first answer; before it
TIMEOUT_COUNTS = 2
# Of `timeout`: wait before a call that timed out is sent again, so that those sent with it time out first.
PAUSE_AFTER_TIMEOUT = 0.05
_OUTAGES = frozenset({"timeout", "connection", "overloaded", "rate_limited", "malformed_reply", "http_408"})


class CallQueue:
    """Calls by cached prefix. The first call of a prefix is sent alone, because its answer shows that the cache is
    written; the others follow in turns, so that no cache expires. Create it inside an event loop.

    Calls that come from an iterator have no prefix; each is built when it is taken.
    """

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


class RateLimitPause:
    """A pause of all calls while the API limits the account. Create it inside an event loop."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._until = 0.0
        self._spread = 0.0

    def close(self, seconds: float) -> None:
        """Pause all calls for at least so many seconds."""
        self._until = max(self._until, self._clock() + seconds)
        self._spread = min(0.1 * seconds, 2.0)

    def remaining(self) -> float:
        """Return the seconds to wait, with random jitter; 0 where there is no pause."""
        left = self._until - self._clock()
        return left + random.uniform(0, self._spread) if left > 0 else 0.0


def wait_for_next(failure: FailedCall, tries: int, refusals: int) -> float:
    """Return the seconds until the next attempt of a call: as the API asks, else doubling, with random jitter.

    `tries`: its failed attempts so far; `refusals`: those that a rate limit refused.
    """
    if failure.limited:
        # An API that asks for no wait and refuses again is not called in a tight loop.
        least = doubling_wait(refusals - 1) if refusals > 1 else 0.0
        return doubling_wait(refusals) if failure.wait is None else max(failure.wait, least)
    if failure.wait is not None:
        return failure.wait * random.uniform(1.0, 1.1)
    return doubling_wait(tries)


def doubling_wait(tries: int) -> float:
    """Return the seconds to wait after the tries-th failure (from 1): doubling up to a limit, with random jitter."""
    doubling: float = min(FIRST_WAIT * 2 ** min(tries - 1, 10), LONGEST_WAIT)
    return doubling * random.uniform(0.75, 1.25)


def seconds_text(seconds: float) -> str:
    """Format seconds, also where an API asks for very many."""
    return f"{seconds:,.0f} s" if 10 <= seconds <= 1e9 else f"{seconds:.3g} s"


@dataclass(slots=True)
class CircuitBreaker:
    """Counts what failed since the last answer: each timeout, and each call that was given up after its retries.

    A refusal of one item (HTTP 400, too long a prompt, a filter) is neither a failure of the endpoint nor an answer.
    """

    place: str
    workers: int
    calls: int = 0
    weight: int = 0
    least: int = LEAST_AT_FIRST

    def answered(self) -> None:
        """Start again at none: the endpoint answers."""
        self.calls = self.weight = 0
        self.least = LEAST_FAILURES

    def failed(self, reason: str, message: str, given_up: bool) -> PausedError | None:
        """Count a failed attempt; return the error that pauses the run once there are too many in a row.

        `given_up`: the call is not sent again. Before that only timeouts count, each of them.
        """
        timeout = reason == "timeout"
        if timeout == given_up or not (reason in _OUTAGES or reason.startswith("http_5")):
            return None
        self.calls += 1
        self.weight += TIMEOUT_COUNTS if timeout else 1
        if self.weight < max(self.least, FAILURES_A_WORKER * self.workers):
            return None
        return PausedError(
            f"paused: {self.place} did not answer {self.calls:,} calls in a row (the last: {message}); answers are "
            "kept, and the same command continues when it answers again"
        )
