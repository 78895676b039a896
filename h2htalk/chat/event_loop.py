"""Run the workers of a synchronous `complete` in an event loop of its own, all of them to their end."""

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
    if in_running_loop():
        raise ConfigError(inside_loop("chat.complete, requests"))
    return asyncio.run(start())


def in_running_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def inside_loop(call: str) -> str:
    """Return the error message for a call inside a running loop; `call`: the call to run in a thread instead."""
    name = call.partition(",")[0].rpartition(".")[2]
    return (
        f"{name}() cannot run inside a running event loop (a notebook, an async function); "
        f"call it in a thread: await asyncio.to_thread({call})"
    )


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
