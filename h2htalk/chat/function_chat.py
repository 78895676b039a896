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
    """Return the entries of a signature about a function: `module.qualname`, for another callable that of its class."""
    definition = function if hasattr(function, "__qualname__") else type(function)
    name = f"{definition.__module__}.{definition.__qualname__}"
    return {"function": name, "max_tokens": "model's own"}


class FunctionChat:
    """Calls a function once for each request. An exception, or a result that is not text, is a failure of that item."""

    def __init__(self, name: str, options: ChatOptions) -> None:
        if options.function is None:
            advice = f"h2htalk.evaluate(h2htalk.EvaluateSpec(model=FUNCTION, name={name!r}, ...)) asks it"
            raise ConfigError(
                f"python:{name} is a function of somebody's Python code, which no file holds: {advice}"
            )
        self._function = options.function
        self._concurrency = options.concurrency
        self._timeout = options.timeout
        self.subject = {"engine": "python", "model": name, **function_keys(options.function)}

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """See `Chat.complete`; `on_done` is called in the thread of the event loop."""
        outcomes = dict[int, Outcome]()
        waiting = iter(range(len(requests)))  # shared by the workers
        workers = min(self._concurrency, len(requests))

        async def work(threads: ThreadPoolExecutor) -> None:
            for index in waiting:
                outcome = await self._ask(requests[index], threads)
                outcomes[index] = outcome
                if on_done is not None:
                    on_done(index, outcome)

        async def complete() -> None:
            with ThreadPoolExecutor(workers) as threads:
                await run_all([asyncio.create_task(work(threads)) for _ in range(workers)])

        if requests:
            run_alone(complete)
        return [outcomes[index] for index in range(len(requests))]

    def close(self) -> None:
        """Do nothing."""

    async def _ask(self, request: Request, threads: ThreadPoolExecutor) -> Outcome:
        messages = [message.to_dict() for message in request.messages]
        started = time.monotonic()
        result = await asyncio.get_running_loop().run_in_executor(threads, self._call, messages)
        try:
            if inspect.isawaitable(result):
                async with asyncio.timeout(self._timeout):
                    result = await result
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if task and task.cancelling():  # the run ends
                raise
            result = error
        kind = type(result).__name__
        if isinstance(result, Exception | asyncio.CancelledError):
            reason = "timeout" if isinstance(result, TimeoutError) else "exception"
            return Failure(reason, shorten(f"{kind}: {result}".removesuffix(": "), 300))
        if not isinstance(result, str):
            return Failure("not_text", f"the function returned {kind}, not text")
        return Reply(result, seconds=round(time.monotonic() - started, 3))

    def _call(self, messages: list[dict[str, str]]) -> Any:
        """Return what the function returns or raises: a future that raises StopIteration would never end."""
        try:
            return self._function(messages)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - as above
            return error
