"""The columns of a spreadsheet, and what stands in each row before anybody answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.data.languages import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.item_text import (
    MOST_LINES,
    cell_text,
    joined,
    line_count,
    material,
    replies,
    suggestion,
)  # fmt: skip
from h2htalk.rounds.texts.interface import (
    label_help,
    label_text,
    question_help,
    question_title,
    rating_text,
    word,
)

# Those whose text the row's seal covers.
SEALED = ("notice", "text", "reply", "suggestion")
# Widths in Latin letters. A line of 55 is as long as people like to read.
_WIDTHS = {"row": 2, "item": 6, "notice": 16, "text": 55, "reply": 40, "suggestion": 16}
_ANSWER_WIDTH, _LABEL_WIDTH, _COMMENT_WIDTH = 16, 5, 24


@dataclass(frozen=True, slots=True)
class SpreadsheetColumn:
    """One column.

    Attributes:
        key: by which it is found again: `row`, `item`, one of `SEALED`, a question's name (for one label of a
            question with several: `violations:privacy`), or `skip`.
        heading: as the annotator reads it.
        width: in Latin letters.
        question: that it answers; None for the others.
        label: of a question with several labels, which one a yes here means.
        help: when to choose what.
    """

    key: str
    heading: str
    width: int
    question: Question | None = None
    label: str = ""
    help: str = ""

    @property
    def answers(self) -> bool:
        return self.question is not None or self.key == "skip"


@dataclass(frozen=True, slots=True)
class SpreadsheetRow:
    """One item in a spreadsheet.

    Attributes:
        number: its place in the spreadsheet, from 1.
        code: by which it is known again, with its seal (`SpreadsheetRound.code`).
        elsewhere: its text stands apart, as it speaks of a crisis or is too long for a row.
        cells: of the columns in `SEALED`, their text as it is shown.
    """

    number: int
    session: int
    item: Item
    code: str
    elsewhere: bool
    cells: Mapping[str, str]


def text_columns(known: SpreadsheetRound, spreadsheet: Spreadsheet) -> list[SpreadsheetColumn]:
    """Number, notice, text, reply and suggestion: those that something stands in."""
    language = spreadsheet.language
    items = [known.items[one.item] for one in spreadsheet.assignments]
    mixed = any(item.context or not item.turns for item in items)
    headings = {"row": "", "item": word("item", language)}
    if any(item.crisis for item in items):
        headings["notice"] = word("crisis_short", language)
    headings["text"] = word("text" if mixed else "conversation", language)
    titles = {block.title: None for item in items for block in replies(item, language)}
    if titles:
        headings["reply"] = " / ".join(titles)
    if known.suggest and any(item.suggested for item in items):
        headings["suggestion"] = word("suggestion", language)
    return [SpreadsheetColumn(key, heading, _WIDTHS[key]) for key, heading in headings.items()]


def answer_columns(
    questions: Sequence[Question], language: Language, *, apart: bool
) -> list[SpreadsheetColumn]:
    """A column a question, and one for skipping.

    Args:
        apart: a question with several labels gets a column for each: a cell's list lets nobody choose two.
    """
    columns: list[SpreadsheetColumn] = []
    for question in questions:
        title, told = question_title(question.name, language), question_help(question.name, language)
        if question.form == "labels" and apart:
            for label in question.labels:
                name, more = (f(question.name, label, language) for f in (label_text, label_help))
                key, heading = f"{question.name}:{label}", word("if_yes", language, label=name)
                columns.append(SpreadsheetColumn(key, heading, _LABEL_WIDTH, question, label, more or told))
        else:
            heading = title if question.required else f"{title}\n({word('optional', language)})"
            width = _COMMENT_WIDTH if question.form == "text" else _ANSWER_WIDTH
            columns.append(SpreadsheetColumn(question.name, heading, width, question, help=told))
    skip = SpreadsheetColumn(
        "skip", word("skip", language), _ANSWER_WIDTH, help=word("skip_is_fine", language)
    )
    return [*columns, skip]


def shown_choices(question: Question, language: Language) -> dict[str | int, str]:
    """Stored value -> as the annotator chooses it; empty where they write freely."""
    if question.form == "rating":
        return {step: cell_text(rating_text(question.name, step, language)) for step in question.ratings}
    return {label: cell_text(label_text(question.name, label, language)) for label in question.labels}


def choices_of(question: Question, item: Item, language: Language) -> dict[str | int, str]:
    """`shown_choices` of those that this item leaves to choose: an adjudication's item names its own labels."""
    shown = shown_choices(question, language)
    if question.name == "label" and item.labels:
        return {label: shown[label] for label in item.labels}
    return shown


def spreadsheet_rows(
    known: SpreadsheetRound,
    spreadsheet: Spreadsheet,
    columns: Sequence[SpreadsheetColumn],
    pointer: Callable[[int], str],
) -> list[SpreadsheetRow]:
    """The rows of a spreadsheet, in the annotator's order.

    Args:
        columns: `text_columns`.
        pointer: an item's number -> the line that says where its text stands.
    """
    widths = {column.key: column.width for column in columns}
    rows = []
    for number, one in enumerate(spreadsheet.assignments, 1):
        item = known.items[one.item]
        cells = _cells(known, item, spreadsheet.language, set(widths))
        elsewhere = item.crisis or any(
            line_count(cells.get(key, ""), widths.get(key, 1)) > MOST_LINES for key in ("text", "reply")
        )
        if elsewhere:
            cells["text"] = pointer(number)
            cells.pop("reply", None)
        shown = {key: cell_text(text) for key, text in cells.items()}
        code = known.code(spreadsheet, one.item)
        sealed = f"{code}-{known.seal(code, [shown.get(key, '') for key in SEALED])}"
        rows.append(SpreadsheetRow(number, one.session, item, sealed, elsewhere, shown))
    return rows


def _cells(known: SpreadsheetRound, item: Item, language: Language, keys: set[str]) -> dict[str, str]:
    cells: dict[str, str] = {}
    if item.crisis:
        cells["notice"] = word("crisis_notice", language)
    note = [item.note.strip()] if item.note.strip() else []
    titled = bool(item.context) or not item.turns
    cells["text"] = "\n\n".join([*note, joined(material(item, language), titled=titled)])
    # Where some items have both replies, and where the only one could be either, its heading stands above it.
    if "reply" in keys:
        cells["reply"] = joined(replies(item, language), titled=True)
    if "suggestion" in keys:
        cells["suggestion"] = suggestion(item, known.questions, language)
    return cells
