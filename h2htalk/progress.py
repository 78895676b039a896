"""Show one line of progress on standard error: done, rate, time left, failures, money."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from typing import Any, Self, TextIO, TypeVar

Item = TypeVar("Item")
_TERMINAL_EVERY, _LOG_EVERY = 0.2, 15.0  # seconds between two drawings
_ETA_AFTER, _ETA_ITEMS = 2.0, 10  # seconds, and items, before the time left is shown
QUICK = 2.0  # seconds in which a command that computes needs no line of progress
_COLUMNS = 80  # of a terminal whose width is unknown


class Progress:
    """Count finished items; redraw one line on a terminal or in a notebook, or write a line every 15 s elsewhere."""

    shown = True  # False where a view of what is written takes the place of the line

    def __init__(
        self,
        label: str,
        total: int,
        stream: TextIO | None = None,
        money: Callable[[], str] | None = None,
        silent: float = 0.0,
    ) -> None:
        """Start the clock of `total` items. `stream`: where to write; None is standard error. `money`: called at each
        update; returns what was spent so far, or "". `silent`: seconds before the first line, which is written as soon
        as they are over; work that ends earlier writes nothing."""
        self._label, self._total, self._money = label, total, money
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        notebook = type(self._stream).__module__.startswith(
            "ipykernel"
        )  # shows a text in the place of the one before
        self._show: Any = (
            import_module("IPython.display").DisplayHandle().display if notebook else None
        )
        self._every = _TERMINAL_EVERY if self._terminal or self._show else _LOG_EVERY
        self._done = self._failed = 0
        self._start = self._drawn = time.monotonic()
        if silent:
            self._drawn -= self._every
        self._speaks = self._start + (silent if Progress.shown else float("inf"))

    def advance(self, failed: bool = False, count: int = 1) -> None:
        """Count finished items, and redraw when it is time."""
        self._done += count
        self._failed += failed
        now = time.monotonic()
        if now >= self._speaks and now - self._drawn >= self._every:
            self._drawn = now
            self._draw()

    def _draw(self, last: bool = False) -> None:
        seconds = max(time.monotonic() - self._start, 1e-9)
        rate = self._done / seconds
        # One item says little about the others: no rate and no time left before some are done.
        known = seconds >= _ETA_AFTER and self._done >= min(_ETA_ITEMS, self._total / _ETA_ITEMS)
        left = (
            f"  {clock_text((self._total - self._done) / rate)} left"
            if known and rate and not last
            else ""
        )
        speed = f"  {rate_text(rate)}" if known or (last and self._done) else ""
        failed = f"  {self._failed:,} failed" if self._failed else ""
        share = self._done / self._total if self._total else 1.0
        spent = self._money() if self._money is not None else ""
        line = f"{self._label}  {self._done:,}/{self._total:,}  {share:4.0%}{speed}{left}{failed}"
        line += f"  {spent}" if spent else ""
        if self._show is not None:
            self._show({"text/plain": line}, raw=True)
            self._show = self._show.__self__.update
        elif self._terminal:
            self._stream.write(
                f"\r\x1b[K{line}\n" if last else f"\r\x1b[K{one_row(line, self._stream)}"
            )
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Draw the last line, unless nothing was drawn because the work was quick."""
        if self._total and time.monotonic() >= self._speaks:
            self._draw(last=True)


def counted_items(label: str, items: Collection[Item]) -> Iterator[Item]:
    """Yield items, and show how many of them are done once that takes longer than `QUICK`."""
    with Progress(label, len(items), silent=QUICK) as progress:
        for item in items:
            yield item
            progress.advance()


def one_row(text: str, stream: TextIO) -> str:
    """Cut a text to one row of the stream's terminal: a longer line would wrap, and redrawing would leave its start."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except (OSError, ValueError):  # no terminal behind it
        columns = _COLUMNS
    return text if len(text) < columns else f"{text[: columns - 2]}…"


def rate_text(per_second: float) -> str:
    """Items a second, or a minute or an hour where these are few."""
    for seconds, unit in ((1, "s"), (60, "min")):
        if per_second * seconds >= 1:
            return f"{per_second * seconds:,.1f}/{unit}"
    return f"{per_second * 3600:,.1f}/h"


def clock_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
