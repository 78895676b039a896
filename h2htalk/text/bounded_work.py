"""Do work that a stranger's templates decide in a child process first, with bounds on its time and memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from h2htalk.errors import ConfigError, H2HTalkError

MEMORY = 1 << 30  # bytes more than the process has
_NO_MEMORY = 3  # exit code of the child


def require_bounded(work: Callable[[], object], what: str, seconds: int) -> None:
    """Try some work in a child process. What it raises there is of no interest: the caller does the work again.

    Args:
        work: has no effect outside memory.
        what: for the message.
        seconds: of the processor that it may take; ten times as many on the clock.

    Raises:
        ConfigError: it takes longer, or needs more than 1 GiB of memory.
    """
    if not hasattr(os, "fork"):  # Windows has no child with the same memory: the work is done without bounds
        return
    child = os.fork()
    if not child:
        code = 0
        try:
            _limit(seconds)
            work()
        except (MemoryError, H2HTalkError) as error:
            code = _NO_MEMORY if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError) else 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
        raise ConfigError(f"{what}: takes more than {seconds} s of the processor; is there a loop in a loop?")
    if status:
        raise ConfigError(f"{what}: needs more than {MEMORY >> 30} GiB of memory; is something repeated too often?")


def _limit(seconds: int) -> None:
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0]) if os.path.exists("/proc/self/statm") else 0
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    for number in (signal.SIGXCPU, signal.SIGALRM):  # a handler would wait for the end of a long operation
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
