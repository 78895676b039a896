"""Columns and rows of a spreadsheet before anybody fills it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.data.languages import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.item_text import (
    MAX_LINES,
    cell_text,
    context_blocks,
    join_blocks,
    line_count,
    reply_blocks,
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

# Columns whose text is part of the row's checksum.
CHECKED = ("notice", "text", "reply", "suggestion")
# Widths in Latin letters; lines of 55 are comfortable to read.
_WIDTHS = {"row": 2, "item": 6, "notice": 16, "text": 55, "reply": 40, "suggestion": 16}
_ANSWER_WIDTH, _LABEL_WIDTH, _COMMENT_WIDTH = 16, 5, 24


@dataclass(frozen=True, slots=True)
class SpreadsheetColumn:
    """One column.

    Attributes:
        key: `row`, `item`, one of `CHECKED`, a question's name (`violations:privacy` for one label of a question with
            several), or `skip`.
        heading: shown to the annotator.
        width: in Latin letters.
        question: that is answered in the column; None for other columns.
        label: of a question with several labels, the one that is answered with yes.
        help: when to choose what.
    """

    key: str
    heading: str
    width: int
    question: Question | None = None
    label: str = ""
    help: str = ""

    @property
    def is_answer(self) -> bool:
        return self.question is not None or self.key == "skip"


@dataclass(frozen=True, slots=True)
class SpreadsheetRow:
    """One item in a spreadsheet.

    Attributes:
        number: its place in the spreadsheet, from 1; erased items leave gaps.
        code: code and checksum of the row (`SpreadsheetRound.row_code`).
        separate: whether its text is on another sheet or in another file: it is about a crisis, or too long.
        cells: texts of the columns in `CHECKED`.
    """

    number: int
    session: int
    item: Item
    code: str
    separate: bool
    cells: Mapping[str, str]


def text_columns(round: SpreadsheetRound, spreadsheet: Spreadsheet) -> list[SpreadsheetColumn]:
    """Return the columns for row code, item number, notice, text, reply and suggestion that are needed."""
    language = spreadsheet.language
    items = [round.items[one.item] for one in spreadsheet.assignments]
    headings = {"row": "", "item": interface_text("item", language)}
    if any(item.crisis for item in items):
        headings["notice"] = interface_text("notice", language)
    mixed = any(item.context or not item.turns for item in items)
    headings["text"] = interface_text("text" if mixed else "conversation", language)
    if titles := {block.title: None for item in items for block in reply_blocks(item, language)}:
        headings["reply"] = " / ".join(titles)
    if round.suggest and any(item.suggested for item in items):
        headings["suggestion"] = interface_text("suggestion", language)
    return [SpreadsheetColumn(key, heading, _WIDTHS[key]) for key, heading in headings.items()]


def answer_columns(questions: Sequence[Question], language: Language, *, per_label: bool) -> list[SpreadsheetColumn]:
    """Return one column for each question, and one for skipping.

    Args:
        questions: of the round.
        language: of the headings.
        per_label: whether a question with several labels has a column for each: a drop-down list allows one choice.
    """
    columns: list[SpreadsheetColumn] = []
    for question in questions:
        title, help = question_title(question.name, language), question_help(question.name, language)
        if question.form == "labels" and per_label:
            for label in question.labels:
                name, own_help = (f(question.name, label, language) for f in (label_text, label_help))
                key, heading = f"{question.name}:{label}", interface_text("if_yes", language, label=name)
                columns.append(SpreadsheetColumn(key, heading, _LABEL_WIDTH, question, label, own_help or help))
        else:
            heading = title if question.required else f"{title}\n({interface_text('optional', language)})"
            width = _COMMENT_WIDTH if question.form == "text" else _ANSWER_WIDTH
            columns.append(SpreadsheetColumn(question.name, heading, width, question, help=help))
    skip, help = interface_text("skip", language), interface_text("skip_is_fine", language)
    return [*columns, SpreadsheetColumn("skip", skip, _ANSWER_WIDTH, help=help)]


def choice_texts(question: Question, language: Language) -> dict[str | int, str]:
    """Return stored value -> text of the choice; empty for free text."""
    if question.form == "rating":
        return {step: cell_text(rating_text(question.name, step, language)) for step in question.ratings}
    return {label: cell_text(label_text(question.name, label, language)) for label in question.labels}


def item_choices(question: Question, item: Item, language: Language) -> dict[str | int, str]:
    """Return the `choice_texts` that an item allows: items of an adjudication have labels of their own."""
    texts = choice_texts(question, language)
    if question.name == "label" and item.labels:
        return {label: texts[label] for label in item.labels}
    return texts


def spreadsheet_rows(
    round: SpreadsheetRound,
    spreadsheet: Spreadsheet,
    columns: Sequence[SpreadsheetColumn],
    reference: Callable[[int], str],
) -> list[SpreadsheetRow]:
    """Return the rows of a spreadsheet in the annotator's order.

    Args:
        round, spreadsheet: what to write.
        columns: `text_columns`.
        reference: item number -> line that says where a separate text is.
    """
    widths = {column.key: column.width for column in columns}
    rows = []
    for assignment in spreadsheet.assignments:
        item, number = round.items[assignment.item], assignment.place
        cells = _cells(round, item, spreadsheet.language, set(widths))
        separate = item.crisis or any(
            line_count(cells.get(key, ""), widths.get(key, 1)) > MAX_LINES for key in ("text", "reply")
        )
        if separate:
            cells["text"] = reference(number)
            cells.pop("reply", None)
        texts = {key: cell_text(text) for key, text in cells.items()}
        code = round.row_code(spreadsheet, assignment.item)
        code += f"-{round.checksum(code, [texts.get(key, '') for key in CHECKED])}"
        rows.append(SpreadsheetRow(number, assignment.session, item, code, separate, texts))
    return rows


def _cells(round: SpreadsheetRound, item: Item, language: Language, keys: set[str]) -> dict[str, str]:
    cells: dict[str, str] = {}
    if item.crisis:
        cells["notice"] = interface_text(item.notice, language)
    note = [item.note.strip()] if item.note.strip() else []
    titled = bool(item.context) or not item.turns
    cells["text"] = "\n\n".join([*note, join_blocks(context_blocks(item, language), titled=titled)])
    # The column may hold both kinds of reply, so each has its title.
    if "reply" in keys:
        cells["reply"] = join_blocks(reply_blocks(item, language), titled=True)
    if "suggestion" in keys:
        cells["suggestion"] = suggestion_text(item, round.questions, language)
    return cells
