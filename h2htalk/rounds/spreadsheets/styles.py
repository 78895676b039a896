"""How ballots look: named styles, pages, protection, and cells that hold text and never a formula."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from h2htalk.rounds.spreadsheets.text import Run, cell_runs, line_count, lines_shown

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

# Points that a line takes at a size of `_SIZE` points, of Latin signs and of Chinese.
LINE, WIDE_LINE, _SIZE = 12.8, 14.0, 10
# Points of a column's unit: a digit of Arial 10.
UNIT = 5.6
# Of bold letters, by how much they are wider.
BOLD = 1.08
_CHINESE = re.compile("[\u2e80-\uffef]")
# Every system has it, or one of the same widths: row heights are counted out, as not every program fits them itself.
# Columns are measured in its digits too: in those of Calibri, which has no double on many systems, they would be a
# quarter wider there.
_FONT = "Arial"
# Points: the highest row that Excel shows has 409.
_MOST_HEIGHT = 408.0
# In a workbook `_x000D_` stands for a character (ECMA-376, ST_Xstring): a text that reads so is written with its first
# sign escaped.
_LOOKS_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")


def add_styles(book: Workbook) -> None:
    """The named styles of ballots."""
    from openpyxl.styles import Alignment, Border, Font, NamedStyle, PatternFill, Protection, Side

    # openpyxl has no other way to the font that a workbook begins with.
    book._fonts = type(book._fonts)()
    book._named_styles["Normal"].font = Font(name=_FONT, size=_SIZE)
    line = Side(style="thin", color="C9CED6")
    box = Border(left=line, right=line, top=line, bottom=line)
    wrap = Alignment(wrap_text=True, vertical="top")
    middle = Alignment(wrap_text=True, vertical="top", horizontal="center")

    def fill(color: str) -> PatternFill:
        return PatternFill("solid", start_color=color, end_color=color)

    def font(**more: Any) -> Font:
        return Font(**{"name": _FONT, "size": _SIZE, **more})

    free = Protection(locked=False)
    styles: dict[str, dict[str, Any]] = {
        "text": {"font": font(), "border": box},
        "number": {"font": font(bold=True), "border": box, "alignment": middle},
        "head": {"font": font(bold=True, color="FFFFFF"), "border": box, "fill": fill("2F4A6D"), "alignment": middle},
        "turned": {
            "font": font(bold=True, color="FFFFFF"), "border": box, "fill": fill("2F4A6D"),
            "alignment": Alignment(wrap_text=True, vertical="bottom", horizontal="center", text_rotation=90),
        },
        "notice": {"font": font(bold=True, color="7A3E00"), "border": box, "fill": fill("FDEBD3")},
        "link": {"font": font(underline="single", color="1F4FA3"), "border": box},
        "answer": {"font": font(), "border": box, "fill": fill("FFFBE0"), "protection": free, "alignment": middle},
        # As text: what is typed there stays as it was typed, a date or a formula too.
        "comment": {"font": font(), "border": box, "fill": fill("FFFBE0"), "protection": free, "number_format": "@"},
        "title": {"font": font(bold=True, size=18, color="2F4A6D")},
        "heading": {"font": font(bold=True, size=13, color="2F4A6D")},
        "line": {"font": font()},
        "speaker": {"font": font(bold=True)},
        "said": {"font": font()},
    }  # fmt: skip
    for name, parts in styles.items():
        book.add_named_style(NamedStyle(name=f"ballot {name}", **{"alignment": wrap, **parts}))


def height_of(text: str, width: float, size: float = 1.0) -> float:
    """Points that a text takes in a column, its signs `size` times as large as usual."""
    line = WIDE_LINE if _CHINESE.search(text) else LINE
    return min(line_count(text, width / size) * line * size + 4, _MOST_HEIGHT)


def put(sheet: Worksheet, row: int, column: int, value: str | int | Sequence[Run] | None, style: str) -> Any:
    """Fill in a cell; text is text whatever it looks like, and bold where its runs say so. Returns the cell."""
    cell = sheet.cell(row, column)
    cell.style = style
    if isinstance(value, str):
        _say(cell, [(lines_shown(value), False)])
    elif isinstance(value, int):
        cell.value = value
    elif value:
        _say(cell, value)
    return cell


def _say(cell: Any, made: Sequence[Run]) -> None:
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont

    written = [(_LOOKS_ESCAPED.sub("_x005F_", text), bold) for text, bold in cell_runs(made)]
    if any(bold for _, bold in written):
        fonts = {bold: InlineFont(rFont=_FONT, sz=_SIZE, b=bold) for bold in (True, False)}
        cell.value = CellRichText([TextBlock(fonts[bold], text) for text, bold in written])
    elif written:
        cell.value = "".join(text for text, _ in written)
        # Not what openpyxl takes it for: "=x" is no formula here, "#N/A" no error.
        cell.data_type = "s"


def lay_out_page(sheet: Worksheet, *, landscape: bool) -> None:
    """A page to print on: as wide as the sheet, numbered."""
    sheet.page_setup.orientation = "landscape" if landscape else "portrait"
    sheet.page_setup.paperSize = sheet.PAPERSIZE_A4
    sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight = 1, 0
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    # Inches: a centimetre all around, and below it the line with the page's number.
    sheet.page_margins.left = sheet.page_margins.right = sheet.page_margins.top = 0.4
    sheet.page_margins.bottom, sheet.page_margins.header, sheet.page_margins.footer = 0.6, 0.2, 0.3
    sheet.oddFooter.center.text = "&A  &P / &N"
    sheet.sheet_view.showGridLines = False


def protect(sheet: Worksheet) -> None:
    """Only cells to answer in can be filled in; columns and rows may be made wider. No password: against accidents."""
    sheet.protection.sheet = True
    sheet.protection.formatColumns = False
    sheet.protection.formatRows = False
