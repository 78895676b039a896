"""What commands print: lines, errors as one line and an exit code, and how Ctrl-C ends them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator

from h2htalk.errors import H2HTalkError, shorten
from h2htalk.interrupts import INTERRUPTED, LONGEST_STOP
from h2htalk.masking import mask_held, masked_output
from h2htalk.text.escaping import printable

LONGEST_ERROR = 600  # characters of an error line: a quoted value may be a whole file
OUT_OF_MEMORY = (
    "the machine has no memory left for this command; what is finished is stored: give it "
    "more memory, or smaller input"
)
STOPPED = "stopped; what is finished is stored: the same command continues"


def ignore_sigint() -> None:
    """Ignore Ctrl-C from now on, so that it cannot interrupt the end of an interrupted command."""
    with contextlib.suppress(
        ValueError
    ):  # not in the main thread, which alone may set signal handlers
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """End the process with exit code 130 some seconds after Ctrl-C in the block, wherever it is then.

    For the command line, whose process ends after the block: Python still waits there for threads, which may hang.
    Commands survive a kill at any moment, and so this end. An error after Ctrl-C is its consequence (an import that was
    interrupted half-way raises ImportError), and ends the command as Ctrl-C does.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    # Told by the system, not by a handler of its own: asyncio and pools of processes set theirs in place of Python's
    # default, and an interrupt that a destructor swallows comes here nevertheless.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    interrupted = threading.Event()
    thread = threading.Thread(target=_end_after_ctrl_c, args=(reader, interrupted), daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    except Exception as error:
        if not _was_interrupted(reader, interrupted):
            raise
        message = str(error)
        if not isinstance(error, H2HTalkError):
            # Mostly the consequence of the interrupt, but a defect may show at this moment too.
            message = f"while it stopped: {type(error).__name__}: {message}"
        say(f"error: {shorten(_shown(message), LONGEST_ERROR)}", err=True)
        sys.exit(INTERRUPTED)
    finally:
        # A program may call the command line, and go on.
        if not _was_interrupted(reader, interrupted):
            signal.set_wakeup_fd(before)
            os.close(writer)


def _was_interrupted(reader: int, interrupted: threading.Event) -> bool:
    """Whether Ctrl-C came, also where the thread that reads the signals did not run since."""
    readable, _, _ = select.select([] if interrupted.is_set() else [reader], [], [], 0)
    return interrupted.is_set() or bool(readable)


def _end_after_ctrl_c(reader: int, interrupted: threading.Event) -> None:
    """Wait for SIGINT among the signals in a pipe, then end the process; return at the pipe's end."""
    while True:
        select.select([reader], [], [])
        # Set before the signal is taken out of the pipe, so that `_was_interrupted` sees it at any moment.
        interrupted.set()
        number = os.read(reader, 1)
        if number == bytes([signal.SIGINT]):
            break
        interrupted.clear()
        if not number:
            os.close(reader)
            return
    threading.Event().wait(LONGEST_STOP)
    # The main thread hangs, and has not printed this; or it has ended, and its threads hang.
    if threading.main_thread().is_alive():
        os.write(2, f"{STOPPED}\n".encode())
    os._exit(INTERRUPTED)


def end_on_sigterm() -> None:
    """End on SIGTERM, by which a cluster stops a job, as on Ctrl-C: what came is stored. A second one is ignored."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.raise_signal(signal.SIGINT)

    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where a script started the command with `&`
    signal.signal(signal.SIGTERM, end)


def say(*texts: str, err: bool = False) -> None:
    """Print texts that may come from a file, line by line, with control characters escaped and keys masked."""
    for text in texts:
        print(_shown(text), file=sys.stderr if err else sys.stdout, flush=True)


def _shown(text: str) -> str:
    return "\n".join(map(printable, mask_held(text).split("\n")))


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of a whole command, a full disk behind its output included, into one line and an exit code.

    A reader that has closed the pipe (`| head`) ends the command quietly; Ctrl-C is exit code 130, and a second one is
    ignored. Other exceptions are bugs and show their traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        # Escape what the terminal's encoding lacks (a path that is not UTF-8) instead of raising.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with masked_output(), _one_line():
        yield


@contextlib.contextmanager
def _one_line() -> Iterator[None]:
    output = sys.stdout
    try:
        try:
            yield
        finally:
            # Here, where a full disk can still be reported. Typer hides a closed pipe behind a stream of its own, and
            # what is buffered would be a complaint when the interpreter ends.
            if output is not None:
                output.flush()
    except KeyboardInterrupt:
        ignore_sigint()
        sys.exit(INTERRUPTED)
    except SystemExit as ending:
        if ending.code == INTERRUPTED:  # as typer ends a command after Ctrl-C
            ignore_sigint()
            say(STOPPED, err=True)
        raise
    except MemoryError:
        say(f"error: {OUT_OF_MEMORY}", err=True)
        sys.exit(H2HTalkError.exit_code)
    except H2HTalkError as error:
        say(f"error: {shorten(_shown(str(error)), LONGEST_ERROR)}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        # Writers of files turn OSError into DataError: this one is stdout's.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE):
            raise
        # The interpreter would try to flush what is still buffered at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        if error.errno == errno.EPIPE:
            sys.exit(1)
        say(
            f"error: the output cannot be written: {error.strerror}; free space, or print elsewhere",
            err=True,
        )
        sys.exit(H2HTalkError.exit_code)
