"""Processes that work: one that dies is told in words, wherever the next work is handed over or waited for."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from h2htalk.errors import ConfigError
from h2htalk.worker_processes import WorkerProcesses, result_of


def test_a_killed_process_is_told_in_words() -> None:
    """Handing over the next work ended in a traceback of the pool: only waiting for work was told in words."""
    with WorkerProcesses(1) as workers:
        future = workers.submit(os.kill, os.getpid(), 0)
        assert result_of(future) is None
        dying = workers.submit(_die)
        with pytest.raises(ConfigError, match="a worker process ended before its work was done"):
            result_of(dying)
        with pytest.raises(ConfigError, match="a worker process ended before its work was done"):
            workers.submit(time.sleep, 0)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# --- Ctrl-C -----------------------------------------------------------------------------------------------------

# What a command does that works in processes: it says that it is stopped, and ends as `output` has it.
COMMAND = """
import sys, time
from h2htalk.output import deaf_to_ctrl_c, one_line_errors, say
from h2htalk.worker_processes import WorkerProcesses, next_done, result_of
from test_worker_processes import DEEDS

if __name__ == "__main__":
    with one_line_errors():
        try:
            with WorkerProcesses(2) as workers:
                futures = {workers.submit(DEEDS[sys.argv[1]]) for _ in range(4)}
                print("begun", flush=True)
                while True:
                    futures.remove(done := next_done(futures))
                    result_of(done)
                    futures.add(workers.submit(DEEDS[sys.argv[1]]))
        except KeyboardInterrupt:
            deaf_to_ctrl_c()
            say("stopped", err=True)
            raise
"""


def _short() -> None:
    time.sleep(0.01)


def _endless() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


DEEDS = {"short": _short, "endless": _endless}


def _begun(folder: Path, deed: str) -> subprocess.Popen[str]:
    """The command in a group of its own, as a shell starts one, when its processes are about to work."""
    script = folder / "command.py"
    script.write_text(COMMAND)
    process = subprocess.Popen(
        [sys.executable, str(script), deed],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def _end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        return process.wait(20), process.communicate()[1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("gap", [None, 0.0, 0.001, 0.02, 0.1, 0.4])
@pytest.mark.parametrize("seed", [0, 1])
def test_ctrl_c_once_or_twice_at_any_moment_ends_it_with_one_line(
    tmp_path: Path, gap: float | None, seed: int
) -> None:
    """A second one, to the group, broke off the waiting for the processes: the command hung for ever."""
    process = _begun(tmp_path, "short")
    time.sleep(random.Random(f"{gap}/{seed}").uniform(0, 1.5))
    os.kill(process.pid, signal.SIGINT)
    if gap is not None:
        time.sleep(gap)
        os.killpg(process.pid, signal.SIGINT)
    assert _end_of(process) == (130, "stopped\n")


def test_a_process_that_will_not_end_is_ended(tmp_path: Path) -> None:
    process = _begun(tmp_path, "endless")
    time.sleep(1.5)
    started = time.monotonic()
    for _ in range(3):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
    assert _end_of(process) == (130, "stopped\n")
    assert time.monotonic() - started < 12
    with pytest.raises(ProcessLookupError):
        _all_gone(process.pid)


def _all_gone(group: int) -> None:
    """Raises ProcessLookupError when nobody of a group is left, which is soon."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        os.killpg(group, 0)
        time.sleep(0.05)
