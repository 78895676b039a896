"""A function of the user's own Python as a model: `h2htalk.evaluate(EvaluateSpec(model=function, name="mine", ...))`.

It takes the messages of a chat, a list of {"role", "content"}, and returns the reply as text. A coroutine function runs
in one event loop, at most `concurrency` calls at once, each for at most `timeout` seconds; any other function in as
many threads, which nothing can stop.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.live_calls import run_all, run_alone
from h2htalk.chat.protocol import OnDone, Outcome, Reply, Request
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, shorten


def function_keys(function: Callable[..., Any]) -> dict[str, str]:
    """What a signature says of a function beside its name: `module.qualname`, of another callable that of its class."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return {"function": f"{named.__module__}.{named.__qualname__}", "max_tokens": "model's own"}


class PythonChat:
    """Calls a function once for each request. An exception, or what is not text, is the failure of that item."""

    def __init__(self, name: str, options: ChatOptions) -> None:
        if options.function is None:
            asks = f"h2htalk.evaluate(h2htalk.EvaluateSpec(model=FUNCTION, name={name!r}, ...)) asks it"
            raise ConfigError(f"python:{name} is a function of somebody's Python code, which no file holds: {asks}")
        self._function, self._concurrency, self._timeout = options.function, options.concurrency, options.timeout
        self.subject = {"engine": "python", "model": name, **function_keys(options.function)}

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`; `on_done` is called in the thread of the event loop."""
        found = dict[int, Outcome]()
        todo, workers = iter(range(len(requests))), min(self._concurrency, len(requests))

        async def work(threads: ThreadPoolExecutor) -> None:
            for index in todo:  # shared by the workers
                found[index] = outcome = await self._ask(requests[index], threads)
                if on_done is not None:
                    on_done(index, outcome)

        async def complete() -> None:
            with ThreadPoolExecutor(workers) as threads:
                await run_all([asyncio.create_task(work(threads)) for _ in range(workers)])

        if requests:
            run_alone(complete)
        return [found[index] for index in range(len(requests))]

    def close(self) -> None:
        """Do nothing."""

    async def _ask(self, request: Request, threads: ThreadPoolExecutor) -> Outcome:
        messages, started = [{"role": one.role, "content": one.content} for one in request.messages], time.monotonic()
        given = await asyncio.get_running_loop().run_in_executor(threads, self._call, messages)
        try:
            if inspect.isawaitable(given):
                async with asyncio.timeout(self._timeout):
                    given = await given
        except (Exception, asyncio.CancelledError) as error:
            if (task := asyncio.current_task()) and task.cancelling():  # the run ends
                raise
            given = error
        if isinstance(given, Exception | asyncio.CancelledError):
            reason = "timeout" if isinstance(given, TimeoutError) else "exception"
            return Failure(reason, shorten(f"{type(given).__name__}: {given}".removesuffix(": "), 300))
        if not isinstance(given, str):
            return Failure("not_text", f"the function returned {type(given).__name__}, not text")
        return Reply(given, seconds=round(time.monotonic() - started, 3))

    def _call(self, messages: list[dict[str, str]]) -> Any:
        """What the function returns or raises: a future that raises StopIteration would never end."""
        try:
            return self._function(messages)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - as above
            return error
