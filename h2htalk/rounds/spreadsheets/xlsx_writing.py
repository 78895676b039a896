"""Spreadsheets as workbooks: guidelines, one sheet a session, separate texts, and hidden lists of choices."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.columns import (
    SpreadsheetColumn,
    SpreadsheetRow,
    answer_columns,
    item_choices,
    spreadsheet_rows,
    text_columns,
)  # fmt: skip
from h2htalk.rounds.spreadsheets.guideline_text import guideline_lines
from h2htalk.rounds.spreadsheets.item_text import item_blocks, split_text
from h2htalk.rounds.spreadsheets.xlsx_styles import ROTATED_HEIGHT, add_styles, finish_sheet, link, write_cell
from h2htalk.rounds.texts.interface import interface_text, label_text
from h2htalk.text.escaping import printable_lines

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

# A session's sheet has hidden keys and headings above the items; a text's sheet its item, a link back and a notice.
FIRST_ROW, FIRST_TEXT_ROW = 3, 4
# Title of the hidden sheet of choices.
LISTS = "lists"
# Widths of the guidelines, of speakers and of texts: a page of A4.
_PAGE, _SPEAKER, _TEXT = 82, 12, 70
# Maximum lengths of a data validation's prompt and its title; Excel rejects files with longer ones.
MAX_PROMPT, MAX_PROMPT_TITLE = 250, 30


def write_workbook(round: SpreadsheetRound, spreadsheet: Spreadsheet, guidelines: str, path: Path) -> None:
    """Write a spreadsheet. Raise OSError if the file cannot be written."""
    from openpyxl.workbook import Workbook

    book = Workbook()
    add_styles(book)
    language = spreadsheet.language
    _write_guidelines(book.active, guidelines, language)
    texts = text_columns(round, spreadsheet)
    columns = [*texts, *answer_columns(round.questions, language, per_label=True)]

    def reference(number: int) -> str:
        sheet = _text_sheet(number, language)
        return interface_text("text_elsewhere", language, sheet=sheet, row=FIRST_TEXT_ROW)

    rows = spreadsheet_rows(round, spreadsheet, texts, reference)
    lists = _Lists(book.create_sheet(LISTS))
    for session in sorted({row.session for row in rows}):
        sheet = book.create_sheet(_session_sheet(session, language))
        _write_session(sheet, columns, [row for row in rows if row.session == session], language, lists)
    for row in rows:
        if row.separate:
            _write_text(book.create_sheet(_text_sheet(row.number, language)), row, rows, language)
    book.move_sheet(lists.sheet, len(book.sheetnames))
    whole = io.BytesIO()  # a ZipFile on a full disk would complain a second time when it is collected
    book.save(whole)
    path.write_bytes(whole.getvalue())


def _session_sheet(number: int, language: Language) -> str:
    return interface_text("session_number", language, number=number)


def _text_sheet(number: int, language: Language) -> str:
    return f"{interface_text('text', language)} {number}"


def text_sheets(number: object) -> set[str]:
    """Return the titles that the sheet of an item's text may have."""
    return {f"{interface_text('text', language)} {number}" for language in LANGUAGES}


def _write_guidelines(sheet: Worksheet, text: str, language: Language) -> None:
    sheet.title = interface_text("guidelines", language)
    sheet.column_dimensions["A"].width = _PAGE
    at = 1
    for style, line in guideline_lines(text):
        for part in split_text(line, _PAGE):
            write_cell(sheet, at, 1, part, "plain" if style == "line" else style)
            at += 1
    finish_sheet(sheet, landscape=False)


def _write_text(sheet: Worksheet, row: SpreadsheetRow, rows: Sequence[SpreadsheetRow], language: Language) -> None:
    """Write one item's separate text, one row a message, with the speakers beside it."""
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = _SPEAKER, _TEXT
    title = interface_text("item_of", language, number=row.number, total=len(rows))
    write_cell(sheet, 1, 2, title, "heading")
    back = write_cell(sheet, 2, 2, interface_text("back_to_question", language), "link")
    at = [one.number for one in rows if one.session == row.session].index(row.number) + FIRST_ROW
    link(back, f"'{_session_sheet(row.session, language)}'!B{at}")
    if row.item.crisis:
        write_cell(sheet, 3, 2, interface_text(row.item.notice, language), "notice")
    at = FIRST_TEXT_ROW
    for block in item_blocks(row.item, language):
        write_cell(sheet, at, 2, block.title, "heading")
        at += 1
        for speaker, text in block.lines:
            for number, part in enumerate(split_text(printable_lines(text), _TEXT)):
                write_cell(sheet, at, 1, speaker if number == 0 else "", "plain")
                write_cell(sheet, at, 2, part, "plain")
                at += 1
        at += 1
    sheet.freeze_panes = "A3"
    finish_sheet(sheet, landscape=False)


# --- A session ----------------------------------------------------------------------------------------------------


def _write_session(
    sheet: Worksheet,
    columns: Sequence[SpreadsheetColumn],
    rows: Sequence[SpreadsheetRow],
    language: Language,
    lists: _Lists,
) -> None:
    from openpyxl.utils import get_column_letter

    for at, column in enumerate(columns, 1):
        # Chinese fits into narrow columns without rotation, two characters a line.
        rotated = bool(column.label) and find_language(language).spaced
        write_cell(sheet, 1, at, column.key, "plain")
        write_cell(sheet, 2, at, column.heading, "rotated" if rotated else "head")
        sheet.column_dimensions[get_column_letter(at)].width = column.width
        if rotated:
            sheet.row_dimensions[2].height = ROTATED_HEIGHT
    sheet.column_dimensions["A"].hidden = sheet.row_dimensions[1].hidden = True
    for at, row in enumerate(rows, FIRST_ROW):
        _write_row(sheet, at, columns, row, language)
    for at, column in enumerate(columns, 1):
        if column.is_answer:
            _add_choices(sheet, get_column_letter(at), column, rows, language, lists)
    sheet.freeze_panes = f"C{FIRST_ROW}"
    sheet.print_title_rows = "2:2"
    finish_sheet(sheet, landscape=True)


def _write_row(
    sheet: Worksheet, at: int, columns: Sequence[SpreadsheetColumn], row: SpreadsheetRow, language: Language
) -> None:
    for number, column in enumerate(columns, 1):
        if column.key == "row":
            write_cell(sheet, at, number, row.code, "plain")
        elif column.key == "item":
            write_cell(sheet, at, number, row.number, "text")
        elif column.is_answer:
            is_comment = column.question is not None and column.question.form == "text"
            write_cell(sheet, at, number, None, "comment" if is_comment else "answer")
        elif column.key == "text" and row.separate:
            cell = write_cell(sheet, at, number, row.cells["text"], "link")
            link(cell, f"'{_text_sheet(row.number, language)}'!A{FIRST_TEXT_ROW}")
        else:
            text = row.cells.get(column.key, "")
            write_cell(sheet, at, number, text, "notice" if column.key == "notice" and text else "text")


def _add_choices(
    sheet: Worksheet,
    letter: str,
    column: SpreadsheetColumn,
    rows: Sequence[SpreadsheetRow],
    language: Language,
    lists: _Lists,
) -> None:
    """Add drop-down lists to a column: one for all items, or one for each set of choices."""
    question = column.question
    groups: dict[tuple[str, ...], list[str]] = {}
    for at, row in enumerate(rows, FIRST_ROW):
        if question is None or question.form == "labels":
            choices: tuple[str, ...] = (interface_text("yes" if question else "skip_yes", language),)
        else:
            choices = tuple(item_choices(question, row.item, language).values())
        groups.setdefault(choices, []).append(f"{letter}{at}")
    for choices, cells in groups.items():
        where = " ".join(cells) if len(groups) > 1 else f"{cells[0]}:{cells[-1]}"
        _add_validation(sheet, where, lists.range_of(choices) if choices else None, column, language)


def _add_validation(
    sheet: Worksheet, cells: str, choices: str | None, column: SpreadsheetColumn, language: Language
) -> None:
    from openpyxl.worksheet.datavalidation import DataValidation

    question = column.question
    title = label_text(question.name, column.label, language) if question and column.label else column.heading
    rule = DataValidation(
        type="list" if choices else None,
        formula1=choices,
        allow_blank=True,
        showInputMessage=True,
        prompt=column.help[:MAX_PROMPT],
        promptTitle=title.split("\n")[0][:MAX_PROMPT_TITLE],
        sqref=cells,
    )
    if choices:
        rule.showErrorMessage, rule.errorStyle = True, "stop"
        rule.error = rule.errorTitle = interface_text("choose", language)
    sheet.add_data_validation(rule)


class _Lists:
    """Lists of choices in a hidden sheet, each once: a list inside a validation is limited to 255 characters."""

    def __init__(self, sheet: Worksheet) -> None:
        self.sheet = sheet
        sheet.sheet_state = "hidden"
        finish_sheet(sheet, landscape=False)
        self._ranges: dict[tuple[str, ...], str] = {}

    def range_of(self, choices: tuple[str, ...]) -> str:
        """Return the range of cells with these choices, as a validation names it."""
        from openpyxl.utils import get_column_letter

        if choices not in self._ranges:
            at = len(self._ranges) + 1
            for number, choice in enumerate(choices, 1):
                write_cell(self.sheet, number, at, choice, "plain")
            letter = get_column_letter(at)
            self._ranges[choices] = f"'{LISTS}'!${letter}$1:${letter}${len(choices)}"
        return self._ranges[choices]
