"""Spreadsheets as CSV files, in which annotators write codes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from h2htalk.data.files import write_text
from h2htalk.errors import RoundError
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spreadsheets.assigned_files import MAX_FILE, Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.columns import (
    SpreadsheetRow,
    answer_columns,
    choice_texts,
    spreadsheet_rows,
    text_columns,
)  # fmt: skip
from h2htalk.rounds.spreadsheets.guideline_text import guideline_lines
from h2htalk.rounds.spreadsheets.item_text import cell_text, item_blocks, join_blocks
from h2htalk.rounds.spreadsheets.returned_rows import MAX_KEY_ROW, MAX_ROWS, Line, ReturnedRow, table_rows
from h2htalk.rounds.texts.interface import interface_text, label_text, question_help, question_title
from h2htalk.text.escaping import longest_field, printable_lines

# Without a byte order mark, spreadsheet programs do not recognise UTF-8.
_BOM = "\ufeff"
# Encodings in which programs save CSV by default in China and Western Europe.
_OTHER_ENCODINGS = ("gb18030", "cp1252")


def write_csv(round: SpreadsheetRound, spreadsheet: Spreadsheet, path: Path, texts_path: Path) -> None:
    """Write a spreadsheet to `path`, and separate texts, if any, to `texts_path`. Raise DataError."""
    language = spreadsheet.language
    columns = text_columns(round, spreadsheet)
    rows = write_texts(round, spreadsheet, texts_path)
    choices = ["choices"] if any(row.item.labels for row in rows) else []
    answers = [column.key for column in answer_columns(round.questions, language, per_label=False)]
    output = io.StringIO()
    keys = ["session", *(column.key for column in columns), *choices, *answers]
    writer = csv.DictWriter(output, keys, restval="")
    writer.writeheader()
    for row in rows:
        record = {"session": row.session, "item": row.number, "row": row.code, **row.cells}
        labels = " | ".join(label_text("label", label, language) for label in row.item.labels)
        writer.writerow(record | dict.fromkeys(choices, cell_text(labels)))
    write_text(path, _BOM + output.getvalue())


def write_texts(round: SpreadsheetRound, spreadsheet: Spreadsheet, path: Path) -> list[SpreadsheetRow]:
    """Write the separate texts of a spreadsheet, if it has any; return its rows. Raise DataError."""
    language = spreadsheet.language
    show, item = interface_text("show_text", language), interface_text("item", language)
    columns = text_columns(round, spreadsheet)
    rows = spreadsheet_rows(round, spreadsheet, columns, lambda number: f"{show}: {path.name}, {item} {number}")
    if separate := [row for row in rows if row.separate]:
        write_text(path, [_BOM, *(_separate_text(row, spreadsheet, len(rows)) for row in separate)])
    return rows


def _separate_text(row: SpreadsheetRow, spreadsheet: Spreadsheet, total: int) -> str:
    """Return an item's text after its notice; many empty lines keep the text off the screen."""
    language = spreadsheet.language
    parts = [interface_text("item_of", language, number=row.number, total=total)]
    if row.item.crisis:
        parts.append(interface_text(row.item.notice, language) + "\n" * 40)
    parts.append(printable_lines(join_blocks(item_blocks(row.item, language), titled=True)))
    return "\n\n".join(parts) + "\n" * 40


def write_csv_guidelines(round: SpreadsheetRound, spreadsheet: Spreadsheet, guidelines: str, path: Path) -> None:
    """Write the guidelines as a text file, with the codes of each column. Raise DataError."""
    language = spreadsheet.language
    lines = [line for _, line in guideline_lines(guidelines)]
    lines += ["", "-" * 60, ""]
    for question in round.questions:
        lines += _code_lines(question, spreadsheet)
    lines += [f"skip: {interface_text('skip_is_fine', language)}"]
    lines += [f"  yes = {interface_text('skip_yes', language)}"]
    write_text(path, _BOM + "\n".join(lines) + "\n")


def _code_lines(question: Question, spreadsheet: Spreadsheet) -> Iterator[str]:
    language = spreadsheet.language
    notes = "" if question.required else f" ({interface_text('optional', language)})"
    notes += f" ({interface_text('more_than_one', language)})" if question.form == "labels" else ""
    yield f"{question.name}: {question_title(question.name, language)}{notes}"
    yield question_help(question.name, language)
    for value, text in choice_texts(question, language).items():
        yield f"  {text}" if question.form == "rating" else f"  {cell_text(str(value))} = {text}"
    yield ""


# --- Reading ------------------------------------------------------------------------------------------------------


def read_csv(
    path: Path,
    shown: str,
    required: Sequence[str],
    mistakes: list[Message],
    unchanged: Callable[[ReturnedRow], bool],
) -> list[ReturnedRow]:
    """Read the rows of a CSV file, in the encoding in which most of them are `unchanged`.

    The texts of the items are known, so the encoding need not be guessed. Other arguments as of `read_xlsx`.

    Raises:
        RoundError: the file is not CSV; the message does not name it.
        OSError: the file cannot be read.
    """
    results = []
    for text in _decode_all(path):
        found: list[Message] = []
        rows = list(_read_rows(text, shown, required, found))
        results.append((sum(map(unchanged, rows)), rows, found))
    _, rows, found = max(results, key=lambda one: one[0])
    mistakes += found
    return rows


def _read_rows(text: str, shown: str, required: Sequence[str], mistakes: list[Message]) -> Iterator[ReturnedRow]:
    def cell_name(row: int, _: int, key: str) -> str:
        return f": row {row}, column {key}"

    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, required), strict=True)
    lines: Iterator[Line] = zip(range(1, MAX_ROWS + 1), reader, strict=False)
    try:
        with longest_field(MAX_FILE):
            yield from table_rows(lines, required, shown, cell_name, mistakes)
    except csv.Error as error:
        raise RoundError(f"the file cannot be read as CSV: {error}; save it again as CSV in UTF-8") from error


def _delimiter(text: str, required: Sequence[str]) -> str:
    """Return the delimiter that finds most of the keys of columns in one of the first lines."""
    first = list(islice(io.StringIO(text, newline=None), MAX_KEY_ROW))

    def found(delimiter: str) -> int:
        cells = ({cell.strip(' "\n') for cell in line.split(delimiter)} for line in first)
        return max((len(one & {*required}) for one in cells), default=0)

    return max(",;\t", key=found)


def _decode_all(path: Path) -> list[str]:
    """Return the file's text; if it is neither UTF-8 nor UTF-16, its text in each other encoding that fits."""
    raw = path.read_bytes()
    unicode = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    for encodings in ((unicode,), _OTHER_ENCODINGS):
        texts = []
        for encoding in encodings:
            with suppress(UnicodeDecodeError):
                texts.append(raw.decode(encoding))
        if texts:
            return texts
    raise RoundError("the file is not text; save it again as “CSV UTF-8”")
