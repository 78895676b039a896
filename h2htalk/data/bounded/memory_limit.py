"""A limit on the memory that a call may take, which the operating system holds."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

# The limit is one of the whole process: threads set it in turn.
_LIMIT_SET = threading.Lock()


@contextlib.contextmanager
def limited_memory(most: int) -> Iterator[None]:
    """Let this process take at most so many bytes more while the block runs; beyond them it raises MemoryError.

    Linux alone has such a limit; elsewhere the block runs without one. Threads share it, so the block should be short.
    """
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            pages_held = int(file.read().split()[5])
    except (ImportError, OSError):
        yield
        return
    with _LIMIT_SET:
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = pages_held * resource.getpagesize() + most
        if soft != resource.RLIM_INFINITY:
            limit = min(limit, soft)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
