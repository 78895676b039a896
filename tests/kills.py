"""Stop work before one of its writes, in this process or with a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from h2htalk.data.files import AppendLog

KILLED = 137
# Python's audit events for changes of a folder: a kill may come before each of them.
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"}


def interrupted_at(write: int, work: Callable[[], object]) -> bool:
    """Interrupt before write number `write` of whole files and of appended lines; False where it finished first."""
    left = iter(range(write))

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def writing(*given: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return real(*given, **options)

        return writing

    replace, append = counted(os.replace), counted(AppendLog.append)
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
            changes = event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT)
            if changes and next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        work()

    return killed_in(watched)


def killed_in(work: Callable[[], object]) -> bool:
    """Run in a process of its own; whether the work ended it with `KILLED`, or it was killed."""
    if not (child := os.fork()):
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (KILLED, -signal.SIGKILL)
