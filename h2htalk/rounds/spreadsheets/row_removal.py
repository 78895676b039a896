"""Remove the rows of erased items from spreadsheets, filled in or not; other rows do not change."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from h2htalk.data.files import replacing
from h2htalk.rounds.spreadsheets.returned_rows import MAX_KEY_ROW
from h2htalk.rounds.spreadsheets.xlsx_reading import open_workbook
from h2htalk.rounds.spreadsheets.xlsx_writing import text_sheets

_CODE = re.compile(r"\s*(r[0-9a-f]{12})-[0-9a-f]{8}\s*")


def remove_rows(path: Path, codes: Collection[str]) -> bool:
    """Remove the rows with one of these codes from a workbook; return whether there were any.

    A file that has no other rows is deleted.

    Raises:
        RoundError: the file cannot be read; the message does not name it.
        DataError: it cannot be written.
        OSError: it cannot be opened.
    """
    changed = _without_rows(path, codes)
    if changed == b"":
        path.unlink()
    elif changed is not None:
        with replacing(path) as temporary:
            temporary.write_bytes(changed)
            shutil.copystat(path, temporary)  # answers that were not read yet keep their time
    return changed is not None


def _codes_in(cells: Iterable[object]) -> set[str]:
    return {match[1] for cell in cells if isinstance(cell, str) and (match := _CODE.fullmatch(cell))}


def _without_rows(path: Path, codes: Collection[str]) -> bytes | None:
    """Return a workbook with these rows blank and without the sheets of their texts.

    Returns:
        None if no row has one of the codes; empty if no row has another code.
    """
    found = kept = False
    texts: set[str] = set()
    whole = io.BytesIO()
    with open_workbook(path, read_only=False) as book:
        for sheet in book.worksheets:
            lines = list(sheet.iter_rows())
            numbers = {cell.column for line in lines[:MAX_KEY_ROW] for cell in line if cell.value == "item"}
            for line in lines:
                there = _codes_in(cell.value for cell in line)
                if there.isdisjoint(codes):
                    kept = kept or bool(there)
                    continue
                found = True
                texts |= {title for cell in line if cell.column in numbers for title in text_sheets(cell.value)}
                # The other cells of a merged range hold nothing, and cannot be set.
                for cell in (cell for cell in line if hasattr(cell, "hyperlink")):
                    cell.value = cell.hyperlink = cell.comment = None
        for title in texts.intersection(book.sheetnames):
            book.remove(book[title])
        if found and kept:
            book.save(whole)
    return whole.getvalue() if found else None
