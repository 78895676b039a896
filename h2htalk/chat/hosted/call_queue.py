"""The order of calls: each cached prefix is written once before it is read, and all calls wait on a rate limit."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Sequence

from h2htalk.chat.calls import Call, FailedCall
from h2htalk.chat.server.wire import doubling_wait


class CallQueue:
    """Calls by cached prefix. The first call of a prefix is sent alone, because its answer shows that the cache is
    written; the others follow in turns, so that no cache expires. Create it inside an event loop."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._groups: OrderedDict[str | None, deque[Call]] = OrderedDict()
        for call in calls:
            self._groups.setdefault(call.prefix, deque()).append(call)
        self._warm: set[str | None] = {None}
        self._ahead: set[str | None] = set()
        self._changed = asyncio.Event()

    async def take(self) -> Call | None:
        """Return the next call, None when all are taken; waits while all others wait for the first of their prefix."""
        while self._groups:
            prefix = next((p for p in self._groups if p in self._warm or p not in self._ahead), None)
            if prefix in self._groups:
                return self._pop(prefix)
            await self._changed.wait()
        return None

    def _pop(self, prefix: str | None) -> Call:
        calls = self._groups[prefix]
        call = calls.popleft()
        if prefix not in self._warm:
            self._ahead.add(prefix)
        if calls:
            self._groups.move_to_end(prefix)
        else:
            del self._groups[prefix]
        return call

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
    """Return the seconds until the next attempt of a call: as the API asks, else doubling.

    `tries`: its failed attempts so far; `refusals`: those that a rate limit refused.
    """
    if failure.limited:
        # An API that asks for no wait and refuses again is not called in a tight loop.
        least = doubling_wait(refusals - 1) if refusals > 1 else 0.0
        return doubling_wait(refusals) if failure.wait is None else max(failure.wait, least)
    if failure.wait is not None:
        return failure.wait
    return doubling_wait(tries)


def seconds_text(seconds: float) -> str:
    """Format seconds, also where an API asks for very many."""
    return f"{seconds:,.0f} s" if 10 <= seconds <= 1e9 else f"{seconds:.3g} s"
