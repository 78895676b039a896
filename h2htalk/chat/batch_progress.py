"""What people see while batch jobs run: one line, drawn anew on a terminal, rarely written elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from h2htalk.progress import one_row
from h2htalk.text.printable import printable

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
