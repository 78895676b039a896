"""The process pool: a killed worker is an error, Ctrl-C ends it, no worker outlives its parent."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.parallel import ProcessPool
from support.kills import communicate, wait_until


def _complain() -> None:
    raise MissingExtraError("parsing", "pip")


@pytest.mark.parametrize(
    ("task", "error", "message"),
    [
        (os.abort, ConfigError, "a worker process ended before its work was done"),
        # Unpickling it, whose constructor takes other arguments, broke the pool.
        (_complain, MissingExtraError, "parsing needs a package that is not installed: pip"),
    ],
)
def test_a_worker_that_fails_is_an_error_here(
    task: Callable[[], None], error: type[Exception], message: str
) -> None:
    pool = ProcessPool(2)
    with pytest.raises(error, match=message), pool:
        pool.submit(task).result()


COMMAND = """
import sys
from concurrent.futures import FIRST_COMPLETED, wait
from h2htalk.cli.output import ignore_sigint, one_line_errors, say
from h2htalk.parallel import ProcessPool
from test_parallel import TASKS

if __name__ == "__main__":
    with one_line_errors():
        try:
            with ProcessPool(2) as pool:
                futures = {pool.submit(TASKS[sys.argv[1]]) for _ in range(4)}
                print("begun", flush=True)
                while True:
                    done, futures = wait(futures, return_when=FIRST_COMPLETED)
                    futures |= {pool.submit(TASKS[sys.argv[1]]) for future in done if future.result() is None}
        except KeyboardInterrupt:
            ignore_sigint()
            say("stopped", err=True)
            raise
"""


def _short() -> None:
    time.sleep(0.01)


def _endless() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("endless", flush=True)
    while True:
        time.sleep(60)


TASKS = {"short": _short, "endless": _endless}


def begin(folder: Path, task: str) -> subprocess.Popen[str]:
    """Start the command in a process group of its own, as a shell does; its workers are about to start."""
    script = folder / "command.py"
    script.write_text(COMMAND)
    process = subprocess.Popen(
        [sys.executable, str(script), task],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and standard error, when nobody of the process group is left."""
    try:
        _, stderr = communicate(process)
        wait_until(lambda: not _group_lives(process.pid))
        return process.returncode, stderr
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_ctrl_c_twice_at_any_moment_ends_it_with_one_line(tmp_path: Path) -> None:
    """The second one, to the process group, broke off the waiting for the workers: the command hung."""
    process = begin(tmp_path, "short")
    time.sleep(random.uniform(0, 1.5))
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    assert end(process) == (130, "stopped\n")


@pytest.mark.parametrize(
    ("blow", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_worker_that_will_not_end_is_ended(
    tmp_path: Path, blow: signal.Signals, code: int
) -> None:
    process = begin(tmp_path, "endless")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["endless\n"] * 2
    os.kill(process.pid, blow)
    assert end(process)[0] == code
