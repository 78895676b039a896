"""The sheet that counts what is answered, and shows the completion code once everything is answered or skipped.

The code stands in a hidden sheet, and the sheets are protected without a password: somebody who looks for it finds it.
It keeps nobody from entering the code early, but nobody meets it by reading. `round status` says who did enter it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h2htalk.data.languages import Language
from h2htalk.rounds.settings import is_link
from h2htalk.rounds.spreadsheets.cells import finish_sheet, write_cell, write_formula
from h2htalk.rounds.spreadsheets.row_heights import text_height
from h2htalk.rounds.texts.interface import interface_text

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

_WIDTHS = {"A": 60, "B": 36, "C": 10}
_FIRST_SESSION = 4


@dataclass(frozen=True, slots=True)
class AnswerRange:
    """Where the answers of one session are: letters of columns, and rows.

    `required` has the columns of each question that every item needs an answer to; one of them is enough.
    """

    title: str
    rows: int
    first_row: int
    required: tuple[tuple[str, ...], ...]
    skip: str

    def count(self) -> str:
        """Return a formula that counts the items that are answered or skipped."""
        answered = "*".join(f"({self._any_filled(columns)})" for columns in self.required)
        return f"SUMPRODUCT(--((({self._filled(self.skip)})+{answered})>0))"

    def _any_filled(self, columns: Sequence[str]) -> str:
        if len(columns) == 1:
            return self._filled(columns[0])
        return "+".join(f"({self._filled(column)})" for column in columns) + ">0"

    def _filled(self, column: str) -> str:
        last_row = self.first_row + self.rows - 1
        return f"'{self.title}'!${column}${self.first_row}:${column}${last_row}<>\"\""


def write_completion(
    sheet: Worksheet,
    ranges: Sequence[AnswerRange],
    completion: str,
    code_cell: str,
    language: Language,
) -> None:
    """Write the sheet; `code_cell` is the address of the cell that holds the completion code or link."""
    for letter, width in _WIDTHS.items():
        sheet.column_dimensions[letter].width = width
    link = is_link(completion)
    write_cell(sheet, 1, 1, interface_text("completion", language), "title")
    write_cell(
        sheet,
        2,
        1,
        interface_text("completion_link" if link else "completion_code", language),
        "plain",
    )
    for column, name in ((2, "completion_done"), (3, "completion_items")):
        write_cell(sheet, 3, column, interface_text(name, language), "heading")
    row = _FIRST_SESSION
    for one in ranges:
        write_cell(sheet, row, 1, one.title, "plain")
        write_formula(sheet, row, 2, one.count(), "plain")
        write_cell(sheet, row, 3, one.rows, "plain")
        row += 1
    last = row - 1
    write_cell(sheet, row, 1, interface_text("completion_all", language), "heading")
    write_formula(sheet, row, 2, f"SUM(B{_FIRST_SESSION}:B{last})", "heading")
    write_formula(sheet, row, 3, f"SUM(C{_FIRST_SESSION}:C{last})", "heading")
    write_cell(
        sheet,
        row + 1,
        1,
        interface_text("completion_link_label" if link else "completion_label", language),
        "heading",
    )
    waiting = interface_text("completion_waiting", language).replace('"', '""')
    write_formula(sheet, row + 1, 2, f'IF(B{row}>=C{row},{code_cell},"{waiting}")', "heading")
    # Of the text that the formula shows.
    shown = max(text_height(text, _WIDTHS["B"], "heading") for text in (completion, waiting))
    sheet.row_dimensions[row + 1].height = shown
    finish_sheet(sheet, landscape=False)
