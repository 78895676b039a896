"""Tables as data, and as CSV that is read back exactly and that a spreadsheet opens without computing anything."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from h2htalk.text.printable import printable

Value = str | int | float | bool | None
# With these a spreadsheet begins a formula; the wide forms are what Chinese keyboards type.
_FORMULA = tuple("=+-@＝＋－＠")


@dataclass(frozen=True, slots=True)
class Table:
    """One file of `tables/`: its name without ending, its columns, its rows; None is an empty cell."""

    name: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def csv_text(table: Table) -> str:
    """The table as CSV: a heading line and the rows, lines ended by a line feed.

    Numbers are written so that reading them gives the same number. A text that a spreadsheet would take for a
    formula gets a quote in front; what is invisible but acts is shown as its escape.
    """
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(table.headings)
    for row in table.rows:
        writer.writerow([_cell(value) for value in row])
    return output.getvalue()


def _cell(value: Value) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return harmless_cell(value) if isinstance(value, str) else value


def harmless_cell(text: str) -> str:
    """Text that a spreadsheet shows and never computes."""
    shown = printable(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown
