"""The rows of a file that came back, in any format: found by the keys of columns and the codes of rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.errors import quoted

# Files are read as far as here; no spreadsheet has so many rows.
MAX_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Formula:
    """What a cell holds that a spreadsheet computes."""

    text: str

    def __str__(self) -> str:
        return self.text


Raw = str | int | float | bool | Formula | datetime.date | datetime.time | datetime.timedelta


@dataclass(frozen=True, slots=True)
class ReturnedRow:
    """One row.

    Attributes:
        where: file, sheet and row, for messages.
        cell: column key -> file, sheet and cell, for messages.
        values: by column key, what stands in cells that are not empty.
    """

    where: str
    cell: Callable[[str], str]
    values: Mapping[str, Raw]

    @property
    def code(self) -> tuple[str, str]:
        """The row's code and its seal."""
        code, _, seal = str(self.values.get("row", "")).strip().partition("-")
        return code, seal


def table_rows(
    heading: Sequence[Raw | None],
    lines: Iterator[tuple[int, Sequence[Raw | None]]],
    required: Sequence[str],
    shown: str,
    cell_name: Callable[[int, int, str], str],
    mistakes: list[str],
) -> Iterator[ReturnedRow]:
    """The rows of a table that have a code.

    Args:
        heading: the columns' keys.
        lines: row number and cells of the others.
        required: keys without which nothing is read.
        shown: file and sheet in messages.
        cell_name: row, column from 1, and the column's key -> as messages name the cell after `shown`.
        mistakes: gets a line where a column is missing, and one for what stands beside the table.
    """
    keys = [str(key or "").strip() for key in heading]
    for key in required:
        if keys.count(key) != 1:
            mistakes.append(
                f"{shown}: the column {quoted(key)} is {'there twice' if key in keys else 'missing'} in row 1; take a "
                "fresh file and copy the answers into it. Nothing is read here"
            )
            return
    places = {key: at for at, key in enumerate(keys, 1) if key}
    outside: list[str] = []
    for number, cells in lines:
        filled = {at: value for at, value in enumerate(cells, 1) if value is not None and str(value).strip()}
        values = {key: filled[at] for key, at in places.items() if at in filled}
        mine = set(places.values()) if "row" in values else set()
        outside += [
            f"{cell_name(number, at, f'{at}')}: {quoted(str(value))}"
            for at, value in filled.items()
            if at not in mine
        ]
        if "row" in values:

            def cell(key: str, number: int = number) -> str:
                # Of a question with a column a label, the first of them.
                at = next(at for one, at in places.items() if one == key or one.startswith(f"{key}:"))
                return f"{shown}{cell_name(number, at, key)}"

            yield ReturnedRow(f"{shown}, row {number}", cell, values)
    if outside:
        more = f", and {len(outside) - 1} more cells do" if len(outside) > 1 else ""
        mistakes.append(
            f"{shown}{outside[0]} stands beside the table{more}; move it to where it belongs, or take it out"
        )
