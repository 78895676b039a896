"""A spreadsheet as CSV: the same rows, answered in codes, as editors and spreadsheet programs read and write it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from h2htalk.data.files import write_text
from h2htalk.errors import RoundError
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spreadsheets.assigned_files import MAX_FILE, Spreadsheet, SpreadsheetRound, require_size
from h2htalk.rounds.spreadsheets.columns import (
    SpreadsheetRow,
    answer_columns,
    shown_choices,
    spreadsheet_rows,
    text_columns,
)  # fmt: skip
from h2htalk.rounds.spreadsheets.guideline_text import guideline_lines
from h2htalk.rounds.spreadsheets.item_text import cell_text, joined, lines_shown, whole_text
from h2htalk.rounds.spreadsheets.returned_rows import MAX_ROWS, Raw, ReturnedRow, table_rows
from h2htalk.rounds.texts.interface import question_help, question_title, word
from h2htalk.text.escaping import longest_field

# Without it spreadsheet programs take UTF-8 for the coding of the country.
_MARK = "\ufeff"
# What programs save CSV in when nobody tells them UTF-8, in China and in Western Europe.
_OTHER_CODINGS = ("gb18030", "cp1252")


def write_csv(known: SpreadsheetRound, spreadsheet: Spreadsheet, path: Path, texts: Path) -> None:
    """Write a spreadsheet to `path`, and the texts that stand apart, if there are any, to `texts`. Raises DataError."""
    language = spreadsheet.language
    columns = text_columns(known, spreadsheet)

    def pointer(number: int) -> str:
        return f"{word('show_text', language)}: {texts.name}, {word('item', language)} {number}"

    rows = spreadsheet_rows(known, spreadsheet, columns, pointer)
    apart = [row for row in rows if row.elsewhere]
    if apart:
        write_text(texts, [_MARK, *(_text_apart(row, spreadsheet, len(rows)) for row in apart)])
    choices = ["choices"] if any(row.item.labels for row in rows) else []
    answers = [column.key for column in answer_columns(known.questions, language, apart=False)]
    output = io.StringIO()
    writer = csv.DictWriter(
        output, ["session", *(column.key for column in columns), *choices, *answers], restval=""
    )
    writer.writeheader()
    for row in rows:
        record = {"session": row.session, "item": row.number, "row": row.code, **row.cells}
        writer.writerow(record | {key: cell_text(" | ".join(row.item.labels)) for key in choices})
    write_text(path, _MARK + output.getvalue())


def _text_apart(row: SpreadsheetRow, spreadsheet: Spreadsheet, total: int) -> str:
    """One text, its notice first; many empty lines keep the next one off the screen."""
    language = spreadsheet.language
    parts = [word("item_of", language, number=row.number, total=total)]
    if row.item.crisis:
        parts.append(word("crisis_notice", language) + "\n" * 40)
    parts.append(lines_shown(joined(whole_text(row.item, language), titled=True)))
    return "\n\n".join(parts) + "\n" * 40


def write_csv_guidelines(
    known: SpreadsheetRound, spreadsheet: Spreadsheet, guidelines: str, path: Path
) -> None:
    """The guidelines as a text file, with what can be written in each column. Raises DataError."""
    language = spreadsheet.language
    lines = [line for _, line in guideline_lines(guidelines)]
    lines += ["", "-" * 60, ""]
    for question in known.questions:
        lines += _codes(question, spreadsheet)
    lines += [f"skip: {word('skip_is_fine', language)}", f"  yes = {word('skip_yes', language)}"]
    write_text(path, _MARK + "\n".join(lines) + "\n")


def _codes(question: Question, spreadsheet: Spreadsheet) -> Iterator[str]:
    language = spreadsheet.language
    more = "" if question.required else f" ({word('optional', language)})"
    more += f" ({word('more_than_one', language)})" if question.form == "labels" else ""
    yield f"{question.name}: {question_title(question.name, language)}{more}"
    yield question_help(question.name, language)
    for value, shown in shown_choices(question, language).items():
        yield f"  {shown}" if question.form == "rating" else f"  {cell_text(str(value))} = {shown}"
    yield ""


# --- Read back ----------------------------------------------------------------------------------------------------


def read_csv(
    path: Path,
    shown: str,
    required: Sequence[str],
    mistakes: list[str],
    intact: Callable[[ReturnedRow], bool],
) -> list[ReturnedRow]:
    """The rows of a CSV file, in the coding in which most of them are `intact`; other arguments as `read_xlsx`'s.

    The text beside the answers is known, so that the coding is measured and not guessed.

    Raises:
        RoundError: it is empty, too large, or no CSV; without the file's name.
        OSError: it cannot be read.
    """
    read = []
    for text in _decoded(path):
        told: list[str] = []
        rows = list(_rows(text, shown, required, told))
        read.append((sum(map(intact, rows)), rows, told))
    _, rows, told = max(read, key=lambda one: one[0])
    mistakes += told
    return rows


def _rows(text: str, shown: str, required: Sequence[str], mistakes: list[str]) -> Iterator[ReturnedRow]:
    heading = text[: text.find("\n") + 1 or None]
    delimiter = max(",;\t", key=heading.count)

    def lines() -> Iterator[tuple[int, Sequence[Raw | None]]]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        yield from zip(range(1, MAX_ROWS + 1), reader, strict=False)

    try:
        with longest_field(MAX_FILE):
            table = lines()
            _, keys = next(table, (1, ()))
            yield from table_rows(
                keys, table, required, shown, lambda row, _, key: f": row {row}, column {key}", mistakes
            )
    except csv.Error as error:
        raise RoundError(f"it cannot be read as CSV: {error}; save it again as CSV in UTF-8") from error


def _decoded(path: Path) -> list[str]:
    """The file's text; in each coding that fits, where a program has not saved it in UTF-8 or UTF-16."""
    require_size(path)
    raw = path.read_bytes()
    unicode = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    for codings in ((unicode,), _OTHER_CODINGS):
        texts = [text for coding in codings if (text := _decode(raw, coding)) is not None]
        if texts:
            return texts
    raise RoundError("it is no text; save it again as “CSV UTF-8”")


def _decode(raw: bytes, coding: str) -> str | None:
    try:
        return raw.decode(coding)
    except UnicodeDecodeError:
        return None
