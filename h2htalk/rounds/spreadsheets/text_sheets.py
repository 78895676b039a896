"""Sheets for the texts that stand apart: an item that speaks of a crisis, or one too long for a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2htalk.data.dialogue import Language
from h2htalk.rounds.spreadsheets.columns import Row
from h2htalk.rounds.spreadsheets.styles import BOLD, height_of, lay_out_page, protect, put
from h2htalk.rounds.spreadsheets.text import Block, lines_shown, portions, whole_text
from h2htalk.rounds.texts import word

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

# Above it: which item this is, and the way back.
FIRST_TEXT_ROW = 4
# Of a row at most: a screen shows it whole (lines).
_MOST_LINES = 20
# Units: together a page of A4.
_SPEAKER, _SAID = 11, 70


def write_text_sheet(sheet: Worksheet, row: Row, language: Language, total: int, back: str) -> None:
    """One item's text, a row a message, the speakers before them.

    Args:
        total: items of the ballot.
        back: the cell to which the sheet leads back.
    """
    from openpyxl.worksheet.hyperlink import Hyperlink

    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = _SPEAKER + 1, _SAID + 1
    put(sheet, 1, 2, word("item_of", language, number=row.number, total=total), "ballot heading")
    cell = put(sheet, 2, 2, word("back_to_question", language), "ballot link")
    cell.hyperlink = Hyperlink(ref=cell.coordinate, location=back)
    if row.item.crisis:
        put(sheet, 3, 2, word("crisis_notice", language), "ballot notice")
        sheet.row_dimensions[3].height = height_of(word("crisis_notice", language), _SAID, BOLD)
    at = FIRST_TEXT_ROW
    for block in whole_text(row.item, language):
        at = _block(sheet, at, block)
    sheet.freeze_panes = "A3"
    lay_out_page(sheet, landscape=False)
    protect(sheet)


def _block(sheet: Worksheet, at: int, block: Block) -> int:
    put(sheet, at, 2, block.title, "ballot heading")
    sheet.row_dimensions[at].height = height_of(block.title, _SAID, 1.4)
    at += 1
    for speaker, text in block.lines:
        for number, portion in enumerate(portions(lines_shown(text), _SAID, _MOST_LINES)):
            put(sheet, at, 1, speaker if number == 0 else "", "ballot speaker")
            put(sheet, at, 2, portion, "ballot said")
            sheet.row_dimensions[at].height = height_of(portion, _SAID) + 3
            at += 1
    return at + 1
