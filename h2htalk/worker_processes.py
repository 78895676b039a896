"""Work in other processes, on every core: no process hangs, outlives its parent, or says a word at Ctrl-C.

Started by `spawn`: a script that uses them does its work under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from types import TracebackType
from typing import Self, TypeVar

from h2htalk.errors import ConfigError, H2HTalkError

T = TypeVar("T")

_BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

_ENDED = (
    "a worker process ended before its work was done (no memory left?): try --processes 1; a script "
    'of your own must do its work under `if __name__ == "__main__":`'
)


def usable_cores() -> int:
    """The processor cores that this process may use."""
    with contextlib.suppress(AttributeError):  # Linux knows; elsewhere all cores count
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerProcesses:
    """Processes that run functions. Leaving the block ends them, whatever ended it: what is not begun is dropped."""

    def __init__(self, processes: int) -> None:
        """`processes`, 1 or more; each starts when there is work for it."""
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._pool = ProcessPoolExecutor(processes, context, _start, (self._stop,))

    def submit(self, function: Callable[..., T], *args: object) -> Future[T]:
        """Have a function run in one of the processes; it and its arguments can be pickled.

        The future raises what `result_of` says; cancelled, it never ran.

        Raises:
            ConfigError: one of the processes ended before its work was done.
        """
        with _deaf_to_ctrl_c():
            try:
                return self._pool.submit(_work, function, *args)
            except BrokenProcessPool as error:
                raise ConfigError(_ENDED) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)


def result_of(future: Future[T]) -> T:
    """What the function gave; waits for it.

    Raises:
        ConfigError: the process ended before its work was done; or, with its message, an error of the user's world.
    """
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise ConfigError(_ENDED) from error


# --- In a process of its own ------------------------------------------------------------------------------------

_stopped: Event | None = None


def _start(stop: Event) -> None:
    global _stopped
    _stopped = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    for name in _BLAS_THREADS:  # before numpy is loaded: the processes are the parallelism
        os.environ[name] = "1"
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed says nothing: without this, its processes would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(function: Callable[..., T], *args: object) -> T:
    if _stopped is not None and _stopped.is_set():
        raise ConfigError("stopped")  # nobody waits for it any more
    try:
        return function(*args)
    except H2HTalkError as error:  # some cannot be unpickled: their constructors take other arguments
        raise ConfigError(str(error)) from None


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """While a process starts: a Ctrl-C reaches it too, and would make it print a traceback of its start.

    It inherits the blocked signal; this process gets one that comes meanwhile right after.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
