"""A workbook read back with openpyxl, behind a guard: annotators' files come from anywhere."""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.errors import RoundError
from h2htalk.rounds.spreadsheets.assigned_files import require_size
from h2htalk.rounds.spreadsheets.returned_rows import MAX_ROWS, Formula, Raw, ReturnedRow, table_rows
from h2htalk.rounds.spreadsheets.xlsx_writing import FIRST_ROW

if TYPE_CHECKING:
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

# Of all parts of a file, unpacked (bytes), and the XML tags in them: each becomes objects of some hundred bytes.
MAX_UNPACKED, MAX_TAGS = 64 << 20, 1_000_000
# Of the list of parts at a zip file's end (bytes): a spreadsheet has some hundred parts.
MAX_LIST = 1 << 20
_END, _END_SIZE, _ZIP64 = b"PK\x05\x06", 22, b"PK\x06\x07"
_OLD_FORMAT = b"\xd0\xcf\x11\xe0"
# No spreadsheet has so many columns; what stands further to the right is not looked at.
_MAX_COLUMNS = 64
_CHUNK = 1 << 16
# As Excel stores a carriage return (ECMA-376, ST_Xstring).
_RETURN = re.compile("(?<!_x005F)_x000D_")
_AGAIN = "open it in a spreadsheet program and save it again as .xlsx, without a password"


def read_xlsx(path: Path, shown: str, required: Sequence[str], mistakes: list[str]) -> list[ReturnedRow]:
    """The rows of all sheets that have rows of ours.

    Args:
        shown: the file's name in messages.
        required: keys of columns that a sheet must have.
        mistakes: gets a line for each sheet of which nothing, or not everything, is read.

    Raises:
        RoundError: it is empty, too large, no workbook, protected, or broken; without its name.
        OSError: it cannot be read.
    """
    from openpyxl import load_workbook

    check_archive(path)
    rows: list[ReturnedRow] = []
    try:
        with warnings.catch_warnings():
            # Of parts that openpyxl leaves out: none that is read here.
            warnings.simplefilter("ignore")
            # Formulas are to be seen as such, and not as what they came to: `data_only` stays off.
            book = load_workbook(path, read_only=True, keep_links=False)
            try:
                for sheet in book.worksheets:
                    rows += _sheet_rows(sheet, f"{shown}: {sheet.title}", required, mistakes)
            finally:
                book.close()
    except Exception as error:
        # openpyxl raises what its parsers and descriptors happen to raise; the manager reads it as this file's mistake.
        raise RoundError(f"it cannot be read as a workbook ({type(error).__name__}); {_AGAIN}") from error
    return rows


def _sheet_rows(
    sheet: ReadOnlyWorksheet, shown: str, required: Sequence[str], mistakes: list[str]
) -> Iterator[ReturnedRow]:
    from openpyxl.utils import get_column_letter

    def lines() -> Iterator[tuple[int, Sequence[Raw | None]]]:
        cells = sheet.iter_rows(max_row=MAX_ROWS, max_col=_MAX_COLUMNS)
        for number, line in enumerate(cells, 1):
            # Between the keys and the items stand the headings.
            if number == 1 or number >= FIRST_ROW:
                yield number, [_value(cell) for cell in line]

    table = lines()
    _, heading = next(table, (1, ()))
    # Guidelines, texts, lists, and what people add have no row codes.
    if "row" in heading:
        yield from table_rows(
            heading, table, required, shown, lambda row, at, _: f", {get_column_letter(at)}{row}", mistakes
        )


def _value(cell: Any) -> Raw | None:
    if cell.data_type == "f":
        return Formula(str(getattr(cell.value, "text", cell.value)))
    value: Raw | None = cell.value
    return _RETURN.sub("", value) if isinstance(value, str) else value


def check_archive(path: Path) -> None:
    """Refuse what is no workbook, or would take more memory than a spreadsheet does, before anything is parsed.

    Every part is unpacked once, piece by piece. What the list of parts states bounds what can be unpacked: zipfile
    reads no further. Tags are counted as bytes, so that no coding or prefix hides them.

    Raises:
        RoundError: with what to do; without the file's name.
        OSError: it cannot be read.
    """
    try:
        _check_ends(path)
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise RoundError(
                    f"it unpacks to more than {MAX_UNPACKED >> 20} MiB; no spreadsheet is so large"
                )
            tags = 0
            for part in parts:
                with archive.open(part) as stream:
                    while piece := stream.read(_CHUNK):
                        tags += piece.count(b"<")
                        if tags > MAX_TAGS:
                            raise RoundError("it holds more cells or texts than any spreadsheet")
    # What zipfile raises for bytes that are no zip file, a password, or a packing that it does not know.
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise RoundError(f"it is no whole workbook ({error}); {_AGAIN}") from error


def _check_ends(path: Path) -> None:
    """By size and first and last bytes, before the list of parts is read."""
    size = require_size(path)
    with path.open("rb") as file:
        head = file.read(8)
        file.seek(max(0, size - _END_SIZE - 0xFFFF))
        tail = file.read()
    if head.startswith(_OLD_FORMAT):
        raise RoundError(f"it has a password, or is in Excel's old form (.xls); {_AGAIN}")
    at = tail.rfind(_END)
    if at >= 0 and (
        int.from_bytes(tail[at + 12 : at + 16], "little") > MAX_LIST or _ZIP64 in tail[max(0, at - 20) : at]
    ):
        raise RoundError("it has more parts than any spreadsheet; nothing of it is read")
