"""Read workbooks with openpyxl, after checks that protect against malicious files."""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.errors import RoundError
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.spreadsheets.assigned_files import require_size
from h2htalk.rounds.spreadsheets.returned_rows import MAX_ROWS, CellValue, Formula, Line, ReturnedRow, table_rows

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

# Unpacked size of all parts of a file (bytes), and number of their XML tags: each becomes some hundred bytes.
MAX_UNPACKED, MAX_TAGS = 64 << 20, 1_000_000
# Size of a zip file's central directory (bytes); a spreadsheet has some hundred parts.
MAX_DIRECTORY = 1 << 20
_END, _END_SIZE, _ZIP64 = b"PK\x05\x06", 22, b"PK\x06\x07"
_OLD_FORMAT = b"\xd0\xcf\x11\xe0"
# Columns that are read; no spreadsheet has more.
_MAX_COLUMNS = 64
_CHUNK = 1 << 16
# A carriage return as Excel stores it (ECMA-376, ST_Xstring).
_RETURN = re.compile("(?<!_x005F)_x000D_")
_SAVE_AGAIN = "open it in a spreadsheet program and save it again as .xlsx, without a password"


def read_xlsx(path: Path, shown: str, required: Sequence[str], mistakes: list[Message]) -> list[ReturnedRow]:
    """Read the rows of all sheets that have row codes.

    Args:
        path: the file.
        shown: its name in messages.
        required: keys of columns that a sheet must have.
        mistakes: gets a message for each sheet that is not read completely.

    Raises:
        RoundError: the file is empty, too large, broken, protected, or not a workbook; the message does not name it.
        OSError: the file cannot be read.
    """
    rows: list[ReturnedRow] = []
    with open_workbook(path) as book:
        for sheet in book.worksheets:
            rows += _sheet_rows(sheet, f"{shown}: {sheet.title}", required, mistakes)
    return rows


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
    except Exception as error:
        # openpyxl raises whatever its parsers raise; the manager sees it as this file's mistake.
        raise RoundError(f"the file cannot be read as a workbook ({type(error).__name__}); {_SAVE_AGAIN}") from error


def _sheet_rows(
    sheet: ReadOnlyWorksheet, shown: str, required: Sequence[str], mistakes: list[Message]
) -> Iterator[ReturnedRow]:
    from openpyxl.utils import get_column_letter

    def cell_name(row: int, at: int, _: str) -> str:
        return f", {get_column_letter(at)}{row}"

    cells = sheet.iter_rows(max_row=MAX_ROWS, max_col=_MAX_COLUMNS)
    lines: Iterator[Line] = ((number, [_value(cell) for cell in line]) for number, line in enumerate(cells, 1))
    # Guidelines, texts, lists, and sheets that people add have no row codes.
    yield from table_rows(lines, required, shown, cell_name, mistakes, is_sheet=True)


def _value(cell: Any) -> CellValue | None:
    if cell.data_type == "f":
        return Formula(str(getattr(cell.value, "text", cell.value)))
    value: CellValue | None = cell.value
    return _RETURN.sub("", value) if isinstance(value, str) else value


def check_archive(path: Path) -> None:
    """Reject files that are no workbooks or would need too much memory, before anything is parsed.

    Every part is unpacked once, in chunks; zipfile reads no more than the central directory states. Tags are counted
    as bytes, so that neither encoding nor prefix hides them.

    Raises:
        RoundError: the file is rejected; the message does not name it.
        OSError: the file cannot be read.
    """
    try:
        _check_ends(path)
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise RoundError(f"the file unpacks to more than {MAX_UNPACKED >> 20} MiB, the maximum")
            tags = 0
            if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
                raise RoundError(f"the file is packed in a way that spreadsheets do not use; {_SAVE_AGAIN}")
            for part in parts:
                with archive.open(part) as stream:
                    while piece := stream.read(_CHUNK):
                        tags += piece.count(b"<")
                        if tags > MAX_TAGS:
                            raise RoundError("the file has more cells than any spreadsheet of a round")
    # zipfile raises these for other bytes, a password, or an unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise RoundError(f"the file is not a complete workbook ({error}); {_SAVE_AGAIN}") from error


def _check_ends(path: Path) -> None:
    """Check the size and the first and last bytes, before the central directory is read."""
    size = require_size(path)
    with path.open("rb") as file:
        head = file.read(8)
        file.seek(max(0, size - _END_SIZE - 0xFFFF))
        tail = file.read()
    if head.startswith(_OLD_FORMAT):
        raise RoundError(f"the file has a password, or is in Excel's old format (.xls); {_SAVE_AGAIN}")
    at = tail.rfind(_END)
    if at >= 0 and (
        int.from_bytes(tail[at + 12 : at + 16], "little") > MAX_DIRECTORY or _ZIP64 in tail[max(0, at - 20) : at]
    ):
        raise RoundError("the file has more parts than any spreadsheet of a round")
