"""End vLLM's processes when the process that started them has ended for any reason (kill -9 included).

python watchdog.py PID FOLDER    (started by `processes`, which holds the other end of its standard input)

vLLM's engine does not notice that its parent was killed: it would hold the GPU's memory for ever. This small
process notes every child that appears until it reads `ready`, and waits for the end of its input, which comes when
the parent has ended. Then it kills these children and their descendants, and removes the parent's temporary folder.
It imports only the standard library, because it runs as long as the engine. Linux only: it reads /proc.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time

LOOK_EVERY = 0.2  # seconds
GRACE = 1.0  # seconds in which the engine may end by itself when its parent closes it

Process = tuple[int, str]  # its number and when it started, because numbers are reused


def started(pid: int) -> str | None:
    """Return when a process started, in the kernel's ticks; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name, in parentheses, may contain anything; the state follows it.
            words = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if words[0] in (b"Z", b"X") else words[19].decode()


def children(pid: int) -> set[Process]:
    """Return the living children of a process, except Python's own tracker of shared memory."""
    numbers: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as stream:
                numbers.update(map(int, stream.read().split()))
    found = {(number, started(number)) for number in numbers if number != os.getpid()}
    return {(number, when) for number, when in found if when is not None and not _is_tracker(number)}


def _is_tracker(pid: int) -> bool:
    """Whether it is Python's resource tracker, which frees shared memory and then ends by itself."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return b"resource_tracker" in stream.read()
    except OSError:
        return False


def family(processes: set[Process]) -> set[Process]:
    """Return the processes that still run, and all their descendants."""
    found: set[Process] = set()
    new = {process for process in processes if started(process[0]) == process[1]}
    while new:
        found |= new
        new = set[Process]().union(*(children(pid) for pid, _ in new)) - found
    return found


def kill_family(processes: set[Process]) -> None:
    """Kill the processes and their descendants, also those that appear meanwhile."""
    known = set(processes)
    while alive := family(known):
        known |= alive
        for pid, when in alive:
            if started(pid) == when:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def watch(parent: int, folder: str) -> None:
    """Note the children of `parent` that appear until `ready`; when the input ends, end them.

    Then remove `folder` if the parent has ended; a parent that still runs does so itself.
    """
    before = children(parent)
    print("watching", flush=True)
    noted: set[Process] = set()
    noting = True
    while True:
        if noting:
            noted |= children(parent) - before
        readable, _, _ = select.select([0], [], [], LOOK_EVERY if noting else None)
        if readable:
            received = os.read(0, 64)
            if not received:
                break
            noted |= children(parent) - before
            noting = False
    # Workers are children of the engine, not of the parent: note them before the engine ends.
    noted = family(noted) | noted
    if started(parent) is not None:
        deadline = time.monotonic() + GRACE
        while family(noted) and time.monotonic() < deadline:
            time.sleep(0.05)
    kill_family(noted)
    if started(parent) is None:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent handles Ctrl-C and a closed terminal
    watch(int(sys.argv[1]), sys.argv[2])
