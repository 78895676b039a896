"""Save a workbook in memory alone: openpyxl writes each sheet to a temporary file, which a kill leaves behind.

Such a file holds the words of items and names of annotators in a folder where neither the next command nor an erasure
looks for them.
"""

from __future__ import annotations

import io
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from openpyxl.drawing.spreadsheet_drawing import SpreadsheetDrawing
from openpyxl.workbook import Workbook
from openpyxl.worksheet._writer import WorksheetWriter
from openpyxl.writer.excel import ExcelWriter


class _MemoryWriter(ExcelWriter):  # type: ignore[misc]
    """A writer that keeps the XML of a sheet in memory until it is in the archive."""

    def write_worksheet(self, ws: Any) -> None:
        """Write one sheet, as `ExcelWriter.write_worksheet` does."""
        ws._drawing = SpreadsheetDrawing()
        ws._drawing.charts = ws._charts
        ws._drawing.images = ws._images
        content = io.BytesIO()
        writer = WorksheetWriter(ws, content)
        writer.write()
        ws._rels = writer._rels
        self._archive.writestr(ws.path[1:], content.getvalue())
        self.manifest.append(ws)


def workbook_bytes(book: Workbook) -> bytes:
    """Return the content of an `.xlsx` file."""
    # Not a file: a ZipFile on a full disk would complain a second time when it is collected.
    whole = io.BytesIO()
    _MemoryWriter(book, ZipFile(whole, "w", ZIP_DEFLATED, allowZip64=True)).save()
    return whole.getvalue()
