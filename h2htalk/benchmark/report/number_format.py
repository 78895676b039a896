"""Format a cell for all reports: value, interval, items."""

from __future__ import annotations

from h2htalk.benchmark.statistics.table2_averages import Cell


def value_text(cell: Cell | None, none: str = "-") -> str:
    """Format the value with two decimals, as in the paper's tables."""
    return none if cell is None or cell.value is None else f"{cell.value:.2f}"


def percent_text(cell: Cell | None, none: str = "-") -> str:
    """Format the value as a whole percentage."""
    return none if cell is None or cell.value is None else f"{cell.value:.0f} %"


def half_width(cell: Cell | None) -> float | None:
    """Return half the width of the 95 % interval; None where there is no interval."""
    if cell is None or cell.low is None or cell.high is None:
        return None
    return (cell.high - cell.low) / 2


def half_width_text(cell: Cell | None) -> str:
    """Format `±1.0`, at most five characters (no decimals from ±10 on); empty where there is no interval."""
    half = half_width(cell)
    if half is None:
        return ""
    return f"±{half:.1f}" if half < 9.95 else f"±{half:.0f}"


def with_half_width(cell: Cell | None) -> str:
    """Format `40.00 ±1.0`, or the value alone."""
    return f"{value_text(cell)} {half_width_text(cell)}".rstrip()


def interval_text(cell: Cell | None) -> str:
    """Format `39.00 – 41.00`; empty where there is no interval."""
    if cell is None or cell.low is None or cell.high is None:
        return ""
    return f"{cell.low:.2f} – {cell.high:.2f}"


def items_text(cell: Cell | None, none: str = "-") -> str:
    """Format the items scored and the items in all: `1,880/1,882`."""
    return none if cell is None else f"{cell.n:,}/{cell.total:,}"


def count_text(count: float) -> str:
    """Format a count that may include fractions of an item: `2`, `1,882`, `2.5`."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"
