"""Write a spreadsheet: guidelines, one sheet a session, separate texts, and two hidden sheets.

Each session's sheet has a hidden row of column keys, a row of headings, and one row an item. Texts about a crisis and
long ones are on a sheet of their own. The hidden sheets hold the choices of the drop-down lists, and what identifies
the file and its rows: the spreadsheet's code, and a checksum of each item's texts.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.data.languages import Language, find_language
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.item_text import (
    MAX_LINES,
    cell_text,
    context_blocks,
    item_blocks,
    join_blocks,
    line_count,
    reply_blocks,
    split_text,
    suggestion_text,
)  # fmt: skip
from h2htalk.rounds.texts.interface import (
    interface_text,
    label_help,
    label_text,
    question_help,
    question_title,
    rating_text,
)
from h2htalk.text.escaping import printable_lines

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

# Titles of the hidden sheets of choices and of codes.
LISTS, CODES = "lists", "codes"
# Columns that an item's checksum covers.
CHECKED = ("notice", "text", "reply", "suggestion")
# Maximum lengths of a data validation's prompt and its title; Excel rejects files with longer ones.
MAX_PROMPT, MAX_PROMPT_TITLE = 250, 30
# Hidden keys and headings are above the items.
_FIRST_ROW = 3
# Widths in Latin letters; lines of 55 are comfortable to read, and 82 are a page of A4.
_WIDTHS = {"item": 6, "notice": 16, "text": 55, "reply": 40, "suggestion": 16}
_ANSWER_WIDTH, _LABEL_WIDTH, _COMMENT_WIDTH = 16, 5, 24
_TEXT_WIDTHS = {"A": 2, "B": 12, "C": 70}
# Height of the row of rotated headings with two lines (points).
_ROTATED_HEIGHT = 170
# What a checksum ignores: white space, punctuation, and workbook escapes, which programs write differently.
_IGNORED = re.compile(r"(?:_x005[Ff])?_x[0-9A-Fa-f]{4}_|\W+")
# In a workbook `_x000D_` means a character (ECMA-376, ST_Xstring): in such a text the first underscore is escaped.
_LOOKS_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
# Markdown: headings, bullets, links; bold, italic and code; rules.
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_BULLET = re.compile(r"^(\s*)[-*+]\s+")
_LINK = re.compile(r"\[([^\]]+)\]\((?:mailto:)?([^)\s]+)\)")
_MARKS = re.compile(r"(\*\*|__|\*|`)(?=\S)(.+?)(?<=\S)\1")
_RULE = re.compile(r"(-{3,}|\*{3,}|_{3,})$")


@dataclass(frozen=True, slots=True)
class SpreadsheetColumn:
    """One column.

    Attributes:
        key: `item`, one of `CHECKED`, a question's name (`violations:privacy` for one label of a question with
            several), or `skip`.
        heading: shown to the annotator.
        width: in Latin letters.
        is_answer: whether the annotator fills it in.
        question: that is answered in the column; None for other columns.
        label: of a question with several labels, the one that is answered with yes.
        help: when to choose what.
    """

    key: str
    heading: str
    width: int
    is_answer: bool = False
    question: Question | None = None
    label: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class SpreadsheetRow:
    """One item in a spreadsheet: its number, session, and the texts of the columns in `CHECKED`.

    Attributes:
        separate: whether its text is on the sheet of texts: it is about a crisis, or too long.
    """

    number: int
    session: int
    item: Item
    separate: bool
    cells: Mapping[str, str]


def answer_columns(questions: Sequence[Question], language: Language) -> list[SpreadsheetColumn]:
    """Return one column for each question, or for each of its labels if several may apply, and one for skipping."""
    columns: list[SpreadsheetColumn] = []
    for question in questions:
        name, help = question.name, question_help(question.name, language)
        if question.form == "labels":
            for label in question.labels:
                heading = interface_text("if_yes", language, label=label_text(name, label, language))
                why = label_help(name, label, language) or help
                columns.append(SpreadsheetColumn(f"{name}:{label}", heading, _LABEL_WIDTH, True, question, label, why))
        else:
            optional = "" if question.required else f"\n({interface_text('optional', language)})"
            width = _COMMENT_WIDTH if question.form == "text" else _ANSWER_WIDTH
            heading = question_title(name, language) + optional
            columns.append(SpreadsheetColumn(name, heading, width, True, question, help=help))
    skip, help = interface_text("skip", language), interface_text("skip_is_fine", language)
    return [*columns, SpreadsheetColumn("skip", skip, _ANSWER_WIDTH, True, help=help)]


def item_choices(question: Question, item: Item, language: Language) -> dict[str | int, str]:
    """Return stored value -> text of the choice; empty for free text. An adjudication's items have their own labels."""
    if question.form == "rating":
        return {step: cell_text(rating_text(question.name, step, language)) for step in question.ratings}
    labels = item.labels if question.name == "label" and item.labels else question.labels
    return {label: cell_text(label_text(question.name, label, language)) for label in labels}


def texts_checksum(texts: Mapping[str, object]) -> str:
    """Return 8 digits for the texts of an item's row; white space and punctuation do not matter."""
    message = "\0".join(_IGNORED.sub("", str(texts.get(key, ""))) for key in CHECKED)
    return hashlib.sha256(message.encode(errors="backslashreplace")).hexdigest()[:8]


def guideline_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of Markdown as (`title`, `heading` or `plain`, text without markup)."""
    for raw in text.splitlines():
        line = raw.rstrip()
        if heading := _HEADING.fullmatch(line):
            style, line = ("title" if len(heading[1]) == 1 else "heading"), heading[2]
        elif _RULE.fullmatch(line):
            continue
        else:
            style, line = "plain", _BULLET.sub(r"\1• ", line, count=1)
        yield style, _MARKS.sub(r"\2", _LINK.sub(r"\1 (\2)", line)).removeprefix("> ")


def write_workbook(round: SpreadsheetRound, spreadsheet: Spreadsheet, guidelines: str, path: Path) -> None:
    """Write a spreadsheet. Raise OSError if the file cannot be written."""
    from openpyxl.workbook import Workbook

    book = Workbook()
    add_styles(book)
    language = spreadsheet.language
    _write_guidelines(book.active, guidelines, language)
    texts = _text_columns(round, spreadsheet)
    columns = [*texts, *answer_columns(round.questions, language)]
    rows = [_row(round, one.item, one.place, one.session, texts, language) for one in spreadsheet.assignments]
    first_lines = _write_texts(book, [row for row in rows if row.separate], language)
    lists = _Lists(book.create_sheet(LISTS))
    for at, session in enumerate(sorted({row.session for row in rows}), 1):
        sheet = book.create_sheet(interface_text("session_number", language, number=session), at)
        _write_session(sheet, columns, [row for row in rows if row.session == session], language, lists, first_lines)
    _write_codes(book.create_sheet(CODES), round, spreadsheet, rows)
    whole = io.BytesIO()  # a ZipFile on a full disk would complain a second time when it is collected
    book.save(whole)
    path.write_bytes(whole.getvalue())


def _text_columns(round: SpreadsheetRound, spreadsheet: Spreadsheet) -> list[SpreadsheetColumn]:
    """Return the columns for item number, notice, text, reply and suggestion that are needed."""
    language = spreadsheet.language
    items = [round.items[one.item] for one in spreadsheet.assignments]
    headings = {"item": interface_text("item", language)}
    if any(item.crisis for item in items):
        headings["notice"] = interface_text("notice", language)
    mixed = any(item.context or not item.turns for item in items)
    headings["text"] = interface_text("text" if mixed else "conversation", language)
    if titles := {block.title: None for item in items for block in reply_blocks(item, language)}:
        headings["reply"] = " / ".join(titles)
    if round.suggest and any(item.suggested for item in items):
        headings["suggestion"] = interface_text("suggestion", language)
    return [SpreadsheetColumn(key, heading, _WIDTHS[key]) for key, heading in headings.items()]


def _row(
    round: SpreadsheetRound,
    name: str,
    number: int,
    session: int,
    columns: Sequence[SpreadsheetColumn],
    language: Language,
) -> SpreadsheetRow:
    item, keys = round.items[name], {column.key for column in columns}
    note = [item.note.strip()] if item.note.strip() else []
    titled = bool(item.context) or not item.turns
    cells = {"text": "\n\n".join([*note, join_blocks(context_blocks(item, language), titled=titled)])}
    if item.crisis:
        cells["notice"] = interface_text(item.notice, language)
    if "reply" in keys:  # the column may hold both kinds of reply, so each has its title
        cells["reply"] = join_blocks(reply_blocks(item, language), titled=True)
    if "suggestion" in keys:
        cells["suggestion"] = suggestion_text(item, round.questions, language)
    too_long = any(line_count(cells.get(key, ""), _WIDTHS[key]) > MAX_LINES for key in ("text", "reply"))
    if separate := item.crisis or too_long:
        sheet = interface_text("texts", language)
        cells["text"] = interface_text("text_elsewhere", language, sheet=sheet, number=number)
        cells.pop("reply", None)
    return SpreadsheetRow(number, session, item, separate, {key: cell_text(text) for key, text in cells.items()})


def _write_guidelines(sheet: Worksheet, text: str, language: Language) -> None:
    sheet.title = interface_text("guidelines", language)
    sheet.column_dimensions["A"].width = 82
    parts = [(style, part) for style, line in guideline_lines(text) for part in split_text(line)]
    for at, (style, part) in enumerate(parts, 1):
        write_cell(sheet, at, 1, part, style)
    _finish_sheet(sheet, landscape=False)


def _write_texts(book: Workbook, rows: Sequence[SpreadsheetRow], language: Language) -> dict[int, int]:
    """Write the separate texts, one row a line, with the speakers beside it; return item number -> its first row."""
    if not rows:
        return {}
    sheet = book.create_sheet(interface_text("texts", language))
    for letter, width in _TEXT_WIDTHS.items():
        sheet.column_dimensions[letter].width = width
    sheet.column_dimensions["A"].hidden = sheet.row_dimensions[1].hidden = True
    write_cell(sheet, 1, 1, "item", "plain")
    first: dict[int, int] = {}
    at = 2

    def line(row: SpreadsheetRow, speaker: str, text: str, style: str) -> None:
        nonlocal at
        write_cell(sheet, at, 1, row.number, "plain")
        write_cell(sheet, at, 2, speaker, "plain")
        write_cell(sheet, at, 3, text, style)
        at += 1

    for row in rows:
        first[row.number] = at
        line(row, "", f"{interface_text('item', language)} {row.number}", "title")
        if row.item.crisis:
            line(row, "", interface_text(row.item.notice, language), "notice")
        for block in item_blocks(row.item, language):
            line(row, "", block.title, "heading")
            for speaker, text in block.lines:
                for number, part in enumerate(split_text(printable_lines(text))):
                    line(row, "" if number else speaker, part, "plain")
        line(row, "", "", "plain")
    _finish_sheet(sheet, landscape=False)
    return first


def _write_codes(
    sheet: Worksheet, round: SpreadsheetRound, spreadsheet: Spreadsheet, rows: Sequence[SpreadsheetRow]
) -> None:
    sheet.sheet_state = "hidden"
    for at, text in enumerate(("item", spreadsheet.code, round.name, spreadsheet.annotator.name), 1):
        write_cell(sheet, 1, at, text, "plain")
    for at, row in enumerate(rows, 2):
        write_cell(sheet, at, 1, row.number, "plain")
        write_cell(sheet, at, 2, f"c{texts_checksum(row.cells)}", "plain")  # programs read 123e4567 as a number
    _finish_sheet(sheet, landscape=False)


# --- A session ----------------------------------------------------------------------------------------------------


def _write_session(
    sheet: Worksheet,
    columns: Sequence[SpreadsheetColumn],
    rows: Sequence[SpreadsheetRow],
    language: Language,
    lists: _Lists,
    first_lines: Mapping[int, int],
) -> None:
    from openpyxl.utils import get_column_letter

    for at, column in enumerate(columns, 1):
        # Chinese fits into narrow columns without rotation, two characters a line.
        rotated = bool(column.label) and find_language(language).spaced
        write_cell(sheet, 1, at, column.key, "plain")
        write_cell(sheet, 2, at, column.heading, "rotated" if rotated else "head")
        sheet.column_dimensions[get_column_letter(at)].width = column.width
        if rotated:
            sheet.row_dimensions[2].height = _ROTATED_HEIGHT
        if column.is_answer:
            _add_choices(sheet, get_column_letter(at), column, rows, language, lists)
    sheet.row_dimensions[1].hidden = True
    for at, row in enumerate(rows, _FIRST_ROW):
        for number, column in enumerate(columns, 1):
            if column.is_answer:
                is_comment = column.question is not None and column.question.form == "text"
                write_cell(sheet, at, number, None, "comment" if is_comment else "answer")
                continue
            value = row.number if column.key == "item" else row.cells.get(column.key, "")
            is_link = column.key == "text" and row.separate
            style = "link" if is_link else "notice" if column.key == "notice" and value else "text"
            cell = write_cell(sheet, at, number, value, style)
            if is_link:
                _link(cell, f"'{interface_text('texts', language)}'!C{first_lines[row.number]}")
    sheet.freeze_panes = f"B{_FIRST_ROW}"
    sheet.print_title_rows = "2:2"
    _finish_sheet(sheet, landscape=True)


def _add_choices(
    sheet: Worksheet,
    letter: str,
    column: SpreadsheetColumn,
    rows: Sequence[SpreadsheetRow],
    language: Language,
    lists: _Lists,
) -> None:
    """Add drop-down lists, one for all rows with the same choices."""
    from openpyxl.worksheet.datavalidation import DataValidation

    question = column.question
    groups: dict[tuple[str, ...], list[str]] = {}
    for at, row in enumerate(rows, _FIRST_ROW):
        if question is None or question.form == "labels":
            choices: tuple[str, ...] = (interface_text("yes" if question else "skip_yes", language),)
        else:
            choices = tuple(item_choices(question, row.item, language).values())
        groups.setdefault(choices, []).append(f"{letter}{at}")
    title = label_text(question.name, column.label, language) if question and column.label else column.heading
    for choices, cells in groups.items():
        rule = DataValidation(
            type="list" if choices else None,
            formula1=lists.range_of(choices) if choices else None,
            allow_blank=True,
            showInputMessage=True,
            prompt=column.help[:MAX_PROMPT],
            promptTitle=title.split("\n")[0][:MAX_PROMPT_TITLE],
            sqref=" ".join(cells) if len(groups) > 1 else f"{cells[0]}:{cells[-1]}",
        )
        if choices:
            rule.showErrorMessage, rule.errorStyle = True, "stop"
            rule.error = rule.errorTitle = interface_text("choose", language)
        sheet.add_data_validation(rule)


class _Lists:
    """Lists of choices in a hidden sheet, each once: a list inside a validation is limited to 255 characters."""

    def __init__(self, sheet: Worksheet) -> None:
        self._sheet = sheet
        sheet.sheet_state = "hidden"
        _finish_sheet(sheet, landscape=False)
        self._ranges: dict[tuple[str, ...], str] = {}

    def range_of(self, choices: tuple[str, ...]) -> str:
        """Return the range of cells with these choices, as a validation names it."""
        from openpyxl.utils import get_column_letter

        if choices not in self._ranges:
            at = len(self._ranges) + 1
            for number, choice in enumerate(choices, 1):
                write_cell(self._sheet, number, at, choice, "plain")
            letter = get_column_letter(at)
            self._ranges[choices] = f"'{LISTS}'!${letter}$1:${letter}${len(choices)}"
        return self._ranges[choices]


# --- Cells --------------------------------------------------------------------------------------------------------


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
    """Write a cell, text always as text and never as a formula, and return it."""
    cell = sheet.cell(row, column)
    cell.style = f"h2htalk {style}"
    if isinstance(value, int):
        cell.value = value
    elif value:
        cell.value = _LOOKS_ESCAPED.sub("_x005F_", cell_text(value))
        # openpyxl would take "=x" for a formula and "#N/A" for an error.
        cell.data_type = "s"
    return cell


def _link(cell: Any, location: str) -> None:
    from openpyxl.worksheet.hyperlink import Hyperlink

    cell.hyperlink = Hyperlink(ref=cell.coordinate, location=location)


def _finish_sheet(sheet: Worksheet, *, landscape: bool) -> None:
    """Fit the page to the sheet's width, and protect all cells but answers; columns and rows may be resized.

    The protection has no password: it prevents accidents.
    """
    sheet.page_setup.orientation = "landscape" if landscape else "portrait"
    sheet.page_setup.paperSize = sheet.PAPERSIZE_A4
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.protection.sheet = True
    sheet.protection.formatColumns = sheet.protection.formatRows = False
