"""Remove the rows of erased items from spreadsheets, filled in or not; other rows do not change."""

from __future__ import annotations

import csv
import io
import re
import shutil
import warnings
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from h2htalk.data.files import replacing
from h2htalk.errors import RoundError
from h2htalk.rounds.spreadsheets.assigned_files import MAX_FILE
from h2htalk.rounds.spreadsheets.returned_rows import MAX_KEY_ROW
from h2htalk.rounds.spreadsheets.xlsx_reading import check_archive
from h2htalk.rounds.spreadsheets.xlsx_writing import text_sheets
from h2htalk.text.escaping import longest_field

_CODE = re.compile(r"\s*(r[0-9a-f]{12})-[0-9a-f]{8}\s*")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def remove_rows(path: Path, codes: Collection[str]) -> bool:
    """Remove the rows with one of these codes from a workbook or a CSV file; return whether there were any.

    A file that has no other rows is deleted.

    Raises:
        RoundError: the file cannot be read; the message does not name it.
        DataError: it cannot be written.
        OSError: it cannot be opened.
    """
    changed = _without_rows(path, codes) if path.suffix.lower() == ".xlsx" else _without_records(path, codes)
    if changed is None:
        return False
    if not changed:
        path.unlink()
        return True
    with replacing(path) as temporary:
        temporary.write_bytes(changed)
        shutil.copystat(path, temporary)  # answers that were not read yet keep their time
    return True


def _codes_in(cells: Iterable[object]) -> set[str]:
    return {match[1] for cell in cells if isinstance(cell, str) and (match := _CODE.fullmatch(cell))}


def _without_rows(path: Path, codes: Collection[str]) -> bytes | None:
    """Return a workbook with these rows blank and without the sheets of their texts; empty if no other row is left.

    Returns:
        None if no row has one of the codes.
    """
    from openpyxl import load_workbook

    check_archive(path)
    try:
        with warnings.catch_warnings(), path.open("rb") as file:
            warnings.simplefilter("ignore")
            book = load_workbook(file, keep_links=False)
            found, kept = _clear_rows(book, codes)
            whole = io.BytesIO()
            if found:
                book.save(whole)
    except Exception as error:
        # openpyxl raises whatever its parsers raise; the manager sees it as this file's mistake.
        raise RoundError(f"the file cannot be read as a workbook ({type(error).__name__})") from error
    return (whole.getvalue() if kept else b"") if found else None


def _clear_rows(book: Any, codes: Collection[str]) -> tuple[bool, bool]:
    """Empty these rows, and remove the sheets of their texts; return whether there were any, and others."""
    found = kept = False
    texts: set[str] = set()
    for sheet in book.worksheets:
        for cells in list(sheet.iter_rows()):
            there = _codes_in(cell.value for cell in cells)
            if there.isdisjoint(codes):
                kept = kept or bool(there)
            else:
                found = True
                texts |= _linked_sheets(cells) | text_sheets(_item_number(sheet, cells))
                for cell in cells:
                    _clear(cell)
    for title in texts.intersection(book.sheetnames):
        book.remove(book[title])
    return found, kept


def _linked_sheets(cells: Iterable[Any]) -> set[str]:
    links = [getattr(cell, "hyperlink", None) for cell in cells]
    return {str(link.location).rpartition("!")[0].strip("#'") for link in links if link is not None}


def _item_number(sheet: Any, cells: Iterable[Any]) -> object:
    """Return the number in the column `item`, since some programs remove the link to the item's text."""
    keys = sheet.iter_rows(max_row=MAX_KEY_ROW)
    columns = {cell.column for line in keys for cell in line if cell.value == "item"}
    return next((cell.value for cell in cells if cell.column in columns), None)


def _clear(cell: Any) -> None:
    from openpyxl.cell.cell import MergedCell

    # The other cells of a merged range hold nothing.
    if not isinstance(cell, MergedCell):
        cell.value = cell.hyperlink = cell.comment = None


def _without_records(path: Path, codes: Collection[str]) -> bytes | None:
    """As `_without_rows` for a CSV file, whose other bytes do not change."""
    raw = path.read_bytes()
    # All encodings but UTF-16 keep separators, quotation marks and line ends as in ASCII.
    encoding = "utf-16" if raw.startswith(_UTF16) else "latin-1"
    kept: set[str] = set()
    left: list[str] = []
    try:
        lines = list(io.StringIO(raw.decode(encoding), newline=""))
        best = max(",;\t", key=lambda delimiter: _rows_with_codes(lines, delimiter))
        with longest_field(MAX_FILE):
            start, reader = 0, csv.reader(lines, delimiter=best)
            for cells in reader:
                there = _codes_in(cells)
                if there.isdisjoint(codes):
                    kept |= there
                    left += lines[start : reader.line_num]
                start = reader.line_num
    except (csv.Error, UnicodeDecodeError) as error:
        raise RoundError(f"the file cannot be read as CSV: {error}") from error
    if len(left) == len(lines):
        return None
    return "".join(left).encode(encoding) if kept else b""


def _rows_with_codes(lines: Iterable[str], delimiter: str) -> int:
    with longest_field(MAX_FILE):
        return sum(bool(_codes_in(cells)) for cells in csv.reader(lines, delimiter=delimiter))
