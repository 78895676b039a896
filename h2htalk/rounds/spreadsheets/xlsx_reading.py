"""Read workbooks with openpyxl, after checks that protect against malicious files, and remove rows from them."""

from __future__ import annotations

import io
import re
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.data.files import replacing
from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.spreadsheets.assigned_files import SpreadsheetRound
from h2htalk.rounds.spreadsheets.row_answers import CellValue, Formula, whole_number
from h2htalk.rounds.spreadsheets.xlsx_writing import CODES

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

# Larger files are not read, and none is written; unpacked size of all parts of a file (bytes), and number of their
# XML tags: each becomes some hundred bytes.
MAX_FILE, MAX_UNPACKED, MAX_TAGS = 32 << 20, 64 << 20, 1_000_000
# Rows and columns that are read, and rows among which the keys are searched: somebody may insert rows above them.
_MAX_ROWS, _MAX_COLUMNS, _MAX_KEY_ROW = 20_000, 64, 10
_CHUNK = 1 << 16
_OLD_FORMAT = b"\xd0\xcf\x11\xe0"
# A carriage return as Excel stores it (ECMA-376, ST_Xstring).
_RETURN = re.compile("(?<!_x005F)_x000D_")
_SAVE_AGAIN = "open it in a spreadsheet program and save it again as .xlsx, without a password"


@dataclass(frozen=True, slots=True)
class ReturnedRow:
    """One item's row.

    Attributes:
        number: of the item in the spreadsheet.
        where: file, sheet and row, for messages.
        cells: column key -> file, sheet and cell, for messages.
        values: column key -> value, of cells that are not empty.
    """

    number: int
    where: str
    cells: Mapping[str, str]
    values: Mapping[str, CellValue]


@dataclass(frozen=True, slots=True)
class ReturnedWorkbook:
    """A workbook's code, the checksums of its items by number, and its rows; see `xlsx_writing`."""

    code: str
    checksums: Mapping[int, str]
    rows: Sequence[ReturnedRow]


def read_xlsx(path: Path, shown: str, required: Sequence[str], mistakes: list[Message]) -> ReturnedWorkbook:
    """Read a workbook.

    Args:
        path: the file.
        shown: its name in messages.
        required: keys of columns that a sheet of a session must have.
        mistakes: gets a message for each sheet that is not read completely.

    Raises:
        RoundError: the file is empty, too large, broken, protected, or not a workbook; the message does not name it.
        OSError: the file cannot be read.
    """
    with open_workbook(path) as book:
        code, checksums = read_codes(book)
        rows: list[ReturnedRow] = []
        for sheet in book.worksheets:
            rows += _session_rows(sheet, f"{shown}: {sheet.title}", required, mistakes)
    return ReturnedWorkbook(code, checksums, rows)


def read_codes(book: Workbook) -> tuple[str, dict[int, str]]:
    """Return a workbook's code, and item number -> checksum; an empty code if it has none."""
    if CODES not in book.sheetnames:
        return "", {}
    sheet = book[CODES]
    last = min(sheet.max_row or _MAX_ROWS, _MAX_ROWS)  # openpyxl creates the rows that it is asked for
    (head, *lines) = [*sheet.iter_rows(max_row=last, max_col=2, values_only=True)] or [()]
    code = str(head[1]) if len(head) > 1 else ""
    return code, {number: str(line[1]) for line in lines if (number := whole_number(line[0])) is not None}


@contextmanager
def open_workbook(path: Path, *, read_only: bool = True) -> Iterator[Workbook]:
    """Open a workbook after `check_archive`; raise RoundError, OSError as `read_xlsx`, also while it is read."""
    from openpyxl import load_workbook

    check_archive(path)
    try:
        # Opened here, because a sheet that is not read to its end keeps openpyxl's own file open.
        with warnings.catch_warnings(), path.open("rb") as file:
            # Warnings are about parts that openpyxl does not support; none of them is needed.
            warnings.simplefilter("ignore")
            # Without `data_only`, formulas are read as formulas.
            with closing(load_workbook(file, read_only=read_only, keep_links=False)) as book:
                yield book
    except (OSError, RoundError):
        raise
    except Exception as error:
        # openpyxl raises whatever its parsers raise; the manager sees it as this file's mistake.
        raise RoundError(f"the file cannot be read as a workbook ({type(error).__name__}); {_SAVE_AGAIN}") from error


def _session_rows(sheet: Any, shown: str, required: Sequence[str], mistakes: list[Message]) -> Iterator[ReturnedRow]:
    """Yield the rows of items; a sheet without keys (guidelines, texts, sheets that people add) has none."""
    from openpyxl.utils import get_column_letter

    lines = enumerate(sheet.iter_rows(max_row=_MAX_ROWS, max_col=_MAX_COLUMNS), 1)
    above: list[tuple[int, Any]] = []
    keys: list[str] = []
    for number, line in islice(lines, _MAX_KEY_ROW):
        keys = [str(cell.value or "").strip() for cell in line]
        if "item" in keys and not set(keys).isdisjoint(required):
            break
        above.append((number, line))
    else:
        return
    for key in ("item", *required):
        if keys.count(key) != 1:
            problem = "occurs twice" if key in keys else "is missing"
            text = f"in row {number}, so nothing is read here; copy the answers into a new file"
            mistakes.append(Message(shown, f"the column {quoted(key)} {problem} {text}"))
            return
    columns = {key: at for at, key in enumerate(keys, 1) if key}
    outside: list[tuple[str, str]] = []
    headed = False
    for number, line in (*above, *lines):
        filled = {at: value for at, cell in enumerate(line, 1) if (value := _value(cell)) is not None}
        values = {key: filled[at] for key, at in columns.items() if at in filled}
        item = whole_number(values.get("item"))
        if not headed and item is None and all(key in values for key in required):
            headed = True
            continue
        inside = set() if item is None else set(columns.values())
        outside += [
            (get_column_letter(at), f"{number}: {quoted(str(filled[at]))}") for at in filled if at not in inside
        ]
        if item is not None:
            cells: dict[str, str] = {}
            for key, at in columns.items():
                cells[key] = f"{shown}, {get_column_letter(at)}{number}"
                cells.setdefault(key.partition(":")[0], cells[key])  # the first column of several labels
            yield ReturnedRow(item, f"{shown}, row {number}", cells, values)
    if outside:
        (letter, problem), more = outside[0], len(outside) - 1
        place, _, text = problem.partition(": ")
        text += f" is outside the table{f' ({more} more cells)' if more else ''}; move or delete it"
        mistakes.append(Message(f"{shown}, {letter}{place}", text, "outside the table"))


def _value(cell: Any) -> CellValue | None:
    if cell.data_type == "f":
        return Formula(str(getattr(cell.value, "text", cell.value)))
    value: CellValue | None = cell.value
    if isinstance(value, str):
        return _RETURN.sub("", value) if value.strip() else None
    return value


def remove_rows(path: Path, round: SpreadsheetRound) -> bool:
    """Remove the rows of erased items from a workbook; return whether there were any.

    A file that has no other rows is deleted.

    Raises:
        RoundError: the file cannot be read, or is not one of the round; the message does not name it.
        DataError: it cannot be written.
        OSError: it cannot be opened.
    """
    whole = io.BytesIO()
    with open_workbook(path, read_only=False) as book:
        code, there = read_codes(book)
        if code not in round.by_code:
            raise RoundError("no spreadsheet of this round can be recognised in it")
        spreadsheet = round.by_code[code]
        kept = {one.place for one in spreadsheet.assignments} if spreadsheet else set()
        if kept.issuperset(there):
            return False
        for sheet in book.worksheets:
            lines = list(sheet.iter_rows())
            column = next((c.column for line in lines[:_MAX_KEY_ROW] for c in line if c.value == "item"), 0)
            for line in lines if column else ():
                number = whole_number(line[column - 1].value)
                # The other cells of a merged range hold nothing, and cannot be set.
                for cell in line if number is not None and number not in kept else ():
                    if hasattr(cell, "hyperlink"):
                        cell.value = cell.hyperlink = cell.comment = None
        if kept:
            book.save(whole)
    if not kept:
        path.unlink()
        return True
    with replacing(path) as temporary:
        temporary.write_bytes(whole.getvalue())
        shutil.copystat(path, temporary)  # answers that were not read yet keep their time
    return True


def check_archive(path: Path) -> None:
    """Reject files that are no workbooks or would need too much memory, before anything is parsed.

    Every part is unpacked once, in chunks; zipfile reads no more than the central directory states. Tags are counted
    as bytes, so that neither encoding nor prefix hides them.

    Raises:
        RoundError: the file is rejected; the message does not name it.
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if not size:
        raise RoundError("the file is empty; ask for it again")
    if size > MAX_FILE:
        raise RoundError(f"the file has {size >> 20:,} MiB; the maximum is {MAX_FILE >> 20}")
    with path.open("rb") as file:
        if file.read(8).startswith(_OLD_FORMAT):
            raise RoundError(f"the file has a password, or is in Excel's old format (.xls); {_SAVE_AGAIN}")
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise RoundError(f"the file unpacks to more than {MAX_UNPACKED >> 20} MiB, the maximum")
            if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
                raise RoundError(f"the file is packed in a way that spreadsheets do not use; {_SAVE_AGAIN}")
            tags = 0
            for part in parts:
                with archive.open(part) as stream:
                    while piece := stream.read(_CHUNK):
                        tags += piece.count(b"<")
                        if tags > MAX_TAGS:
                            raise RoundError("the file has more cells than any spreadsheet of a round")
    # zipfile raises these for other bytes, a password, or an unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise RoundError(f"the file is not a complete workbook ({error}); {_SAVE_AGAIN}") from error
