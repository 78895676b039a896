"""How a cell is written, wherever it stands: value, interval, items."""

from __future__ import annotations

from h2htalk.benchmark.statistics.table2_averages import Cell


def value_text(cell: Cell | None, none: str = "-") -> str:
    """The value with two decimals, as in the paper's tables."""
    return none if cell is None or cell.value is None else f"{cell.value:.2f}"


def percent_text(cell: Cell | None, none: str = "-") -> str:
    """The value as a whole percentage."""
    return none if cell is None or cell.value is None else f"{cell.value:.0f} %"


def half_width(cell: Cell | None) -> float | None:
    """Half the width of the 95 % interval; None where there is no interval."""
    if cell is None or cell.low is None or cell.high is None:
        return None
    return (cell.high - cell.low) / 2


def half_width_text(cell: Cell | None) -> str:
    """`±1.0`, at most five characters (a decimal is no news beyond ±10); empty where there is no interval."""
    half = half_width(cell)
    if half is None:
        return ""
    return f"±{half:.1f}" if half < 9.95 else f"±{half:.0f}"


def with_half_width(cell: Cell | None) -> str:
    """`40.00 ±1.0`, or the value alone."""
    return f"{value_text(cell)} {half_width_text(cell)}".rstrip()


def interval_text(cell: Cell | None) -> str:
    """`39.00 – 41.00`; empty where there is no interval."""
    if cell is None or cell.low is None or cell.high is None:
        return ""
    return f"{cell.low:.2f} – {cell.high:.2f}"


def items_text(cell: Cell | None, none: str = "-") -> str:
    """Items scored of items asked: `1,880/1,882`."""
    return none if cell is None else f"{cell.n:,}/{cell.total:,}"


def count_text(count: float) -> str:
    """A count that may be a share of an item: `2`, `1,882`, `2.5`."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"
