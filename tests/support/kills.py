"""Stop work before one of its writes, in this process or with a process of its own."""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from h2htalk.data.files import AppendLog

KILLED = 137
STDERR = 2
# Python's audit events for changes of a folder: a kill may come before each of them.
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"}


# Seconds for what must happen, many times what a slow machine needs: less than pytest's own limit for a test, so that
# a process that hangs can print the stacks of its threads.
PATIENCE = 250.0


def communicate(process: subprocess.Popen[str], seconds: float = PATIENCE) -> tuple[str, str]:
    """Wait for the end of a process; return what it printed to standard output and to standard error.

    Raises AssertionError where it goes on; the message holds the stacks of its threads (`PYTHONFAULTHANDLER`, which
    `conftest.py` sets for all processes that tests start).
    """
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        stdout, stderr = process.communicate()
    raise AssertionError(f"it still ran after {seconds:.0f} s: {stdout}\n{stderr}")


def run_to_end(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command as `subprocess.run` does with captured text; see `communicate`."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as process:
        stdout, stderr = communicate(process)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def wait_until(
    true: Callable[[], object], otherwise: str = "it never holds", seconds: float = PATIENCE
) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.01)


def wait_for(process: subprocess.Popen[str], count: Callable[[], int], least: int = 1) -> None:
    wait_until(lambda: process.poll() is not None or count() >= least)


def kill_when(process: subprocess.Popen[str], count: Callable[[], int], least: int = 1) -> None:
    wait_for(process, count, least)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended by itself"


def stored_replies(path: Path) -> list[str]:
    """The ids of the replies in a call store, by whole lines only."""
    lines = map(json.loads, path.read_bytes().split(b"\n")[:-1] if path.exists() else ())
    return [line["id"] for line in lines if "text" in line]


def interrupted_at(write: int, work: Callable[[], object]) -> bool:
    """Interrupt before write number `write` of whole files and of appended lines; False where it finished first."""
    left = iter(range(write))

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def writing(*given: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return real(*given, **options)

        return writing

    replace = counted(os.replace)
    append = counted(AppendLog.append)
    with patch.object(os, "replace", replace), patch.object(AppendLog, "append", append):
        try:
            work()
        except KeyboardInterrupt:
            return True
    return False


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Run in a process that gets kill -9 before its `step`-th change of a file; False where it finished first."""

    def watched() -> None:
        left = iter(range(step))

        def watch(event: str, args: tuple[object, ...]) -> None:
            changes = event in CHANGES or (
                event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT
            )
            if changes and next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        work()

    return killed_in(watched)


def states_of(work: Callable[[], object], folder: Path, into: Path) -> list[Path]:
    """Run in a process of its own; returns copies of a folder as a kill before each change of a file leaves it.

    A state that is the same as an earlier one, byte for byte, has no copy of its own: most changes are elsewhere.
    """

    def watched() -> None:
        copying = False
        seen = set[str]()

        def watch(event: str, args: tuple[object, ...]) -> None:
            nonlocal copying
            changes = event in CHANGES or (
                event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT
            )
            if changes and not copying and folder.is_dir():
                copying = True
                state = _hash_of_state(folder)
                if state not in seen:
                    seen.add(state)
                    shutil.copytree(folder, into / f"{len(seen):05}")
                copying = False

        sys.addaudithook(watch)
        work()

    into.mkdir()
    assert not killed_in(watched)
    return sorted(into.iterdir())


def _hash_of_state(folder: Path) -> str:
    """The same for two states of a folder whose files have the same names, modes and bytes."""
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        name = path.relative_to(folder)
        state.update(f"{name}\n{path.lstat().st_mode} {len(content)}\n".encode() + content)
    return state.hexdigest()


def killed_in(work: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Run in a process of its own; whether the work ended it with `KILLED`, or it was killed.

    Raises AssertionError where the work raises, with its traceback; and where it goes on for longer than `seconds`:
    standard error then holds its stacks.
    """
    with tempfile.TemporaryFile() as raised:
        child = os.fork()
        if child == 0:
            begin_child(seconds)
            _end_with(work, raised.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        raised.seek(0)
        error = raised.read().decode()
    assert code != -signal.SIGALRM, f"it still ran after {seconds:g} s"
    assert not error, f"the work failed in its process:\n{error}"
    return code in (KILLED, -signal.SIGKILL)


def _end_with(work: Callable[[], object], raised: int) -> NoReturn:
    """Do the work and end this process; what the work raises is written to a file, of which the number is given."""
    try:
        work()
    except BaseException:  # noqa: BLE001  the parent process shows it
        os.write(raised, traceback.format_exc().encode())
    finally:
        os._exit(0)


def begin_child(seconds: float) -> None:
    """What a forked child does first.

    Its garbage collector leaves alone what the parent holds: a model of OpenVINO that earlier tests left in a circle
    waits, when it is freed, for threads that this process does not have. After `seconds`, SIGALRM ends the child, and
    its stacks are printed.
    """
    gc.freeze()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, file=STDERR, chain=True)
    signal.setitimer(signal.ITIMER_REAL, seconds)
