"""A ballot as a workbook: guidelines, a sheet a sitting, the texts that stand apart, and a hidden record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.errors import MissingExtraError
from h2htalk.rounds.spreadsheets.columns import (
    MOST_LINES,
    Column,
    Row,
    answer_columns,
    ballot_rows,
    choices_of,
    shown_choices,
    text_columns,
)  # fmt: skip
from h2htalk.rounds.spreadsheets.files import Ballot, BallotRound
from h2htalk.rounds.spreadsheets.guideline_sheets import PAGE, guideline_lines
from h2htalk.rounds.spreadsheets.record import FIRST_ROW, FORMAT, SHEET, Record, SheetRecord, pieces
from h2htalk.rounds.spreadsheets.styles import (
    BOLD,
    LINE,
    UNIT,
    add_styles,
    height_of,
    lay_out_page,
    protect,
    put,
)
from h2htalk.rounds.spreadsheets.text import line_count, plain
from h2htalk.rounds.spreadsheets.text_sheets import FIRST_TEXT_ROW, write_text_sheet
from h2htalk.rounds.texts import label_text, word

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

INSTALL = 'pip install "h2htalk[rounds]"'
# Lines of a turned heading; points between two paragraphs of the guidelines.
_TURNED_LINES, _PARAGRAPH = 2, 7
# A data validation's prompt holds this many characters, its title fewer; Excel calls a file with longer ones broken.
MAX_PROMPT, MAX_PROMPT_TITLE = 250, 30


def require_openpyxl() -> None:
    """Raise MissingExtraError unless workbooks can be written."""
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise MissingExtraError("making ballots", INSTALL) from None


def write_workbook(known: BallotRound, ballot: Ballot, guidelines: str, path: Path) -> None:
    """Write a ballot. Raises OSError where the file cannot be written."""
    from openpyxl.workbook import Workbook

    book = Workbook()
    book.properties.creator = "h2htalk"
    add_styles(book)
    _guidelines(book.active, guidelines, ballot)
    language = ballot.language
    texts = text_columns(known, ballot)
    columns = [*texts, *answer_columns(known.questions, language, apart=True)]
    rows = ballot_rows(
        known,
        ballot,
        texts,
        lambda number: word(
            "text_elsewhere", language, sheet=_text_sheet(number, ballot), row=FIRST_TEXT_ROW
        ),
        MOST_LINES,
    )
    hidden = _Lists(book.create_sheet(SHEET))
    records = []
    for sitting in sorted({row.sitting for row in rows}):
        sheet = book.create_sheet(word("sitting_number", language, number=sitting))
        here = [row for row in rows if row.sitting == sitting]
        _sitting(sheet, known, ballot, columns, here, hidden)
        records.append(SheetRecord(sheet.title, _keys(columns), tuple(row.code for row in here)))
    for row in rows:
        if row.elsewhere:
            sheet = book.create_sheet(_text_sheet(row.number, ballot))
            back = _address(word("sitting_number", language, number=row.sitting), rows, row)
            write_text_sheet(sheet, row, language, len(rows), back)
    choices = {
        question.name: [(str(value), shown) for value, shown in shown_choices(question, language).items()]
        for question in known.questions
    }
    _record(hidden.sheet, known, Record(known.name, ballot.wave, ballot.voter.id, tuple(records), choices))
    book.move_sheet(hidden.sheet, len(book.sheetnames))
    book.save(path)


def _text_sheet(number: int, ballot: Ballot) -> str:
    return f"{word('text', ballot.language)} {number}"


def _address(sheet: str, rows: Sequence[Row], row: Row) -> str:
    """The row's first cell to answer in, as a link names it."""
    at = [one.number for one in rows if one.sitting == row.sitting].index(row.number)
    return f"'{sheet}'!B{FIRST_ROW + at}"


def _keys(columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(column.key for column in columns)


def _guidelines(sheet: Worksheet, text: str, ballot: Ballot) -> None:
    sheet.title = word("guidelines", ballot.language)
    sheet.column_dimensions["A"].width = PAGE + 1
    for at, (style, line) in enumerate(guideline_lines(text), 1):
        put(sheet, at, 1, line, f"ballot {style}")
        size = {"title": 1.8, "heading": 1.3}.get(style, 1.0)
        sheet.row_dimensions[at].height = height_of(line, PAGE, size) if line else _PARAGRAPH
    lay_out_page(sheet, landscape=False)
    protect(sheet)


# --- A sitting ----------------------------------------------------------------------------------------------------


def _sitting(
    sheet: Worksheet,
    known: BallotRound,
    ballot: Ballot,
    columns: Sequence[Column],
    rows: Sequence[Row],
    lists: _Lists,
) -> None:
    from openpyxl.utils import get_column_letter

    for at, column in enumerate(columns, 1):
        put(sheet, 1, at, column.key, "ballot text")
        put(sheet, 2, at, column.heading, "ballot turned" if _is_turned(column, ballot) else "ballot head")
        sheet.column_dimensions[get_column_letter(at)].width = column.width + 1
    sheet.column_dimensions["A"].hidden = True
    sheet.row_dimensions[1].hidden = True
    sheet.row_dimensions[2].height = max(_heading_height(column, ballot) for column in columns)
    least = _least_height(columns, ballot)
    for at, row in enumerate(rows, FIRST_ROW):
        _row(sheet, at, known, columns, row, ballot, least)
    last = FIRST_ROW + len(rows) - 1
    for at, column in enumerate(columns, 1):
        if column.answers:
            letter = get_column_letter(at)
            _offer(sheet, letter, column, rows, ballot, lists, last)
    sheet.freeze_panes = f"C{FIRST_ROW}"
    sheet.print_title_rows = "2:2"
    lay_out_page(sheet, landscape=True)
    protect(sheet)


def _is_turned(column: Column, ballot: Ballot) -> bool:
    """Chinese reads from top to bottom as it stands, two signs a line."""
    return bool(column.label) and ballot.language == "en"


def _heading_height(column: Column, ballot: Ballot) -> float:
    """Points that a heading takes."""
    if not _is_turned(column, ballot):
        # Chinese signs are no wider when they are bold.
        bold = BOLD if ballot.language == "en" else 1.0
        return height_of(column.heading, column.width / bold) + 4
    units = next(units for units in count(8) if line_count(column.heading, units) <= _TURNED_LINES)
    return units * BOLD * UNIT + 18


def _least_height(columns: Sequence[Column], ballot: Ballot) -> float:
    """Points in which every choice can be read, once it is made."""
    heights = [2 * LINE]
    for column in columns:
        if column.question is not None and not column.label:
            shown = shown_choices(column.question, ballot.language).values()
            heights += [height_of(one, column.width) for one in shown]
    return max(heights)


def _row(
    sheet: Worksheet,
    at: int,
    known: BallotRound,
    columns: Sequence[Column],
    row: Row,
    ballot: Ballot,
    height: float,
) -> None:
    """One item; `height`: points that it takes at least."""
    for number, column in enumerate(columns, 1):
        if column.key == "row":
            put(sheet, at, number, f"{row.code}-{known.seal(row.code, row.texts)}", "ballot text")
        elif column.key == "item":
            put(sheet, at, number, row.number, "ballot number")
        elif column.answers:
            put(sheet, at, number, None, "ballot comment" if _is_text(column) else "ballot answer")
        else:
            made = row.cells.get(column.key, ())
            linked = row.elsewhere and column.key == "text"
            style = "link" if linked else "notice" if column.key == "notice" and made else "text"
            cell = put(sheet, at, number, made, f"ballot {style}")
            if linked:
                _link(cell, f"'{_text_sheet(row.number, ballot)}'!A{FIRST_TEXT_ROW}")
            bold = BOLD if style == "notice" else 1.0
            height = max(height, height_of(plain(made), column.width / bold))
    sheet.row_dimensions[at].height = height


def _link(cell: Any, location: str) -> None:
    from openpyxl.worksheet.hyperlink import Hyperlink

    cell.hyperlink = Hyperlink(ref=cell.coordinate, location=location)


def _is_text(column: Column) -> bool:
    return column.question is not None and column.question.form == "text"


def _offer(
    sheet: Worksheet,
    letter: str,
    column: Column,
    rows: Sequence[Row],
    ballot: Ballot,
    lists: _Lists,
    last: int,
) -> None:
    """Drop-down lists for a column; where items leave different labels to choose, one for each of them."""
    question, language = column.question, ballot.language
    if question is None or question.form == "labels":
        only = word("yes" if question else "skip_yes", language)
        _validate(sheet, f"{letter}{FIRST_ROW}:{letter}{last}", lists.range_of((only,)), column, language)
        return
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(rows, FIRST_ROW):
        groups.setdefault(tuple(choices_of(question, row.item, language).values()), []).append(at)
    for shown, places in groups.items():
        cells = " ".join(f"{letter}{at}" for at in places)
        if len(groups) == 1:
            cells = f"{letter}{FIRST_ROW}:{letter}{last}"
        _validate(sheet, cells, lists.range_of(shown) if shown else None, column, language)


def _validate(sheet: Worksheet, cells: str, choices: str | None, column: Column, language: Any) -> None:
    from openpyxl.worksheet.datavalidation import DataValidation

    question = column.question

    rule = DataValidation(type="list" if choices else None, formula1=choices, allow_blank=True)
    rule.showInputMessage = True
    rule.prompt = column.help[:MAX_PROMPT]
    title = label_text(question.name, column.label, language) if question and column.label else column.heading
    rule.promptTitle = title.split("\n")[0][:MAX_PROMPT_TITLE]
    if choices:
        rule.showErrorMessage = True
        rule.errorStyle = "stop"
        rule.error = rule.errorTitle = word("choose", language)
    rule.sqref = type(rule.sqref)(cells)
    sheet.add_data_validation(rule)


class _Lists:
    """Lists of choices in the hidden sheet, each once: a list written into a rule holds 255 characters at most."""

    def __init__(self, sheet: Worksheet) -> None:
        self.sheet = sheet
        self._made: dict[tuple[str, ...], str] = {}

    def range_of(self, shown: tuple[str, ...]) -> str:
        """The cells that hold these choices, as a rule names them."""
        from openpyxl.utils import get_column_letter

        if shown not in self._made:
            at = len(self._made) + 2
            for number, choice in enumerate(shown, 1):
                put(self.sheet, number, at, choice, "ballot text")
            letter = get_column_letter(at)
            self._made[shown] = f"'{SHEET}'!${letter}$1:${letter}${len(shown)}"
        return self._made[shown]


def _record(sheet: Worksheet, known: BallotRound, record: Record) -> None:
    text = record.to_text()
    for at, value in enumerate((FORMAT, known.checksum(text), *pieces(text)), 1):
        put(sheet, at, 1, value, "ballot text")
    sheet.sheet_state = "hidden"
    protect(sheet)
