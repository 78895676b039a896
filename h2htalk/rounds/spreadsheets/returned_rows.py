"""Rows of returned files in any format, identified by the keys of columns and the codes of rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.errors import quoted

# Rows that are read; no spreadsheet has more.
MAX_ROWS = 20_000


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


def table_rows(
    heading: Sequence[CellValue | None],
    lines: Iterator[tuple[int, Sequence[CellValue | None]]],
    required: Sequence[str],
    shown: str,
    cell_name: Callable[[int, int, str], str],
    mistakes: list[str],
) -> Iterator[ReturnedRow]:
    """Yield the rows of a table that have a code.

    Args:
        heading: keys of the columns.
        lines: row number and cells of the other rows.
        required: keys of columns without which nothing is read.
        shown: file and sheet, for messages.
        cell_name: row, column from 1, and column key -> name of the cell, for messages.
        mistakes: gets a message if a column is missing, and one for cells outside the table.
    """
    keys = [str(key or "").strip() for key in heading]
    for key in required:
        if keys.count(key) != 1:
            problem = "occurs twice" if key in keys else "is missing"
            mistakes.append(
                f"{shown}: the column {quoted(key)} {problem} in row 1, so nothing is read here; copy the answers into "
                "a new file"
            )
            return
    columns = {key: at for at, key in enumerate(keys, 1) if key}
    outside: list[str] = []
    for number, cells in lines:
        filled = {at: value for at, value in enumerate(cells, 1) if value is not None and str(value).strip()}
        values = {key: filled[at] for key, at in columns.items() if at in filled}
        inside = set(columns.values()) if "row" in values else set()
        outside += [
            f"{cell_name(number, at, f'{at}')}: {quoted(str(value))}"
            for at, value in filled.items()
            if at not in inside
        ]
        if "row" in values:

            def cell(key: str, number: int = number) -> str:
                # The first column of a question that has one for each label.
                at = next(at for one, at in columns.items() if one == key or one.startswith(f"{key}:"))
                return f"{shown}{cell_name(number, at, key)}"

            yield ReturnedRow(f"{shown}, row {number}", cell, values)
    if outside:
        more = f" ({len(outside) - 1} more cells)" if len(outside) > 1 else ""
        mistakes.append(f"{shown}{outside[0]} is outside the table{more}; move or delete it")
