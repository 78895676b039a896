"""The columns of a ballot, and what stands in each row before anybody answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.data.dialogue import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spreadsheets.files import Ballot, BallotRound
from h2htalk.rounds.spreadsheets.text import (
    Run,
    cell_text,
    line_count,
    lines_shown,
    material,
    plain,
    replies,
    runs,
    suggestion,
    widest_word,
)
from h2htalk.rounds.texts import label_help, label_text, question_help, question_title, rating_text, word

# Those whose text the row's seal covers.
SEALED = ("notice", "text", "reply", "suggestion")
# Lines of a row at most: more than 409 points high Excel shows none.
MOST_LINES = 26
# Of a note beside a text that stands elsewhere.
_NOTE_LINES = 8
# Units of a column; a line of 48 is as long as people like to read, and leaves the answers room on a page of A4.
_NOTICE_WIDTH, _TEXT_WIDTH, _REPLY_WIDTH = 14, 48, 32
# Of a column to answer in: from the narrowest to the widest, and for one label or a comment.
_ANSWER_WIDTHS, _LABEL_WIDTH, _COMMENT_WIDTH = range(9, 21), 4, 16
# Lines that a heading and a choice may take in the narrowest column that is wide enough.
_HEADING_LINES, _CHOICE_LINES = 6, 3


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        key: by which it is found again: `row`, `item`, one of `SEALED`, a question's name (for one label of a
            question with several: `violations:privacy`), or `skip`.
        heading: as the voter reads it.
        width: in units, of which a Latin letter takes less than one and a Chinese sign two.
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
class Row:
    """One item in a ballot.

    Attributes:
        number: its place in the ballot, from 1.
        elsewhere: its text stands apart, as it speaks of a crisis or is too long for a row.
        cells: of the columns in `SEALED`, their text.
    """

    number: int
    sitting: int
    item: Item
    code: str
    elsewhere: bool
    cells: Mapping[str, Sequence[Run]]

    @property
    def texts(self) -> list[str]:
        """What the seal covers."""
        return [plain(self.cells.get(key, ())) for key in SEALED]


def text_columns(known: BallotRound, ballot: Ballot) -> list[Column]:
    """Number, notice, text, reply and suggestion: those that something stands in."""
    language = ballot.language
    items = [known.items[one.item] for one in ballot.seats]
    columns = [Column("row", "", 2), Column("item", word("item", language), 5)]
    if any(item.crisis for item in items):
        columns.append(Column("notice", word("crisis_short", language), _NOTICE_WIDTH))
    columns.append(Column("text", word("text" if _mixed(items) else "conversation", language), _TEXT_WIDTH))
    titles = [block.title for item in items for block in replies(item, language)]
    if titles:
        both = [
            name
            for name in (word("reply_to_judge", language), word("proposed_reply", language))
            if name in titles
        ]
        columns.append(Column("reply", " / ".join(both), _REPLY_WIDTH))
    if known.suggest and any(item.suggested for item in items):
        columns.append(Column("suggestion", word("suggestion", language), _NOTICE_WIDTH))
    return columns


def _mixed(items: Sequence[Item]) -> bool:
    return any(item.context or not item.turns for item in items)


def answer_columns(questions: Sequence[Question], language: Language, *, apart: bool) -> list[Column]:
    """A column a question, and one for skipping.

    Args:
        apart: a question with several labels gets a column for each: a cell's list lets nobody choose two.
    """
    columns: list[Column] = []
    for question in questions:
        title, told = question_title(question.name, language), question_help(question.name, language)
        if question.form == "labels" and apart:
            for label in question.labels:
                name, more = (f(question.name, label, language) for f in (label_text, label_help))
                key, heading = f"{question.name}:{label}", word("if_yes", language, label=name)
                columns.append(Column(key, heading, _LABEL_WIDTH, question, label, more or told))
        else:
            heading = title if question.required else f"{title}\n({word('optional', language)})"
            width = (
                _COMMENT_WIDTH
                if question.form == "text"
                else _narrowest(heading, shown_choices(question, language).values())
            )
            columns.append(Column(question.name, heading, width, question, help=told))
    skip = word("skip", language)
    width = _narrowest(skip, [word("skip_yes", language)])
    columns.append(Column("skip", skip, width, help=word("skip_is_fine", language)))
    return columns


def _narrowest(heading: str, choices: Iterable[str]) -> int:
    """The narrowest width in which a heading and choices are read well; the widest where none is enough."""
    shown = list(choices)
    for width in _ANSWER_WIDTHS:
        # A bold heading takes more room, and a drop-down list's arrow some of the choice's.
        if (
            widest_word(heading) < width
            and line_count(heading, width - 1) <= _HEADING_LINES
            and all(widest_word(one) <= width and line_count(one, width) <= _CHOICE_LINES for one in shown)
        ):
            return width
    return _ANSWER_WIDTHS[-1]


def shown_choices(question: Question, language: Language) -> dict[str | int, str]:
    """Stored value -> as the voter chooses it; empty where they write freely."""
    if question.form == "rating":
        return {step: cell_text(rating_text(question.name, step, language)) for step in question.ratings}
    return {label: cell_text(label_text(question.name, label, language)) for label in question.labels}


def choices_of(question: Question, item: Item, language: Language) -> dict[str | int, str]:
    """`shown_choices` of those that this item leaves to choose: an adjudication's item names its own labels."""
    shown = shown_choices(question, language)
    if question.name == "label" and item.labels:
        return {label: shown[label] for label in item.labels}
    return shown


def ballot_rows(
    known: BallotRound,
    ballot: Ballot,
    columns: Sequence[Column],
    pointer: Callable[[int], str],
    most_lines: int | None,
) -> list[Row]:
    """The rows of a ballot, in the voter's order.

    Args:
        columns: `text_columns`.
        pointer: an item's number -> the line that says where its text stands.
        most_lines: a text of more stands elsewhere; None where only crises do.
    """
    widths = {column.key: column.width for column in columns}
    rows = []
    for number, one in enumerate(ballot.seats, 1):
        item = known.items[one.item]
        cells = _cells(known, item, ballot.language, set(widths))
        long = most_lines is not None and any(
            line_count(plain(cells[key]), widths[key]) > most_lines
            for key in ("text", "reply")
            if key in cells
        )
        if item.crisis or long:
            cells |= {"text": [*_note(item, _NOTE_LINES), (pointer(number), False)], "reply": []}
        code = known.code(ballot, one.item)
        rows.append(Row(number, one.sitting, item, code, item.crisis or long, cells))
    return rows


def _cells(known: BallotRound, item: Item, language: Language, keys: set[str]) -> dict[str, Sequence[Run]]:
    cells: dict[str, Sequence[Run]] = {}
    if item.crisis:
        cells["notice"] = [(word("crisis_notice", language), False)]
    titled = bool(item.context) or not item.turns
    cells["text"] = [*_note(item), *runs(material(item, language), titled=titled)]
    # Where some items have both replies, and where the only one could be either, its heading stands above it.
    if "reply" in keys:
        cells["reply"] = runs(replies(item, language), titled=True)
    if "suggestion" in keys:
        cells["suggestion"] = [(suggestion(item, known.questions, language), False)]
    return cells


def _note(item: Item, most_lines: int | None = None) -> list[Run]:
    """The manager's note; none where it is longer than `most_lines`: it stands with the text then."""
    shown = lines_shown(item.note).strip()
    if not shown or (most_lines is not None and line_count(shown, _TEXT_WIDTH) > most_lines):
        return []
    return [(shown + "\n\n", True)]
