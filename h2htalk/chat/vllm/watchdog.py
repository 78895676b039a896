"""Ends vLLM's processes when the process that started them is gone, however it went (kill -9 included).

python vllm_guard.py PID FOLDER    (started by `vllm_process`, which holds the other end of its standard input)

vLLM's engine does not notice that its parent was killed: it would hold the GPU's memory for ever. This small
process notes every child that appears until it reads `ready`, waits for the end of its input, which comes when
the parent is gone, and then kills what it noted, with all that descends from it, and removes the parent's
temporary folder. It knows nothing but the standard library, since it stays as long as the engine. Linux only: it
reads /proc.
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
GRACE = 1.0  # seconds in which the engine may end by itself when its parent ended in order

Process = tuple[int, str]  # its number and when it started: numbers are used again


def started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None when it is gone or dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name, in brackets, may hold anything; the state follows it.
            words = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if words[0] in (b"Z", b"X") else words[19].decode()


def children(pid: int) -> set[Process]:
    """The living children of a process, but for Python's own tracker of shared memory."""
    numbers: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as stream:
                numbers.update(map(int, stream.read().split()))
    found = {(number, started(number)) for number in numbers if number != os.getpid()}
    return {(number, when) for number, when in found if when is not None and not _is_tracker(number)}


def _is_tracker(pid: int) -> bool:
    """Whether it is the tracker, which ends by itself and first gives shared memory back."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return b"resource_tracker" in stream.read()
    except OSError:
        return False


def family(processes: set[Process]) -> set[Process]:
    """The processes and all that descends from them."""
    found: set[Process] = set()
    new = {process for process in processes if started(process[0]) == process[1]}
    while new:
        found |= new
        new = set[Process]().union(*(children(pid) for pid, _ in new)) - found
    return found


def kill_family(processes: set[Process]) -> None:
    """Kill them and their descendants, those first seen meanwhile included."""
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

    `folder` is removed unless the parent, which then does so itself, still lives.
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
            said = os.read(0, 64)
            if not said:
                break
            noted |= children(parent) - before
            noting = False
    # Workers hang on their engine only: they are noted before it goes.
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
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C and a closed terminal are the parent's to answer
    watch(int(sys.argv[1]), sys.argv[2])
