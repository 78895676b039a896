"""How workbooks look: named styles, pages, protection, and cells that hold text and never a formula."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from h2htalk.rounds.spreadsheets.item_text import cell_text

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

# In a workbook `_x000D_` stands for a character (ECMA-376, ST_Xstring): a text that reads so is written with its first
# sign escaped.
_LOOKS_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
# Points of the row of turned headings, two lines each.
TURNED_HEIGHT = 170


def add_styles(book: Workbook) -> None:
    """The named styles of spreadsheets. All wrap: programs fit the height of rows for which none is set."""
    from openpyxl.styles import Alignment, Border, Font, NamedStyle, PatternFill, Protection, Side

    side = Side(style="thin", color="C9CED6")
    box = Border(left=side, right=side, top=side, bottom=side)
    head = {"font": Font(bold=True, color="FFFFFF"), "border": box, "fill": PatternFill("solid", "2F4A6D")}
    free = {"border": box, "fill": PatternFill("solid", "FFFBE0"), "protection": Protection(locked=False)}
    styles: dict[str, dict[str, Any]] = {
        "plain": {},
        "text": {"border": box},
        "head": head,
        "turned": head | {"alignment": Alignment(wrap_text=True, vertical="bottom", text_rotation=90)},
        "notice": {"font": Font(bold=True, color="7A3E00"), "border": box, "fill": PatternFill("solid", "FDEBD3")},
        "link": {"font": Font(underline="single", color="1F4FA3"), "border": box},
        "answer": free,
        # As text: what is typed there stays as it was typed, a date or a formula too.
        "comment": free | {"number_format": "@"},
        "title": {"font": Font(bold=True, size=18, color="2F4A6D")},
        "heading": {"font": Font(bold=True, size=13, color="2F4A6D")},
    }  # fmt: skip
    wrap = {"alignment": Alignment(wrap_text=True, vertical="top")}
    for name, parts in styles.items():
        book.add_named_style(NamedStyle(name=f"h2htalk {name}", **(wrap | parts)))


def put(sheet: Worksheet, row: int, column: int, value: str | int | None, style: str) -> Any:
    """Fill in a cell; text is text whatever it looks like. Returns the cell."""
    cell = sheet.cell(row, column)
    cell.style = f"h2htalk {style}"
    if isinstance(value, int):
        cell.value = value
    elif value:
        cell.value = _LOOKS_ESCAPED.sub("_x005F_", cell_text(value))
        # Not what openpyxl takes it for: "=x" is no formula here, "#N/A" no error.
        cell.data_type = "s"
    return cell


def link(cell: Any, location: str) -> None:
    """Lead from a cell to another of the same workbook."""
    from openpyxl.worksheet.hyperlink import Hyperlink

    cell.hyperlink = Hyperlink(ref=cell.coordinate, location=location)


def finish_sheet(sheet: Worksheet, *, landscape: bool) -> None:
    """A page to print on, as wide as the sheet; only cells to answer in can be filled in.

    The protection has no password, as it is against accidents; columns and rows may be made wider.
    """
    sheet.page_setup.orientation = "landscape" if landscape else "portrait"
    sheet.page_setup.paperSize = sheet.PAPERSIZE_A4
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.protection.sheet = True
    sheet.protection.formatColumns = sheet.protection.formatRows = False
