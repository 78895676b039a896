"""Run a command so that none of its processes outlives the process that asked for it (kill -9 included).

python supervisor.py PARENT FOLDER COMMAND...    (started by `engine`, which holds the other end of its standard input)

vLLM's engine does not notice that its server was killed: it would hold the GPU's memory for ever. The supervisor adopts
all descendants and ends them when the command has ended, when its input ends, or when PARENT has ended; in the last
case it also removes FOLDER. It imports only the standard library, because it runs as long as the engine. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

LOOK_EVERY = 0.2  # seconds
GRACE = 5.0  # seconds in which processes may end by themselves
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
)  # for the parent: Ctrl-C, a closed terminal


def supervise(parent: int, folder: str, command: list[str]) -> None:
    """Run the command and end all its processes; see the module."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=prepare)
    # The end of the input alone does not tell that the parent ended: a process that it forked may hold it open.
    while (
        server.poll() is None
        and os.getppid() == parent
        and not select.select([0], [], [], LOOK_EVERY)[0]
    ):
        pass
    server.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(GRACE)
    end_children()
    if os.getppid() != parent:
        shutil.rmtree(folder, ignore_errors=True)


def end_children() -> None:
    """Kill all descendants: one whose parent ends becomes a child of this process.

    Python's trackers of shared memory first get the time to free it.
    """
    deadline = time.monotonic() + GRACE
    while numbers := children(os.getpid()):
        for pid in numbers:
            with contextlib.suppress(OSError):
                tracker = b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
                if not tracker or time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Return the children of a process, ended ones that nobody waited for included."""
    numbers: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            numbers.extend(map(int, path.read_text().split()))
    return numbers


if __name__ == "__main__":
    supervise(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
