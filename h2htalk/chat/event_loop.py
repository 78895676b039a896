"""How a synchronous `complete` runs its workers: in an event loop of its own, and all of them to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from h2htalk.errors import ConfigError

T = TypeVar("T")


def run_alone(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in an event loop of its own, in this thread.

    Raises:
        ConfigError: a loop runs in this thread already.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    raise ConfigError(
        "complete() cannot run inside a running event loop (a notebook, an async function); "
        "call it in a thread: await asyncio.to_thread(chat.complete, requests)"
    )


async def run_all(workers: Sequence[asyncio.Task[None]]) -> None:
    """Wait for all; when one raises, or this is cancelled (Ctrl-C), cancel the others and see them end."""
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
