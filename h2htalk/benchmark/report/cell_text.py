"""How a cell of a run's tables is written: its value, its interval, its items."""

from __future__ import annotations

from h2htalk.benchmark.statistics import Cell

# The longer side of an interval to the shorter one, beyond which (and a unit of the last digit) its ends are shown.
SKEWED = 1.2
LEAST_WHOLE = 9.95  # from this half width on, decimals say nothing
PERCENT = "{:.0f} %"


def value_text(cell: Cell | None, none: str = "-", form: str = "{:.2f}") -> str:
    """Format the value with two decimals, as in the paper's tables, or in another form."""
    return none if cell is None or cell.value is None else form.format(cell.value)


def interval_text(cell: Cell | None, as_ends: bool = False) -> str:
    """Format the interval as `±1.0`, or without decimals from ±10 on; without an interval the text is empty.

    A skewed interval is written as `(3.1 to 9.0)`, and with `as_ends` every interval as `(3.10 to 9.00)`.
    """
    if cell is None or cell.value is None or cell.low is None or cell.high is None:
        return ""
    below = cell.value - cell.low
    above = cell.high - cell.value
    half_width = (cell.high - cell.low) / 2
    digits = 1 if half_width < LEAST_WHOLE else 0
    if as_ends:
        digits = 2
    if as_ends or max(below, above) > SKEWED * min(below, above) + 10**-digits:
        return f"({cell.low:.{digits}f} to {cell.high:.{digits}f})"
    return f"±{half_width:.{digits}f}"


def format_with_interval(cell: Cell | None, as_ends: bool = False) -> str:
    """Format `40.00 ±1.0`, `4.28 (3.1 to 9.0)`, or the value alone; `as_ends` as in `interval_text`."""
    return f"{value_text(cell)} {interval_text(cell, as_ends)}".rstrip()


def items_text(cell: Cell | None) -> str:
    """Format the items scored and the items in all: `1,880/1,882`."""
    return "-" if cell is None else f"{cell.n:,}/{cell.total:,}"
