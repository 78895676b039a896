"""Cells, styles and sheets of a workbook: texts as texts, rows as high as their texts, protection."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from openpyxl.styles import Alignment, Border, Font, NamedStyle, PatternFill, Protection, Side
from openpyxl.workbook import Workbook

from h2htalk.rounds.spreadsheets.item_text import cell_text
from h2htalk.rounds.spreadsheets.row_heights import (
    BOLD,
    FONT_SIZE,
    FONT_SIZES,
    MAX_HEIGHT,
    text_height,
)

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

# What the names of the workbook's styles begin with.
_STYLE = "h2htalk "
# Margins at both sides of a printed page (inches).
_SIDE_MARGIN = 0.5
# In a workbook `_x000D_` means a character (ECMA-376, ST_Xstring): in such a text the first underscore is escaped.
_LOOKS_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")


def add_styles(book: Workbook) -> None:
    """Add the named styles. All wrap text."""
    side = Side(style="thin", color="C9CED6")
    box = Border(left=side, right=side, top=side, bottom=side)
    head = {"border": box, "fill": PatternFill("solid", "2F4A6D")}
    answer = {
        "border": box,
        "fill": PatternFill("solid", "FFFBE0"),
        "protection": Protection(locked=False),
    }
    styles: dict[str, dict[str, Any]] = {
        "plain": {},
        "text": {"border": box},
        "head": head,
        "rotated": head
        | {"alignment": Alignment(wrap_text=True, vertical="bottom", text_rotation=90)},
        "notice": {"border": box, "fill": PatternFill("solid", "FDEBD3")},
        "link": {"border": box},
        "answer": answer,
        # Text format: dates and formulas stay as they are typed.
        "comment": answer | {"number_format": "@"},
        "title": {},
        "heading": {},
    }
    colors = {"head": "FFFFFF", "rotated": "FFFFFF", "notice": "7A3E00", "link": "1F4FA3"}
    colors |= dict.fromkeys(FONT_SIZES, "2F4A6D")
    wrap = {"alignment": Alignment(wrap_text=True, vertical="top")}
    for name, parts in styles.items():
        font = Font(
            name="Calibri",  # without a name LibreOffice takes another font than the columns are measured in
            bold=name in BOLD,
            size=FONT_SIZES.get(name, FONT_SIZE),
            color=colors.get(name),
            underline="single" if name == "link" else None,
        )
        book.add_named_style(NamedStyle(name=f"{_STYLE}{name}", **(wrap | {"font": font} | parts)))


def write_cell(
    sheet: Worksheet, row: int, column: int, value: Any, style: str, *, is_typed: bool = False
) -> Any:
    """Write a cell, text always as text and never as a formula, and return it; typed text is not escaped."""
    cell = sheet.cell(row, column)
    cell.style = f"{_STYLE}{style}"
    if isinstance(value, str) and value:
        cell.value = _LOOKS_ESCAPED.sub("_x005F_", value if is_typed else cell_text(value))
        # openpyxl would take "=x" for a formula and "#N/A" for an error.
        cell.data_type = "s"
    elif value != "":
        cell.value = value
    return cell


def write_formula(sheet: Worksheet, row: int, column: int, formula: str, style: str) -> None:
    """Write a formula of this package, which holds no text of an item; a protected sheet does not show it."""
    cell = sheet.cell(row, column)
    cell.style = f"{_STYLE}{style}"
    cell.protection = Protection(locked=True, hidden=True)
    cell.value = f"={formula}"


def _set_heights(sheet: Worksheet) -> None:
    """Set the height of each row that is shown, so that none of its texts is cut off; a height that it has is least."""
    for cells in sheet.iter_rows():
        row = sheet.row_dimensions[cells[0].row]
        heights = [row.height] if row.height else []
        for cell in cells:
            column = sheet.column_dimensions[cell.column_letter]
            style = str(cell.style).removeprefix(_STYLE)
            # Rotated headings have a height of their own, and a formula is not the text that it shows.
            if (
                cell.value is not None
                and not column.hidden
                and style != "rotated"
                and cell.data_type != "f"
            ):
                heights.append(text_height(str(cell.value), column.width, style))
        if heights and not row.hidden:
            row.height = min(MAX_HEIGHT, max(heights))


def finish_sheet(sheet: Worksheet, *, landscape: bool) -> None:
    """Fit rows to their texts and the page to the sheet's width, and protect all cells but answers.

    Columns and rows may be resized. The protection has no password: it prevents accidents.
    """
    if sheet.sheet_state == "visible":
        _set_heights(sheet)
    sheet.page_setup.orientation = "landscape" if landscape else "portrait"
    sheet.page_setup.paperSize = sheet.PAPERSIZE_A4
    sheet.page_setup.fitToHeight = 0
    sheet.page_margins.left = _SIDE_MARGIN
    sheet.page_margins.right = _SIDE_MARGIN
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.protection.sheet = True
    sheet.protection.formatColumns = sheet.protection.formatRows = False
