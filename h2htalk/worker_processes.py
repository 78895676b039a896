"""Work in other processes, on every core: no process hangs, outlives its parent, or says a word at Ctrl-C.

Started by `spawn`: a script that uses them does its work under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import RawValue
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from h2htalk.errors import ConfigError, H2HTalkError

T = TypeVar("T")

_BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_LOOK = 0.2  # seconds between two looks at whether Ctrl-C was pressed
_GRACE = 4.0  # seconds that a process has for the work in its hands once something went wrong
_LAST_GRACE = 1.0  # from asking it to end to ending it

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
    """Processes that run functions. Leaving the block ends them, whatever ended it: what is not begun is dropped, and
    after an error what is begun has a few seconds. Inside, a second Ctrl-C changes nothing."""

    def __init__(self, processes: int) -> None:
        """`processes`, 1 or more; each starts when there is work for it."""
        context = multiprocessing.get_context("spawn")
        # Without a lock: a process that is killed while it looks would keep it for ever.
        self._stop = RawValue(ctypes.c_bool, False)
        self._pool = ProcessPoolExecutor(processes, context, _start, (self._stop,))
        self._entered = False

    def submit(self, function: Callable[..., T], *args: object) -> Future[T]:
        """Have a function run in one of the processes; it and its arguments can be pickled.

        The future raises what `result_of` says; cancelled, it never ran.

        Raises:
            ConfigError: one of the processes ended before its work was done.
        """
        with _ctrl_c.waits(), _deaf_to_ctrl_c():
            try:
                return self._pool.submit(_work, function, *args)
            except BrokenProcessPool as error:
                raise ConfigError(_ENDED) from error

    def __enter__(self) -> Self:
        _ctrl_c.enter()
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pressed = False
        try:
            with _ctrl_c.held():
                self._end(hurry=kind is not None)
        finally:
            pressed = self._entered and _ctrl_c.leave()
        if pressed and kind is None:
            raise KeyboardInterrupt

    def _end(self, hurry: bool) -> None:
        self._stop.value = True
        # What `shutdown` forgets: the processes, the thread that serves them, and what it listens to.
        processes = tuple((self._pool._processes or {}).values())
        server: Any = self._pool._executor_manager_thread
        heard: Any = self._pool._result_queue
        self._pool.shutdown(wait=False, cancel_futures=True)
        while not hurry and not _ended(processes, _LOOK):
            hurry = _ctrl_c.pressed
        for grace, end in ((_GRACE, BaseProcess.terminate), (_LAST_GRACE, BaseProcess.kill)):
            for process in processes if not _ended(processes, grace) else ():
                end(process)
        _ended(processes, _LAST_GRACE)
        if server is not None:
            server.join(_LAST_GRACE)
            if server.is_alive():  # it reads half a result of a process that is gone
                heard._writer.close()
                server.join(_LAST_GRACE)


def result_of(future: Future[T]) -> T:
    """What the function gave; waits for it.

    Raises:
        ConfigError: the process ended before its work was done; or, with its message, an error of the user's world.
    """
    next_done((future,))
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise ConfigError(_ENDED) from error


def next_done(futures: Collection[Future[T]]) -> Future[T]:
    """One that is done, of one or more; waits for the first."""
    with _ctrl_c.waits():
        while not (done := wait(futures, _LOOK, FIRST_COMPLETED).done):
            _ctrl_c.raise_if_pressed()
    return next(iter(done))


def _ended(processes: Collection[BaseProcess], seconds: float) -> bool:
    """Whether they have all ended, after waiting for it so long at most."""
    left, until = {process.sentinel for process in processes}, time.monotonic() + seconds
    while left:
        rest = until - time.monotonic()
        left -= set(wait_for(list(left), max(0.0, rest)))
        if rest <= 0:
            break
    return not left


# --- Ctrl-C -------------------------------------------------------------------------------------------------------


class _CtrlC:
    """Ctrl-C in a block of processes: raised once, and never while a lock of the pool is held or its processes end.

    Raised anywhere, it would leave a lock taken for ever that others wait for; the second one, sent to the process and
    then to its group, would break off the waiting for the processes.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._raised = False
        self._holding = 0
        self._blocks = 0
        self._before: object = None

    def enter(self) -> None:
        self._blocks += 1
        mine = threading.current_thread() is threading.main_thread()
        if self._blocks == 1 and mine and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.pressed = self._raised = False
            self._before = signal.signal(signal.SIGINT, self._heard)

    def leave(self) -> bool:
        """Whether it was pressed and nobody was told."""
        self._blocks -= 1
        if self._blocks or self._before is None:
            return False
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._before = None
        told, self.pressed = self._raised or not self.pressed, False
        return not told

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        if not self._holding:
            self.raise_if_pressed()

    def raise_if_pressed(self) -> None:
        if self.pressed and not self._raised:
            self._raised = True
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Within, it is only noted."""
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1

    @contextlib.contextmanager
    def waits(self) -> Iterator[None]:
        """Within, it is only noted, and raised at the end."""
        with self.held():
            yield
        self.raise_if_pressed()


_ctrl_c = _CtrlC()


# --- In a process of its own ------------------------------------------------------------------------------------

_stopped: ctypes.c_bool | None = None


def _start(stop: ctypes.c_bool) -> None:
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
    if _stopped is not None and _stopped.value:
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
