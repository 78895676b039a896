"""Print to the terminal: control characters escaped, errors in one line, output that cannot be written reported."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator

from h2htalk.data.responses import masked
from h2htalk.errors import H2HTalkError, shorten
from h2htalk.text.escaping import printable

# Characters of an error line: a quoted value may be a whole file.
LONGEST_ERROR = 600
INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it

_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def ignore_sigint() -> None:
    """Ignore Ctrl-C from now on, so that it cannot interrupt the end of an interrupted command."""
    with contextlib.suppress(ValueError):  # not in the main thread, which alone may set signal handlers
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def say(*texts: str, err: bool = False) -> None:
    """Print texts that may come from a file, line by line, with control characters escaped and without HF_TOKEN."""
    for text in texts:
        shown = "\n".join(map(printable, _without_token(text).split("\n")))
        print(shown, file=sys.stderr if err else sys.stdout, flush=True)


def _without_token(text: str) -> str:
    return masked(text, os.environ.get("HF_TOKEN", "").strip())


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of a whole command into one line and an exit code.

    Other exceptions are bugs and show their traceback. An output that cannot be written (a full disk) is an error too;
    a reader that has closed the pipe (`| head`) ends the command quietly; Ctrl-C is exit code 130, and a second one
    is ignored.
    """
    for stream in (sys.stdout, sys.stderr):
        # Escape what the terminal's encoding lacks (a path that is not UTF-8) instead of raising.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a full disk can still be reported
    except KeyboardInterrupt:
        ignore_sigint()
        sys.exit(INTERRUPTED)
    except SystemExit as ending:
        if ending.code == INTERRUPTED:  # as typer ends a command after Ctrl-C
            ignore_sigint()
            say("stopped; what is finished is stored: the same command continues", err=True)
        raise
    except H2HTalkError as error:
        say(f"error: {shorten(printable(_without_token(str(error))), LONGEST_ERROR)}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        # Writers of files turn OSError into DataError: this one is stdout's.
        if error.errno not in (*_LOST, errno.EPIPE):
            raise
        # The interpreter would try to flush what is still buffered at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            sys.exit(1)
        say(f"error: the output cannot be written: {error.strerror}; free space, or print elsewhere", err=True)
        sys.exit(H2HTalkError.exit_code)
