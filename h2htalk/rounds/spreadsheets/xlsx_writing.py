"""A spreadsheet as a workbook: guidelines, a sheet a session, the texts that stand apart, hidden lists of choices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from h2htalk.data.languages import Language
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.columns import (
    SpreadsheetColumn,
    SpreadsheetRow,
    answer_columns,
    choices_of,
    spreadsheet_rows,
    text_columns,
)  # fmt: skip
from h2htalk.rounds.spreadsheets.guideline_text import guideline_lines
from h2htalk.rounds.spreadsheets.item_text import lines_shown, portions, whole_text
from h2htalk.rounds.spreadsheets.xlsx_styles import TURNED_HEIGHT, add_styles, finish_sheet, link, put
from h2htalk.rounds.texts.interface import label_text, word

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

# Above the rows of items: the columns' keys (hidden), their headings. Above a text: which item, the way back, a notice.
FIRST_ROW, FIRST_TEXT_ROW = 3, 4
# The hidden sheet of choices.
LISTS = "lists"
# Widths of the guidelines, and of a text with its speakers: a page of A4.
_PAGE, _SPEAKER, _SAID = 82, 12, 70
# A data validation's prompt holds this many characters, its title fewer; Excel calls a file with longer ones broken.
MAX_PROMPT, MAX_PROMPT_TITLE = 250, 30


def write_workbook(known: SpreadsheetRound, spreadsheet: Spreadsheet, guidelines: str, path: Path) -> None:
    """Write a spreadsheet. Raises OSError where the file cannot be written."""
    from openpyxl.workbook import Workbook

    book = Workbook()
    add_styles(book)
    language = spreadsheet.language
    _write_guidelines(book.active, guidelines, language)
    texts = text_columns(known, spreadsheet)
    columns = [*texts, *answer_columns(known.questions, language, apart=True)]
    rows = spreadsheet_rows(
        known,
        spreadsheet,
        texts,
        lambda number: word("text_elsewhere", language, sheet=_text_sheet(number, language), row=FIRST_TEXT_ROW),
    )  # fmt: skip
    lists = _Lists(book.create_sheet(LISTS))
    for session in sorted({row.session for row in rows}):
        sheet = book.create_sheet(word("session_number", language, number=session))
        _write_session(sheet, columns, [row for row in rows if row.session == session], language, lists)
    for row in rows:
        if row.elsewhere:
            _write_text(book.create_sheet(_text_sheet(row.number, language)), row, rows, language)
    book.move_sheet(lists.sheet, len(book.sheetnames))
    book.save(path)


def _text_sheet(number: int, language: Language) -> str:
    return f"{word('text', language)} {number}"


def _write_guidelines(sheet: Worksheet, text: str, language: Language) -> None:
    sheet.title = word("guidelines", language)
    sheet.column_dimensions["A"].width = _PAGE
    at = 1
    for style, line in guideline_lines(text):
        for portion in portions(line, _PAGE):
            put(sheet, at, 1, portion, "plain" if style == "line" else style)
            at += 1
    finish_sheet(sheet, landscape=False)


def _write_text(
    sheet: Worksheet, row: SpreadsheetRow, rows: Sequence[SpreadsheetRow], language: Language
) -> None:
    """One item's text that stands apart, a row a message, the speakers before them."""
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = _SPEAKER, _SAID
    put(sheet, 1, 2, word("item_of", language, number=row.number, total=len(rows)), "heading")
    back = put(sheet, 2, 2, word("back_to_question", language), "link")
    at = [one.number for one in rows if one.session == row.session].index(row.number) + FIRST_ROW
    link(back, f"'{word('session_number', language, number=row.session)}'!B{at}")
    if row.item.crisis:
        put(sheet, 3, 2, word("crisis_notice", language), "notice")
    at = FIRST_TEXT_ROW
    for block in whole_text(row.item, language):
        put(sheet, at, 2, block.title, "heading")
        at += 1
        for speaker, text in block.lines:
            for number, portion in enumerate(portions(lines_shown(text), _SAID)):
                put(sheet, at, 1, speaker if number == 0 else "", "plain")
                put(sheet, at, 2, portion, "plain")
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
        # Chinese reads from top to bottom as it stands, two signs a line.
        turned = bool(column.label) and language == "en"
        put(sheet, 1, at, column.key, "plain")
        put(sheet, 2, at, column.heading, "turned" if turned else "head")
        sheet.column_dimensions[get_column_letter(at)].width = column.width
        if turned:
            sheet.row_dimensions[2].height = TURNED_HEIGHT
    sheet.column_dimensions["A"].hidden = sheet.row_dimensions[1].hidden = True
    for at, row in enumerate(rows, FIRST_ROW):
        _write_row(sheet, at, columns, row, language)
    for at, column in enumerate(columns, 1):
        if column.answers:
            _offer_choices(sheet, get_column_letter(at), column, rows, language, lists)
    sheet.freeze_panes = f"C{FIRST_ROW}"
    sheet.print_title_rows = "2:2"
    finish_sheet(sheet, landscape=True)


def _write_row(
    sheet: Worksheet, at: int, columns: Sequence[SpreadsheetColumn], row: SpreadsheetRow, language: Language
) -> None:
    for number, column in enumerate(columns, 1):
        if column.key == "row":
            put(sheet, at, number, row.code, "plain")
        elif column.key == "item":
            put(sheet, at, number, row.number, "text")
        elif column.answers:
            free = column.question is not None and column.question.form == "text"
            put(sheet, at, number, None, "comment" if free else "answer")
        elif column.key == "text" and row.elsewhere:
            cell = put(sheet, at, number, row.cells["text"], "link")
            link(cell, f"'{_text_sheet(row.number, language)}'!A{FIRST_TEXT_ROW}")
        else:
            text = row.cells.get(column.key, "")
            put(sheet, at, number, text, "notice" if column.key == "notice" and text else "text")


def _offer_choices(
    sheet: Worksheet,
    letter: str,
    column: SpreadsheetColumn,
    rows: Sequence[SpreadsheetRow],
    language: Language,
    lists: _Lists,
) -> None:
    """Drop-down lists for a column; where items leave different labels to choose, one for each of them."""
    question = column.question
    groups: dict[tuple[str, ...], list[str]] = {}
    for at, row in enumerate(rows, FIRST_ROW):
        if question is None or question.form == "labels":
            shown: tuple[str, ...] = (word("yes" if question else "skip_yes", language),)
        else:
            shown = tuple(choices_of(question, row.item, language).values())
        groups.setdefault(shown, []).append(f"{letter}{at}")
    for shown, cells in groups.items():
        where = " ".join(cells) if len(groups) > 1 else f"{cells[0]}:{cells[-1]}"
        _validate(sheet, where, lists.range_of(shown) if shown else None, column, language)


def _validate(
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
        rule.error = rule.errorTitle = word("choose", language)
    sheet.add_data_validation(rule)


class _Lists:
    """Lists of choices in a hidden sheet, each once: a list written into a rule holds 255 characters at most."""

    def __init__(self, sheet: Worksheet) -> None:
        self.sheet = sheet
        sheet.sheet_state = "hidden"
        finish_sheet(sheet, landscape=False)
        self._made: dict[tuple[str, ...], str] = {}

    def range_of(self, shown: tuple[str, ...]) -> str:
        """The cells that hold these choices, as a rule names them."""
        from openpyxl.utils import get_column_letter

        if shown not in self._made:
            at = len(self._made) + 1
            for number, choice in enumerate(shown, 1):
                put(self.sheet, number, at, choice, "plain")
            letter = get_column_letter(at)
            self._made[shown] = f"'{LISTS}'!${letter}$1:${letter}${len(shown)}"
        return self._made[shown]
