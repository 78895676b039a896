"""Which call goes next and when: caches are written once before they are read, and all wait when the API says so."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Sequence

from h2htalk.chat.calls import Call, FailedCall
from h2htalk.chat.server.wire import doubling_wait


class CallQueue:
    """Calls by their cached prefix. The first call of each goes ahead alone, as only its answer says that the cache
    is there; the others follow in turns, so that no cache grows old. Must be made inside an event loop."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._groups: OrderedDict[str | None, deque[Call]] = OrderedDict()
        for call in calls:
            self._groups.setdefault(call.prefix, deque()).append(call)
        self._warm: set[str | None] = {None}
        self._ahead: set[str | None] = set()
        self._changed = asyncio.Event()

    async def take(self) -> Call | None:
        """The next call; waits while all that are left wait for a first one. None: all are taken."""
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
        """A taken call came to its end: with an answer the others of its prefix go, else the next goes ahead."""
        if call.prefix is None or call.prefix in self._warm:
            return
        if answered:
            self._warm.add(call.prefix)
        self._ahead.discard(call.prefix)
        self._changed.set()
        self._changed = asyncio.Event()


class RateLimitPause:
    """Closed for all calls while the API asks to be left alone. Must be made inside an event loop."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._until = 0.0
        self._spread = 0.0

    def close(self, seconds: float) -> None:
        """Keep all waiting for so long, at least."""
        self._until = max(self._until, self._clock() + seconds)
        self._spread = min(0.1 * seconds, 2.0)

    def remaining(self) -> float:
        """Seconds to wait, spread so that not all come at once; 0 when it is open."""
        left = self._until - self._clock()
        return left + random.uniform(0, self._spread) if left > 0 else 0.0


def wait_for_next(found: FailedCall, tries: int, refusals: int) -> float:
    """Seconds until a call's next attempt: as the API asks, else doubling.

    `tries`: its attempts so far that failed; `refusals`: those that the API refused, with the whole account, for now.
    """
    if found.limited:
        # Whoever asks for no wait at all, and refuses again, is not asked over and over.
        least = doubling_wait(refusals - 1) if refusals > 1 else 0.0
        return doubling_wait(refusals) if found.wait is None else max(found.wait, least)
    if found.wait is not None:
        return found.wait
    # The time that was lost in a timeout has been wait enough.
    return 0.0 if found.reason == "timeout" else doubling_wait(tries)


def seconds_text(seconds: float) -> str:
    """Seconds as people read them, also where an API asks for very many."""
    return f"{seconds:,.0f} s" if 10 <= seconds <= 1e9 else f"{seconds:.3g} s"
