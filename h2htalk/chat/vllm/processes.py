"""vLLM's processes: started without a word on the terminal, with a log to read causes from, and never left behind."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from h2htalk.chat.vllm import watchdog
from h2htalk.errors import ConfigError

# Set before vLLM is first imported, and inherited by its processes. The first two: nothing is sent anywhere.
_FORCED = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
# A process that is forked after CUDA was touched dies; spawned ones are the same everywhere.
_DEFAULTS = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
LOG_VARIABLE = "VLLM_LOGGING_LEVEL"
_SOCKETS = "VLLM_RPC_BASE_PATH"
_SHOWN_LINES = 20  # of the log, in an error


class VLLMProcesses:
    """The guard of one engine's processes, and a temporary folder with the file that takes all that they print.

    Who sets VLLM_LOGGING_LEVEL wants to see vLLM's log: then it goes to the terminal, and `log` is None.
    """

    def __init__(self) -> None:
        os.environ.update(_FORCED)
        for key, value in _DEFAULTS.items():
            os.environ.setdefault(key, value)
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="h2htalk-vllm-"))
            self.log = None if LOG_VARIABLE in os.environ else self._folder / "vllm.log"
            if self.log is not None:
                self.log.touch(0o600)
        except OSError as error:
            raise ConfigError(
                f"vllm: cannot write temporary files: {error}; make room, or set TMPDIR"
            ) from error
        self._guard = _start_guard(self._folder)

    @contextmanager
    def own_folder(self) -> Iterator[None]:
        """Have an engine that starts put its sockets into our folder: vLLM itself never takes them away."""
        before = os.environ.get(_SOCKETS)
        os.environ.setdefault(_SOCKETS, str(self._folder))
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SOCKETS]

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Send what this process, its new children and its libraries print to the log.

        Children keep the log for their whole life. Standard input and the interpreter's own streams stay.
        """
        if self.log is None:
            yield
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(ValueError, OSError, AttributeError):
                stream.flush()
        kept = [os.dup(number) for number in (1, 2)]
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND)
        try:
            os.dup2(log, 1)
            os.dup2(log, 2)
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(ValueError, OSError, AttributeError):
                    stream.flush()
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            os.close(log)
            # What vLLM's threads in this process still say (that an engine died) is said by our errors.
            logging.getLogger("vllm").setLevel(logging.CRITICAL + 1)

    @staticmethod
    def announce() -> None:
        """One line for who watches a terminal: nothing else is seen while a large model is read."""
        if sys.stderr.isatty():
            sys.stderr.write("vllm  starting the engine; a large model takes minutes\n")

    def ready(self) -> None:
        """The engine's processes are all there: children that come from now on are none of the guard's business."""
        if self._guard is not None and self._guard.stdin is not None:
            with suppress(OSError):
                self._guard.stdin.write(b"ready\n")
                self._guard.stdin.flush()

    def note_failure(self, error: Exception) -> None:
        """Put this process's own traceback into the log, where whoever looks for the cause will look."""
        if self.log is not None:
            with suppress(OSError), self.log.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.writelines(traceback.format_exception(error))

    def log_end(self) -> str:
        """Where the log lies and its last lines, to be added to an error; empty where nothing was logged in it."""
        if self.log is None:
            return ""
        text = ""
        with suppress(OSError), self.log.open("rb") as stream:
            stream.seek(max(0, self.log.stat().st_size - 2**16))
            text = stream.read().decode("utf-8", "replace")
        lines = text.splitlines()[-_SHOWN_LINES:]
        return "\n".join((f"; vLLM's log is {self.log} and ends:", *lines)) if lines else ""

    def close(self, keep_log: bool = False) -> None:
        """End whatever of the engine still runs. Harmless when called twice."""
        guard, self._guard = self._guard, None
        if guard is not None:
            if guard.stdin is not None:
                with suppress(OSError):
                    guard.stdin.close()
            guard.wait()
            if guard.stdout is not None:
                guard.stdout.close()
        if not keep_log:
            shutil.rmtree(self._folder, ignore_errors=True)


class _Interrupt(BaseException):
    """Ctrl-C, under a name that vLLM does not catch."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C through while an engine starts.

    vLLM's wait for its processes takes a KeyboardInterrupt for the end of the wait; as they are gone by then, it
    would go on to wait ten minutes for their first word.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            raise _Interrupt from None

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except _Interrupt:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


def _start_guard(folder: Path) -> subprocess.Popen[bytes] | None:
    """The guard, once it watches; None where there is no /proc to watch."""
    if not Path("/proc/self/task").is_dir():
        return None
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid()), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if guard.stdout is not None:
        guard.stdout.readline()
    return guard
