"""Styles, page setup and protection of workbooks, and cells that contain text, never formulas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from h2htalk.rounds.spreadsheets.item_text import cell_text

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

# In a workbook `_x000D_` means a character (ECMA-376, ST_Xstring): in such a text the first underscore is escaped.
_LOOKS_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
# Height of the row of rotated headings with two lines (points).
ROTATED_HEIGHT = 170


def add_styles(book: Workbook) -> None:
    """Add the named styles. All wrap text: programs fit the height of rows without an explicit one."""
    from openpyxl.styles import Alignment, Border, Font, NamedStyle, PatternFill, Protection, Side

    side = Side(style="thin", color="C9CED6")
    box = Border(left=side, right=side, top=side, bottom=side)
    head = {"font": Font(bold=True, color="FFFFFF"), "border": box, "fill": PatternFill("solid", "2F4A6D")}
    answer = {"border": box, "fill": PatternFill("solid", "FFFBE0"), "protection": Protection(locked=False)}
    styles: dict[str, dict[str, Any]] = {
        "plain": {},
        "text": {"border": box},
        "head": head,
        "rotated": head | {"alignment": Alignment(wrap_text=True, vertical="bottom", text_rotation=90)},
        "notice": {"font": Font(bold=True, color="7A3E00"), "border": box, "fill": PatternFill("solid", "FDEBD3")},
        "link": {"font": Font(underline="single", color="1F4FA3"), "border": box},
        "answer": answer,
        # Text format: dates and formulas stay as they are typed.
        "comment": answer | {"number_format": "@"},
        "title": {"font": Font(bold=True, size=18, color="2F4A6D")},
        "heading": {"font": Font(bold=True, size=13, color="2F4A6D")},
    }  # fmt: skip
    wrap = {"alignment": Alignment(wrap_text=True, vertical="top")}
    for name, parts in styles.items():
        book.add_named_style(NamedStyle(name=f"h2htalk {name}", **(wrap | parts)))


def write_cell(sheet: Worksheet, row: int, column: int, value: str | int | None, style: str) -> Any:
    """Write a cell, text always as text, and return it."""
    cell = sheet.cell(row, column)
    cell.style = f"h2htalk {style}"
    if isinstance(value, int):
        cell.value = value
    elif value:
        cell.value = _LOOKS_ESCAPED.sub("_x005F_", cell_text(value))
        # openpyxl would take "=x" for a formula and "#N/A" for an error.
        cell.data_type = "s"
    return cell


def link(cell: Any, location: str) -> None:
    """Link a cell to another cell of the same workbook."""
    from openpyxl.worksheet.hyperlink import Hyperlink

    cell.hyperlink = Hyperlink(ref=cell.coordinate, location=location)


def finish_sheet(sheet: Worksheet, *, landscape: bool) -> None:
    """Fit the page to the sheet's width, and protect all cells but answers; columns and rows may be resized.

    The protection has no password: it prevents accidents.
    """
    sheet.page_setup.orientation = "landscape" if landscape else "portrait"
    sheet.page_setup.paperSize = sheet.PAPERSIZE_A4
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.protection.sheet = True
    sheet.protection.formatColumns = sheet.protection.formatRows = False
