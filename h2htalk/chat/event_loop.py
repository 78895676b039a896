"""Run the workers of a synchronous `complete` in an event loop of its own, all of them to their end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_alone(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in an event loop of its own; where a loop runs already (a notebook), in a thread of its own.

    Ctrl-C cancels the coroutine and waits for its end in both cases.
    """
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
