"""Write a workbook: guidelines, one sheet a session, separate texts, and two hidden sheets.

Each session's sheet has a hidden row of column keys, a row of headings, and one row an item. Texts about a crisis and
long ones are on a sheet of their own. The hidden sheets hold the choices of the drop-down lists, and what identifies
the file and its rows: the workbook's code, and a checksum of each item's texts.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.hyperlink import Hyperlink

from h2htalk.data.languages import Language, find_language
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import Assignment
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundState
from h2htalk.rounds.spreadsheets.cells import add_styles, finish_sheet, write_cell
from h2htalk.rounds.spreadsheets.codes import spreadsheet_code
from h2htalk.rounds.spreadsheets.completion_sheet import AnswerRange, write_completion
from h2htalk.rounds.spreadsheets.item_text import (
    Block,
    cell_text,
    context_blocks,
    item_blocks,
    join_blocks,
    reply_blocks,
)
from h2htalk.rounds.spreadsheets.row_heights import MAX_HEIGHT, text_height
from h2htalk.rounds.spreadsheets.workbook_bytes import workbook_bytes
from h2htalk.rounds.texts.interface import (
    interface_text,
    label_help,
    label_text,
    notice_help_lines,
    question_help,
    question_title,
    rating_text,
)
from h2htalk.rounds.texts.item_notes import unread_notice
from h2htalk.text.escaping import printable_lines

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

# Titles of the hidden sheets of choices and of codes.
LISTS, CODES = "lists", "codes"
# Columns that an item's checksum covers, and the keys of a line on the sheet of texts.
CHECKED = ("notice", "text", "reply", "suggestion")
LINE = ("speaker", "line")
# Maximum lengths of a data validation's prompt and its title; Excel rejects files with longer ones.
MAX_PROMPT, MAX_PROMPT_TITLE = 250, 30
# Hidden keys and headings are above the items.
_FIRST_ROW = 3
# Highest text in a row of an item (points); what is higher is on the sheet of texts. Other programs have wider fonts.
_MAX_TEXT = 330
# Longest part of a line in one row (characters), by style: less than `MAX_HEIGHT`, also in Chinese.
_MAX_PART = {"title": 200, "heading": 350}
_MAX_PLAIN_PART = 600
# Widths in digits; lines of 55 are comfortable to read.
_WIDTHS = {"item": 6, "notice": 20, "text": 55, "reply": 40, "suggestion": 24}
_ANSWER_WIDTH, _LABEL_WIDTH, _COMMENT_WIDTH = 16, 5, 24
# Lowest row of an item (points): a comment of three lines.
_MIN_HEIGHT = 45
# Width of the guidelines. LibreOffice prints a column on one page and cuts off what is wider, even if the sheet is
# fitted to the page; with a wide font in place of the workbook's, a page of A4 has room for 75 digits.
_GUIDELINES_WIDTH = 70
_TEXT_WIDTHS = {"A": 2, "B": 12, "C": 70}
# Height of the row of rotated headings with two lines (points).
_ROTATED_HEIGHT = 170
# What a checksum ignores: white space, punctuation, and workbook escapes, which programs write differently.
_IGNORED = re.compile(r"(?:_x005[Ff])?_x[0-9A-Fa-f]{4}_|\W+")
# Headings and bullets of Markdown: the package's guidelines have no other markup.
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_BULLET = re.compile(r"^(\s*)[-*+]\s+")

# Answers to write into a workbook: item number -> column key -> value of the cell.
TypedAnswers = Mapping[int, Mapping[str, Any]]


# --- The workbooks of a round -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spreadsheet:
    """One annotator's part of one assignment set.

    Attributes:
        stem: file name without suffix: NAME, or `NAME set 2` for the second assignment set.
        code: keyed hash of round, assignment set and annotator; it identifies the file whatever its name is.
        language: of headings and choices: the annotator's first language in which one of the items is written.
        assignments: in the annotator's order; erased items leave gaps in their places.
    """

    annotator: Annotator
    stem: str
    code: str
    language: Language
    assignments: tuple[Assignment, ...]


def spreadsheets_of(state: RoundState) -> dict[str, Spreadsheet | None]:
    """Return code -> spreadsheet of a round; None where no item is left. Raise DataError."""
    languages = {item.id: item.language for item in state.items}
    salt = state.folder.salt()
    found: dict[str, Spreadsheet | None] = {}
    for one_set in state.sets:
        by_annotator: dict[str, list[Assignment]] = {
            annotator.id: [] for annotator in state.annotators
        }
        for assignment in one_set.assignments:
            by_annotator[assignment.annotator].append(assignment)
        for annotator in state.annotators:
            code = spreadsheet_code(state.name, salt, one_set.number, annotator.id)
            theirs = tuple(sorted(by_annotator[annotator.id], key=lambda one: one.place))
            written = {languages[one.item] for one in theirs}
            # No name contains a space.
            stem = (
                annotator.name if one_set.number == 1 else f"{annotator.name} set {one_set.number}"
            )
            language = next(
                (one for one in (*annotator.languages, *written) if one in written), None
            )
            found[code] = Spreadsheet(annotator, stem, code, language, theirs) if language else None
    return found


@dataclass(frozen=True, slots=True)
class SpreadsheetColumn:
    """One column: its key, heading, width in digits, and when to choose what.

    The key is `item`, one of `CHECKED`, a question's name, or `skip`. Of a question with several labels, each `label`
    has a column, which is answered with yes (`violations:privacy`).
    """

    key: str
    heading: str
    width: int
    question: Question | None = None
    label: str = ""
    help: str = ""


def answer_columns(questions: Sequence[Question], language: Language) -> list[SpreadsheetColumn]:
    """Return one column for each question, or for each of its labels if several may apply, and one for skipping."""
    columns: list[SpreadsheetColumn] = []
    for question in questions:
        name = question.name
        help = question_help(question.name, language)
        if question.form == "labels":
            for label in question.labels:
                heading = interface_text(
                    "if_yes", language, label=label_text(name, label, language)
                )
                why = label_help(name, label, language) or help
                columns.append(
                    SpreadsheetColumn(
                        f"{name}:{label}", heading, _LABEL_WIDTH, question, label, why
                    )
                )
        else:
            optional = "" if question.required else f"\n({interface_text('optional', language)})"
            width = _COMMENT_WIDTH if question.form == "text" else _ANSWER_WIDTH
            heading = question_title(name, language) + optional
            columns.append(SpreadsheetColumn(name, heading, width, question, "", help))
    skip = interface_text("skip", language)
    help = interface_text("skip_is_fine", language)
    return [*columns, SpreadsheetColumn("skip", skip, _ANSWER_WIDTH, help=help)]


def item_choices(
    question: Question, labels: Sequence[str], language: Language
) -> dict[str | int, str]:
    """Return stored value -> text of the choice; empty for free text. `labels`: of an adjudication's item, or none."""
    if question.form == "rating":
        return {
            step: cell_text(rating_text(question.name, step, language)) for step in question.ratings
        }
    own = labels if question.name == "label" and labels else question.labels
    return {label: cell_text(label_text(question.name, label, language)) for label in own}


def texts_checksum(texts: Mapping[str, str], lines: str) -> str:
    """Return a checksum of an item's texts: of its row, and its lines on the sheet of texts, joined.

    White space and punctuation do not matter.
    """
    message = "\0".join(
        _IGNORED.sub("", text) for text in (*(texts.get(key, "") for key in CHECKED), lines)
    )
    # A letter in front: programs read 123e4567 as a number.
    return f"c{hashlib.sha256(message.encode(errors='backslashreplace')).hexdigest()[:8]}"


# --- Items ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpreadsheetRow:
    """One item in a spreadsheet: its number, session, and the texts of the columns in `CHECKED`.

    `lines` are speaker, text and style on the sheet of texts, if the item is about a crisis or too long.
    """

    number: int
    session: int
    item: Item
    cells: Mapping[str, str]
    lines: Sequence[tuple[str, str, str]]


def _row(
    state: RoundState, assignment: Assignment, item: Item, language: Language
) -> SpreadsheetRow:
    """Return an item's row. Its own texts have titles in its language, the rest is in that of the spreadsheet."""
    number = assignment.place
    own = item.language
    note = [item.note.strip()] if item.note.strip() else []
    titled = bool(item.context) or not item.turns
    cells = {"text": "\n\n".join([*note, join_blocks(context_blocks(item, own), titled=titled)])}
    if notices := _notices(item):
        cells["notice"] = "\n".join(notices)
    if reply := join_blocks(reply_blocks(item, own), titled=True):
        cells["reply"] = reply
    if suggestion := _suggestion(state, item, language):
        cells["suggestion"] = suggestion
    lines: list[tuple[str, str, str]] = []
    if item.crisis or any(
        text_height(text, _WIDTHS[key]) > _MAX_TEXT for key, text in cells.items()
    ):
        help_lines = notice_help_lines(state.spec, own) if state.spec.care.country else ()
        lines = _text_lines(number, item, suggestion, language, help_lines)
        sheet = interface_text("texts", language)
        cells["text"] = interface_text("text_elsewhere", language, sheet=sheet, number=number)
        for key in ("reply", "suggestion"):
            cells.pop(key, None)
    return SpreadsheetRow(
        number, assignment.session, item, {key: cell_text(one) for key, one in cells.items()}, lines
    )


def _notices(item: Item) -> list[str]:
    """Return what is to be noted before an item is read: that it is about a crisis, and that nobody has read it."""
    notices = [interface_text(item.notice, item.language)] if item.crisis else []
    if item.unread:
        notices.append(unread_notice(item))
    return notices


def _suggestion(state: RoundState, item: Item, language: Language) -> str:
    """Return a model's answers as annotators read them, each below its question; empty if the round shows none."""
    suggestions = []
    for question in state.questions if state.spec.suggest else ():
        if question.name in item.suggested:
            value = question.read(item.suggested[question.name])
            texts = item_choices(question, (), language)
            shown = "; ".join(
                texts.get(one, str(one))
                for one in (value if isinstance(value, tuple) else (value,))
            )
            suggestions.append(f"{question_title(question.name, language)}\n{shown}")
    return "\n".join(suggestions)


def _text_lines(
    number: int, item: Item, suggestion: str, language: Language, help_lines: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Return an item's lines on the sheet of texts: speaker, text and style; the last one leads back to its row."""
    lines = [("", f"{interface_text('item', language)} {number}", "title")]
    style = "notice" if item.crisis else "plain"
    lines += [("", notice, style) for notice in _notices(item)]
    if item.crisis:
        lines += [("", help_line, "notice") for help_line in help_lines]
    blocks = list(item_blocks(item, item.language))
    if suggestion:
        blocks.append(Block(interface_text("suggestion", language), (("", suggestion),)))
    for block in blocks:
        lines += [("", part, "heading") for part in split_text(block.title, "heading")]
        for speaker, text in block.lines:
            first, *more = map(cell_text, split_text(printable_lines(text), "plain"))
            lines.append((speaker, first, "plain"))
            lines += [("", part, "plain") for part in more]
    lines.append(("", interface_text("back_to_item", language, number=number), "link"))
    lines.append(("", "", "plain"))
    return lines


def split_text(text: str, style: str) -> Iterator[str]:
    """Split a text into its lines, and long lines into parts that one row can show."""
    longest = _MAX_PART.get(style, _MAX_PLAIN_PART)
    for line in text.split("\n"):
        yield from textwrap.wrap(
            line, longest, drop_whitespace=False, replace_whitespace=False
        ) or [""]


def guideline_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of Markdown as (`title`, `heading` or `plain`, text without marks of headings and lists)."""
    for line in map(str.rstrip, text.splitlines()):
        if heading := _HEADING.fullmatch(line):
            yield "title" if len(heading[1]) == 1 else "heading", heading[2]
        else:
            yield "plain", _BULLET.sub(r"\1• ", line, count=1)


# --- Sheets -----------------------------------------------------------------------------------------------------------


def write_workbook(
    state: RoundState, spreadsheet: Spreadsheet, path: Path, answers: TypedAnswers | None = None
) -> None:
    """Write a spreadsheet; with `answers` only the rows that it names, filled in. Raise DataError, OSError."""
    path.write_bytes(workbook_bytes(_BookWriter(state, spreadsheet, answers).book))


class _BookWriter:
    """A workbook, whose sheets are written when it is made."""

    def __init__(
        self, state: RoundState, spreadsheet: Spreadsheet, answers: TypedAnswers | None
    ) -> None:
        self.book, self.language = Workbook(), spreadsheet.language
        add_styles(self.book)
        items = {item.id: item for item in state.items}
        rows = [_row(state, one, items[one.item], self.language) for one in spreadsheet.assignments]
        columns = [
            *_text_columns(rows, self.language),
            *answer_columns(state.questions, self.language),
        ]
        sheet = self.book.active
        sheet.title = interface_text("guidelines", self.language)
        sheet.column_dimensions["A"].width = _GUIDELINES_WIDTH
        guidelines = guideline_lines(state.folder.guidelines(self.language))
        parts = [(part, style) for style, line in guidelines for part in split_text(line, style)]
        for at, (part, style) in enumerate(parts, 1):
            write_cell(sheet, at, 1, part, style)
        finish_sheet(sheet, landscape=False)
        shown = [row for row in rows if answers is None or row.number in answers]
        self._rows = _places_of(shown, self.language)
        self._first_lines = self._write_texts([row for row in rows if row.lines])
        self._lists = self._hidden_sheet(LISTS)
        self._ranges: dict[tuple[str, ...], str] = {}
        session_ranges: list[AnswerRange] = []
        sessions = sorted({row.session for row in rows})
        for at, session in enumerate(sessions, 1):
            sheet = self.book.create_sheet(_session_title(session, self.language), at)
            theirs = [row for row in shown if row.session == session]
            self._write_session(sheet, columns, theirs, answers or {})
            if theirs:
                session_ranges.append(_answer_range(sheet.title, columns, len(theirs)))
        # Without items nothing can be done, and a sum of no rows is an error of the formula.
        if state.spec.completion and session_ranges:
            sheet = self.book.create_sheet(
                interface_text("completion", self.language), len(sessions) + 1
            )
            write_completion(
                sheet, session_ranges, state.spec.completion, f"'{CODES}'!$E$1", self.language
            )
        sheet = self._hidden_sheet(CODES)
        identity = (
            "item",
            spreadsheet.code,
            state.name,
            spreadsheet.annotator.name,
            state.spec.completion,
        )
        codes: list[tuple[Any, ...]] = [identity]
        for row in rows:
            lines = "".join(f"{speaker}{text}" for speaker, text, _ in row.lines)
            codes.append((row.number, texts_checksum(row.cells, lines)))
        for at, cells in enumerate(codes, 1):
            for column, value in enumerate(cells, 1):
                write_cell(sheet, at, column, value, "plain")

    def _hidden_sheet(self, title: str) -> Worksheet:
        sheet = self.book.create_sheet(title)
        sheet.sheet_state = "hidden"
        finish_sheet(sheet, landscape=False)
        return sheet

    def _write_texts(self, rows: Sequence[SpreadsheetRow]) -> dict[int, int]:
        """Write the separate texts, one row a line, with the speakers beside it; return item number -> first row."""
        first: dict[int, int] = {}
        if not rows:
            return first
        sheet = self.book.create_sheet(interface_text("texts", self.language))
        for letter, width in _TEXT_WIDTHS.items():
            sheet.column_dimensions[letter].width = width
        sheet.column_dimensions["A"].hidden = sheet.row_dimensions[1].hidden = True
        for column, key in enumerate(("item", *LINE), 1):
            write_cell(sheet, 1, column, key, "plain")
        lines = [(row.number, *line) for row in rows for line in row.lines]
        for at, (number, speaker, text, style) in enumerate(lines, 2):
            first.setdefault(number, at)
            write_cell(sheet, at, 1, number, "plain")
            write_cell(sheet, at, 2, speaker, "plain")
            cell = write_cell(sheet, at, 3, text, style)
            if style == "link" and number in self._rows:
                cell.hyperlink = Hyperlink(ref=cell.coordinate, location=self._rows[number])
        finish_sheet(sheet, landscape=False)
        return first

    def _write_session(
        self,
        sheet: Worksheet,
        columns: Sequence[SpreadsheetColumn],
        rows: Sequence[SpreadsheetRow],
        answers: TypedAnswers,
    ) -> None:
        for number, column in enumerate(columns, 1):
            # Chinese fits into narrow columns without rotation, two characters a line.
            rotated = bool(column.label) and find_language(self.language).spaced
            write_cell(sheet, 1, number, column.key, "plain")
            write_cell(sheet, 2, number, column.heading, "rotated" if rotated else "head")
            sheet.column_dimensions[get_column_letter(number)].width = column.width
            if rotated:
                sheet.row_dimensions[2].height = _ROTATED_HEIGHT
            if column.key not in _WIDTHS:
                style = (
                    "comment"
                    if column.question is not None and column.question.form == "text"
                    else "answer"
                )
                for at, row in enumerate(rows, _FIRST_ROW):
                    write_cell(
                        sheet,
                        at,
                        number,
                        answers.get(row.number, {}).get(column.key),
                        style,
                        is_typed=True,
                    )
                self._add_choices(sheet, get_column_letter(number), column, rows)
                continue
            for at, row in enumerate(rows, _FIRST_ROW):
                value = row.number if column.key == "item" else row.cells.get(column.key, "")
                is_link = column.key == "text" and bool(row.lines)
                is_announced = column.key == "notice" and row.item.crisis
                if is_link:
                    style = "link"
                elif is_announced:
                    style = "notice"
                else:
                    style = "text"
                cell = write_cell(sheet, at, number, value, style)
                if is_link:
                    place = f"'{interface_text('texts', self.language)}'!C{self._first_lines[row.number]}"
                    cell.hyperlink = Hyperlink(ref=cell.coordinate, location=place)
        sheet.row_dimensions[1].hidden = True
        for at, row in enumerate(rows, _FIRST_ROW):
            sheet.row_dimensions[at].height = self._answer_height(columns, row.item)
        sheet.freeze_panes = f"B{_FIRST_ROW}"
        sheet.print_title_rows = "2:2"
        finish_sheet(sheet, landscape=True)

    def _answer_height(self, columns: Sequence[SpreadsheetColumn], item: Item) -> float:
        """Return the height of an item's row in which every choice can be read once it is chosen."""
        heights = [float(_MIN_HEIGHT)]
        for column in columns:
            if column.question is not None and not column.label:
                choices = item_choices(column.question, item.labels, self.language)
                heights += [text_height(choice, column.width) for choice in choices.values()]
        return min(MAX_HEIGHT, max(heights))

    def _add_choices(
        self,
        sheet: Worksheet,
        letter: str,
        column: SpreadsheetColumn,
        rows: Sequence[SpreadsheetRow],
    ) -> None:
        """Add drop-down lists, one for all rows with the same choices.

        The choices are on the hidden sheet, as a list inside a validation is limited to 255 characters.
        """
        question = column.question
        language = self.language
        groups: dict[tuple[str, ...], list[str]] = {}
        for at, row in enumerate(rows, _FIRST_ROW):
            if question is None or question.form == "labels":
                choices: tuple[str, ...] = (
                    interface_text("yes" if question else "skip_yes", language),
                )
            else:
                choices = tuple(item_choices(question, row.item.labels, language).values())
            groups.setdefault(choices, []).append(f"{letter}{at}")
        title = (
            label_text(question.name, column.label, language)
            if question and column.label
            else column.heading
        )
        for choices, cells in groups.items():
            rule = DataValidation(
                allow_blank=True,
                showInputMessage=True,
                prompt=column.help[:MAX_PROMPT],
                promptTitle=title.split("\n")[0][:MAX_PROMPT_TITLE],
                sqref=" ".join(cells) if len(groups) > 1 else f"{cells[0]}:{cells[-1]}",
            )
            if choices:
                if choices not in self._ranges:
                    listed = get_column_letter(len(self._ranges) + 1)
                    for number, choice in enumerate(choices, 1):
                        write_cell(self._lists, number, len(self._ranges) + 1, choice, "plain")
                    self._ranges[choices] = f"'{LISTS}'!${listed}$1:${listed}${len(choices)}"
                rule.type, rule.formula1 = "list", self._ranges[choices]
                rule.showErrorMessage, rule.errorStyle = True, "stop"
                rule.error = rule.errorTitle = interface_text("choose", language)
            sheet.add_data_validation(rule)


def _answer_range(title: str, columns: Sequence[SpreadsheetColumn], rows: int) -> AnswerRange:
    """Return where the answers of a session are that count an item as answered or skipped."""
    letters = {column.key: get_column_letter(number) for number, column in enumerate(columns, 1)}
    required: dict[str, list[str]] = {}
    for column in columns:
        if column.question is not None and column.question.always_required:
            required.setdefault(column.question.name, []).append(letters[column.key])
    return AnswerRange(
        title=title,
        rows=rows,
        first_row=_FIRST_ROW,
        required=tuple(tuple(theirs) for theirs in required.values()),
        skip=letters["skip"],
    )


def _session_title(session: int, language: Language) -> str:
    return interface_text("session_number", language, number=session)


def _places_of(rows: Sequence[SpreadsheetRow], language: Language) -> dict[int, str]:
    """Return item number -> the cell of its text or its number, in the sheet of its session."""
    places: dict[int, str] = {}
    next_row: dict[int, int] = {}
    for row in rows:
        at = next_row.get(row.session, _FIRST_ROW)
        next_row[row.session] = at + 1
        places[row.number] = f"'{_session_title(row.session, language)}'!A{at}"
    return places


def _text_columns(rows: Sequence[SpreadsheetRow], language: Language) -> list[SpreadsheetColumn]:
    """Return the columns for item number, notice, text, reply and suggestion that are needed."""
    replies = {block.title: None for row in rows for block in reply_blocks(row.item, language)}
    mixed = any(row.item.context or not row.item.turns for row in rows)
    headings = {
        "item": interface_text("item", language),
        "notice": interface_text("notice", language),
        "text": interface_text("text" if mixed else "conversation", language),
        "reply": " / ".join(replies),
        "suggestion": interface_text("suggestion", language),
    }
    used = {"item"}.union(*(row.cells for row in rows))
    return [
        SpreadsheetColumn(key, heading, _WIDTHS[key])
        for key, heading in headings.items()
        if key in used
    ]
