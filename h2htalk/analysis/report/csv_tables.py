"""Tables as data, and as CSV that is read back exactly and that a spreadsheet opens without computing anything."""

from __future__ import annotations

from dataclasses import dataclass

from h2htalk.text import escaping

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """One file of `tables/`: its name without ending, its columns, its rows; None is an empty cell."""

    name: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def csv_text(table: Table) -> str:
    """The table as CSV, by the rules of `h2htalk.text.escaping`."""
    return escaping.csv_text(table.headings, table.rows)
