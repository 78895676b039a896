"""A ballot as CSV, for who has no spreadsheet program: the same rows, answered in codes.

UTF-8 with a byte order mark, so that a spreadsheet that opens it nevertheless shows Chinese.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from h2htalk.data.files import write_text
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spreadsheets.columns import (
    SEALED,
    Row,
    answer_columns,
    ballot_rows,
    shown_choices,
    text_columns,
)  # fmt: skip
from h2htalk.rounds.spreadsheets.files import Ballot, BallotRound
from h2htalk.rounds.spreadsheets.guideline_sheets import guideline_lines
from h2htalk.rounds.spreadsheets.text import cell_text, plain, runs, whole_text
from h2htalk.rounds.texts import question_help, question_title, word

# A text of more lines stands in a file of its own: the csv module reads cells of 131,072 characters at most.
_MOST_LINES = 400
_MARK = "\ufeff"


def ballot_name(known: BallotRound, ballot: Ballot) -> str:
    return f"{known.name} wave {ballot.wave} {ballot.voter.id}"


def answer_keys(known: BallotRound, ballot: Ballot) -> list[str]:
    return [column.key for column in answer_columns(known.questions, ballot.language, apart=False)]


def csv_keys(known: BallotRound, ballot: Ballot) -> list[str]:
    texts = [column.key for column in text_columns(known, ballot)]
    choices = ["choices"] if any(known.items[one.item].labels for one in ballot.seats) else []
    return ["ballot", "sitting", *texts, *choices, *answer_keys(known, ballot)]


def write_csv(known: BallotRound, ballot: Ballot, path: Path, texts: Path) -> None:
    """Write a ballot to `path`, and the texts that stand apart, if there are any, to `texts`. Raises DataError."""
    language = ballot.language
    columns = text_columns(known, ballot)

    def pointer(number: int) -> str:
        return f"{word('show_text', language)}: {texts.name}, {word('item', language)} {number}"

    rows = ballot_rows(known, ballot, columns, pointer, _MOST_LINES)
    apart = [row for row in rows if row.elsewhere]
    if apart:
        write_text(texts, [_MARK, *(_text_apart(row, ballot, len(rows)) for row in apart)])
    output = io.StringIO()
    keys = csv_keys(known, ballot)
    writer = csv.DictWriter(output, keys, restval="", lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: value for key, value in _record(known, ballot, row).items() if key in keys})
    write_text(path, _MARK + output.getvalue())


def _record(known: BallotRound, ballot: Ballot, row: Row) -> dict[str, object]:
    record: dict[str, object] = {
        "ballot": cell_text(ballot_name(known, ballot)),
        "sitting": row.sitting,
        "item": row.number,
        "row": f"{row.code}-{known.seal(row.code, row.texts)}",
    }
    record |= {key: cell_text(plain(row.cells[key])) for key in SEALED if key in row.cells}
    return record | {"choices": cell_text(" | ".join(row.item.labels))}


def _text_apart(row: Row, ballot: Ballot, total: int) -> str:
    """One text, its notice first; many empty lines keep the next one off the screen."""
    language = ballot.language
    parts = [word("item_of", language, number=row.number, total=total)]
    if row.item.crisis:
        parts.append(word("crisis_notice", language) + "\n" * 40)
    parts.append(plain(runs(whole_text(row.item, language), titled=True)))
    return "\n\n".join(parts) + "\n" * 40


def write_csv_guidelines(known: BallotRound, ballot: Ballot, guidelines: str, path: Path) -> None:
    """The guidelines as a text file, with what can be written in each column. Raises DataError."""
    language = ballot.language
    lines = [line if style == "line" else f"\n{line}\n" for style, line in guideline_lines(guidelines)]
    lines += ["", "-" * 60, ""]
    for question in known.questions:
        lines += _codes(question, ballot)
    lines += [f"skip: {word('skip_is_fine', language)}", f"  yes = {word('skip_yes', language)}"]
    write_text(path, _MARK + "\n".join(lines) + "\n")


def _codes(question: Question, ballot: Ballot) -> Iterator[str]:
    language = ballot.language
    more = "" if question.required else f" ({word('optional', language)})"
    more += f" ({word('more_than_one', language)})" if question.form == "labels" else ""
    yield f"{question.name}: {question_title(question.name, language)}{more}"
    yield question_help(question.name, language)
    for value, shown in shown_choices(question, language).items():
        yield f"  {shown}" if question.form == "rating" else f"  {cell_text(str(value))} = {shown}"
    yield ""
