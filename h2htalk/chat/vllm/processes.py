"""Run vLLM's processes: their output goes to a log file, and none outlives this process."""

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

# Set before vLLM is first imported, and inherited by its processes. These two switch off its telemetry.
_FORCED = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
# A process that is forked after CUDA was initialised dies; a spawned one does not.
_DEFAULTS = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
LOG_VARIABLE = "VLLM_LOGGING_LEVEL"
_SOCKETS = "VLLM_RPC_BASE_PATH"
_SHOWN_LINES = 20  # of the log, in an error


class VLLMProcesses:
    """The watchdog of one engine's processes, and a temporary folder with the log of their output.

    Where VLLM_LOGGING_LEVEL is set, vLLM's log goes to the terminal and `log` is None.
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
            raise ConfigError(f"vllm: cannot write temporary files: {error}; free disk space, or set TMPDIR") from error
        self._guard = _start_guard(self._folder)

    @contextmanager
    def own_folder(self) -> Iterator[None]:
        """Make a starting engine put its sockets into the temporary folder: vLLM itself never removes them."""
        before = os.environ.get(_SOCKETS)
        os.environ.setdefault(_SOCKETS, str(self._folder))
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SOCKETS]

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Redirect the output of this process, its new children and its libraries to the log.

        Children keep writing to the log afterwards.
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
            # vLLM's threads in this process would log again what our errors report (an engine that died).
            logging.getLogger("vllm").setLevel(logging.CRITICAL + 1)

    @staticmethod
    def announce() -> None:
        """Print one line on a terminal: a large model takes minutes to load, without other output."""
        if sys.stderr.isatty():
            sys.stderr.write("vllm  starting the engine; a large model takes minutes\n")

    def ready(self) -> None:
        """Tell the watchdog that the engine's processes have all started: it does not end later children."""
        if self._guard is not None and self._guard.stdin is not None:
            with suppress(OSError):
                self._guard.stdin.write(b"ready\n")
                self._guard.stdin.flush()

    def note_failure(self, error: Exception) -> None:
        """Append this process's traceback to the log."""
        if self.log is not None:
            with suppress(OSError), self.log.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.writelines(traceback.format_exception(error))

    def log_end(self) -> str:
        """Return the path of the log and its last lines, for an error; empty where nothing was logged."""
        if self.log is None:
            return ""
        text = ""
        with suppress(OSError), self.log.open("rb") as stream:
            stream.seek(max(0, self.log.stat().st_size - 2**16))
            text = stream.read().decode("utf-8", "replace")
        lines = text.splitlines()[-_SHOWN_LINES:]
        return "\n".join((f"; vLLM's log is {self.log} and ends:", *lines)) if lines else ""

    def close(self, keep_log: bool = False) -> None:
        """End all processes of the engine that still run. Calling it twice does no harm."""
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
    """Ctrl-C as an exception that vLLM does not catch."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the start of an engine.

    vLLM treats a KeyboardInterrupt as the end of its wait for the processes; these have ended too, so it would then
    wait ten minutes for their first message.
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
    """Start the watchdog and wait until it is ready; None where there is no /proc to read."""
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
