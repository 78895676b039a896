"""Poll batch jobs: when to ask again, and which errors to wait out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

from h2htalk.chat.batch.provider import JobCallError, Result
from h2htalk.chat.calls import WireFormat
from h2htalk.chat.store.records import BatchRecord
from h2htalk.errors import ModelCallError
from h2htalk.progress import one_row
from h2htalk.text.escaping import printable

_LOG_EVERY = 300.0  # seconds between two lines where no terminal is


class WaitLine:
    """One status line on standard error, on the row of the progress line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._text = ""
        self._written = float("-inf")

    def show(self, text: str, status: str = "") -> None:
        """Draw `text`; outside a terminal a line is written when `status` changes, or every five minutes."""
        now, text = time.monotonic(), printable(text)
        if self._terminal:
            self._stream.write(f"\r\x1b[K{one_row(text, self._stream)}")
        elif status != self._text or now - self._written >= _LOG_EVERY:
            self._text, self._written = status, now
            self._stream.write(text + "\n")
        self._stream.flush()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._stream.write(("\r\x1b[K" if self._terminal else "") + printable(text) + "\n")
        self._stream.flush()

    def clear(self) -> None:
        """Remove the line from a terminal."""
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


_FIRST_REREAD = 1.0  # seconds until results are read again whose stream broke


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and for how long to poll.

    Attributes:
        first, longest: seconds between two polls; the pause grows from the first to the longest by `growth`.
        settle: seconds after which a new job must be in the provider's list.
        patience: seconds of consecutive network errors that are waited out.
        sleep, clock: of the system; `clock` is Unix time.
    """

    first: float = 5.0
    longest: float = 60.0
    growth: float = 1.5
    settle: float = 60.0
    patience: float = 24 * 3600.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time


@dataclass(slots=True)
class Polling:
    """Polling of one run: transient errors are waited out for hours, others end the run and name the job.

    Attributes:
        where: the file that records the jobs.
        since: Unix time of the first of the current errors; None while there is none.
        hold: seconds that the API asks the client to wait.
    """

    wire: WireFormat
    where: str
    pace: Pace
    line: WaitLine
    since: float | None = None
    hold: float = 0.0

    def rest(self) -> None:
        """Note that the provider answers."""
        self.since = None

    def pause(self, seconds: float) -> None:
        """Wait so long, longer where the API asks for it."""
        self.pace.sleep(max(seconds, self.hold))
        self.hold = 0.0

    def endure(self, error: JobCallError, record: BatchRecord) -> None:
        """Note an error; the caller polls again after a pause.

        Raises:
            ModelCallError: the error is permanent, or has lasted too long.
        """
        goes_on = f"batch job {record.label} is not lost, the same command attaches to it"
        if error.status in (404, 410):
            raise ModelCallError(
                f"no batch job {record.label} is known to this key (HTTP {error.status}): use the key of the "
                f'workspace that made it; to give it up, remove the lines with "job":"{record.batch}" from {self.where}'
            )
        message = error.message
        if error.status is not None and error.status != 200:
            failed = self.wire.read_error(error.status, error.body, error.headers)
            message = failed.message
            if failed.fatal is not None or not failed.retry:
                raise ModelCallError(f"{failed.fatal or message}; {goes_on}")
            self.hold = min(failed.wait or 0.0, self.pace.longest)
        now = self.pace.clock()
        if self.since is None:
            self.since = now
        if now - self.since >= self.pace.patience:
            hours = self.pace.patience / 3600
            raise ModelCallError(f"no usable answer for {hours:.3g} hours ({message}); {goes_on}")
        self.line.show(f"batch job {record.label}: {message}; asking again", message)

    def read(self, record: BatchRecord, results: Callable[[], Iterator[Result | None]]) -> Iterator[Result | None]:
        """Yield all results of a job. A broken stream is read from its start again, without repeating results.

        Raises:
            JobCallError: they are no longer kept.
            ModelCallError: see `endure`.
        """
        read: set[str] = set()
        pause = _FIRST_REREAD
        while True:
            again = set(read)
            try:
                for result in results():
                    if result is not None and result.custom_id in again:
                        again.remove(result.custom_id)
                        continue
                    if result is not None:
                        read.add(result.custom_id)
                    yield result
                self.rest()
                return
            except JobCallError as error:
                if error.status in (404, 410):
                    raise
                self.endure(error, record)
            self.pause(pause)
            pause = min(pause * self.pace.growth, self.pace.longest)
