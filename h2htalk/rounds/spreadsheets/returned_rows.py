"""Rows of returned files in any format, identified by the keys of columns and the codes of rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from h2htalk.errors import quoted
from h2htalk.rounds.platforms import Message

# Rows that are read; no spreadsheet has more.
MAX_ROWS = 20_000
# Rows among which the keys of the columns are searched: somebody may insert rows above them.
MAX_KEY_ROW = 10
# Kind of the message on cells outside the table.
OUTSIDE = "outside the table"


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula in a cell."""

    text: str

    def __str__(self) -> str:
        return self.text


CellValue = str | int | float | bool | Formula | datetime.date | datetime.time | datetime.timedelta


@dataclass(frozen=True, slots=True)
class ReturnedRow:
    """One row.

    Attributes:
        where: file, sheet and row, for messages.
        cell: column key -> file, sheet and cell, for messages.
        values: column key -> value, of cells that are not empty.
    """

    where: str
    cell: Callable[[str], str]
    values: Mapping[str, CellValue]

    @property
    def code(self) -> tuple[str, str]:
        """The row's code and checksum."""
        code, _, checksum = str(self.values.get("row", "")).strip().partition("-")
        return code, checksum


Line = tuple[int, Sequence[CellValue | None]]


def table_rows(
    lines: Iterator[Line],
    required: Sequence[str],
    shown: str,
    cell_name: Callable[[int, int, str], str],
    mistakes: list[Message],
    *,
    is_sheet: bool = False,
) -> Iterator[ReturnedRow]:
    """Yield the rows of a table that have a code.

    Args:
        lines: row number and cells of all rows. The keys of the columns are in the first one, or below inserted rows.
        required: keys of columns without which nothing is read.
        shown: file and sheet, for messages.
        cell_name: row, column from 1, and column key -> name of the cell, for messages.
        mistakes: gets a message if a column is missing, and one for cells outside the table.
        is_sheet: of a workbook: headings follow the keys, and a sheet without keys is no table.
    """
    above, (key_row, keys) = _find_keys(lines, required)
    if is_sheet and "row" not in keys:
        return
    for key in required:
        if keys.count(key) != 1:
            problem = "occurs twice" if key in keys else "is missing"
            text = f"in row {key_row}, so nothing is read here; copy the answers into a new file"
            mistakes.append(Message(shown, f"the column {quoted(key)} {problem} {text}"))
            return
    columns = {key: at for at, key in enumerate(keys, 1) if key}
    outside: list[tuple[str, str]] = []
    headed = not is_sheet
    for number, cells in (*above, *lines):
        filled = {at: value for at, value in enumerate(cells, 1) if value is not None and str(value).strip()}
        values = {key: filled[at] for key, at in columns.items() if at in filled}
        if not headed and "row" not in values and all(key in values for key in required[1:]):
            headed = True
            continue
        inside = set(columns.values()) if "row" in values else set()
        outside += [
            (cell_name(number, at, f"{at}"), quoted(str(value))) for at, value in filled.items() if at not in inside
        ]
        if "row" in values:

            def cell(key: str, number: int = number) -> str:
                # The first column of a question that has one for each label.
                at = next(at for one, at in columns.items() if one == key or one.startswith(f"{key}:"))
                return f"{shown}{cell_name(number, at, key)}"

            yield ReturnedRow(f"{shown}, row {number}", cell, values)
    if outside:
        more = f" ({len(outside) - 1} more cells)" if len(outside) > 1 else ""
        first, text = outside[0]
        problem = f"{text} is outside the table{more}; move or delete it"
        mistakes.append(Message(f"{shown}{first}", problem, OUTSIDE))


def _find_keys(lines: Iterator[Line], required: Sequence[str]) -> tuple[list[Line], tuple[int, list[str]]]:
    """Return the rows above the keys, and the row with the keys: the first one unless several are in a later one."""
    above: list[Line] = []
    for number, cells in islice(lines, MAX_KEY_ROW):
        keys = [str(cell or "").strip() for cell in cells]
        # An item's text may be the word "row".
        if "row" in keys and (number == 1 or len({*keys} & {*required}) > 1):
            return above, (number, keys)
        above.append((number, cells))
    return above, (1, [])
