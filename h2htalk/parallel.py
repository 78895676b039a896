"""Run functions in worker processes that end with their parent; Ctrl-C ends the pool.

The processes are started by `spawn`: a script that uses the pool does its work under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from itertools import islice, starmap
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import FrameType, TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from h2htalk.errors import ConfigError
from h2htalk.interrupts import LONGEST_STOP, WORK_SHARE

P = ParamSpec("P")
T = TypeVar("T")
# Calls a function with each job's arguments on many machines, instead of `ProcessPool`; gives the results as they come.
Executor = Callable[[Callable[..., Any], Sequence[tuple[object, ...]]], Iterable[Any]]
EXECUTOR: ContextVar[Executor | None] = ContextVar("EXECUTOR", default=None)

_BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
# Seconds that running work has to finish after an error or Ctrl-C.
_GRACE = WORK_SHARE * LONGEST_STOP
_BROKEN = (
    "a worker process ended before its work was done (no memory left?): try --processes 1; a script "
    'of your own must do its work under `if __name__ == "__main__":`'
)


def usable_cores() -> int:
    """Count the processor cores that this process may use."""
    with contextlib.suppress(AttributeError):  # only Linux has it; elsewhere all cores count
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessPool(ProcessPoolExecutor):
    """A `ProcessPoolExecutor` for a `with` block, which waits for the work.

    An error or Ctrl-C in the block cancels what has not begun and gives running work 4 seconds. The block raises
    ConfigError where a worker process was killed.
    """

    def __init__(self, processes: int) -> None:
        """Create a pool of at most `processes` workers (1 or more); each starts when there is work for it."""
        context = get_context("spawn")
        # Nothing is ever sent: the end of the pipe, closed here or by the death of this process, ends the workers.
        parent_closed, self._lifeline = context.Pipe(duplex=False)
        super().__init__(processes, context, _initialize, (parent_closed,))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a worker; the function, its arguments and its result must be picklable."""
        with _sigint_blocked():
            return super().submit(fn, *args, **kwargs)

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        self._sets_sigint = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._sets_sigint:
            signal.signal(signal.SIGINT, _interrupt_once)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        timer = threading.Timer(_GRACE, self._lifeline.close)
        try:
            if kind is not None:
                timer.start()
            self.shutdown(cancel_futures=True)
        finally:
            timer.cancel()
            self._lifeline.close()
            if self._sets_sigint:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        if isinstance(error, BrokenProcessPool):
            raise ConfigError(_BROKEN) from error


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """Ignore a second Ctrl-C while the first is handled: it would leave locks taken and processes behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _initialize(parent_closed: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the workers
    for name in _BLAS_THREADS:  # before numpy is loaded: the processes are the parallelism
        os.environ[name] = "1"
    threading.Thread(target=_exit_with_parent, args=(parent_closed,), daemon=True).start()


def _exit_with_parent(parent_closed: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        parent_closed.recv_bytes()
    os._exit(1)


@contextlib.contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Delay Ctrl-C while a worker starts: the worker inherits the mask and prints no traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def worker_count(processes: int | None) -> int:
    """How many jobs run at once: `processes` or the usable cores; as many as there are with another executor."""
    return sys.maxsize if EXECUTOR.get() else processes or usable_cores()


def in_processes(
    function: Callable[..., T], jobs: Sequence[tuple[object, ...]], processes: int
) -> Generator[T, None, None]:
    """Call a function with each job's arguments in processes, by `EXECUTOR` where it is set, or for one process in this
    one; give the results as they come. Close it to end early."""
    executor = EXECUTOR.get()
    if executor or processes <= 1:
        yield from (
            executor(function, jobs) if executor and processes > 1 else starmap(function, jobs)
        )
        return
    with ProcessPool(processes) as pool:
        waiting = iter(jobs)
        # Submit a few ahead only: a million dialogues are thousands of parts.
        futures = {pool.submit(function, *job) for job in islice(waiting, 2 * processes)}
        while futures:
            done, futures = wait(futures, return_when=FIRST_COMPLETED)
            futures.update(pool.submit(function, *job) for job in islice(waiting, len(done)))
            for future in done:
                yield future.result()
