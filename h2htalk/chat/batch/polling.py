"""How long batch jobs are waited for, and which failed on the way is waited out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

from h2htalk.chat.batch.job_journal import BatchJournal, BatchRecord
from h2htalk.chat.batch.provider import JobCallError, Result
from h2htalk.chat.calls import WireFormat
from h2htalk.errors import ModelCallError
from h2htalk.progress import one_row
from h2htalk.text.escaping import printable

_LOG_EVERY = 300.0  # seconds between two lines where no terminal is


class WaitLine:
    """One line on standard error. It shares its place with the progress line of finished items."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._text = ""
        self._written = float("-inf")

    def show(self, text: str, status: str = "") -> None:
        """Draw `text`; where no terminal is, a line is written when `status` changes, or every five minutes."""
        now, text = time.monotonic(), printable(text)
        if self._terminal:
            self._stream.write(f"\r\x1b[K{one_row(text, self._stream)}")
        elif status != self._text or now - self._written >= _LOG_EVERY:
            self._text, self._written = status, now
            self._stream.write(text + "\n")
        self._stream.flush()

    def say(self, text: str) -> None:
        """A line that stays."""
        self._stream.write(("\r\x1b[K" if self._terminal else "") + printable(text) + "\n")
        self._stream.flush()

    def clear(self) -> None:
        """Leave a terminal without the line."""
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


_FIRST_REREAD = 1.0  # seconds until results are read again whose stream broke


@dataclass(frozen=True, slots=True)
class Pace:
    """How often is asked, and for how long.

    Attributes:
        first, longest: seconds between two looks at a job; the pause grows from the one to the other by `growth`.
        settle: seconds after which a job that was made must show in the provider's list.
        patience: seconds of network failed in a row that are waited out.
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
    """FailedCall that passes is waited out for hours; other failed is an error that names the job.

    Attributes:
        since: when failed began, in Unix time; None while there is none.
        hold: seconds that the API asks to be left alone.
    """

    wire: WireFormat
    journal: BatchJournal
    pace: Pace
    line: WaitLine
    since: float | None = None
    hold: float = 0.0

    def rest(self) -> None:
        """The provider answers."""
        self.since = None

    def pause(self, seconds: float) -> None:
        """Wait so long, longer where the API asks for it."""
        self.pace.sleep(max(seconds, self.hold))
        self.hold = 0.0

    def endure(self, error: JobCallError, record: BatchRecord) -> None:
        """Take note of failed; the caller asks again after a pause.

        Raises:
            ModelCallError: it does not pass by itself, or has lasted too long.
        """
        goes_on = f"batch job {record.label} is not lost, the same command attaches to it"
        if error.status in (404, 410):
            raise ModelCallError(
                f"no batch job {record.label} is known to this key (HTTP {error.status}): use the key of the "
                f"workspace that made it; to give it up, remove {self.journal.folder.path}"
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

    def read(
        self, record: BatchRecord, results: Callable[[], Iterator[Result | None]]
    ) -> Iterator[Result | None]:
        """All results of a job, though the stream breaks: it is read from its start then, and what came before is
        left out.

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
