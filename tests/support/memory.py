"""The most memory that a process takes.

`ru_maxrss` hides it: a child begins with its parent's, and a process keeps that of all that it did before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Defines `peak`, KiB of the process itself, in the code of a process that a test starts.
PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
"""


def peak_of(process: int | str = "self") -> int:
    """The most KiB that a process has held since it began, or since `measured_memory` did; 0 for one that ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return 0


@contextmanager
def measured_memory() -> Iterator[Callable[[], int]]:
    """Give a function that returns the most KiB that this process has held beside what it held before."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # `VmHWM` begins anew
    before = peak_of()
    yield lambda: peak_of() - before


@contextmanager
def watched_memory(find_child: Callable[[], int | None]) -> Iterator[Callable[[], int]]:
    """Give a function that returns the most KiB of a child, which `find_child` names by its process number, while the
    block ran: a child that ended can no longer be asked."""
    peaks = [0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            child = find_child()
            if child is not None:
                peaks.append(max(peaks[-1], peak_of(child)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: peaks[-1]
    finally:
        ended.set()
        watcher.join()
