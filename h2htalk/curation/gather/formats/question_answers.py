"""`question_answers`: a CSV file of questions and answers; one dialogue for each answer, linked by their question."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.curation.gather.html_text import plain_text
from h2htalk.curation.gather.raw_files import raw_lines, require_unicode
from h2htalk.curation.gather.raw_items import OnRead, RawDialogue, RawItem, RefusedItem
from h2htalk.curation.gather.tables import Row
from h2htalk.data.files import MAX_LINE
from h2htalk.errors import ConfigError, DataError
from h2htalk.text.escaping import longest_field

_TITLES = ("questiontitle", "title")
_TEXTS = ("questiontext", "question", "prompt", "context")
_ANSWERS = ("answertext", "answer", "response", "reply")
_IDS = ("questionid", "question_id", "qid")


@dataclass(frozen=True, slots=True)
class _Columns:
    """The positions of a question's title, text and id and of its answer; None: no such column."""

    title: int | None
    text: int | None
    answer: int
    id: int | None
    count: int


def read(path: Path, on_read: OnRead) -> Iterator[RawItem]:
    """Read every row of a file, numbered from 1 after the header.

    Raises:
        ConfigError: the header names no question or no answer.
        DataError: the file cannot be read, or a quotation mark is never closed; names file and line.
    """
    # The parser passes on bytes that are not UTF-8 as lone surrogates; such a row is refused below.
    lines = (_decoded(line, path, number) for number, line in raw_lines(path, on_read))
    rows = csv.reader(lines, strict=True)
    columns: _Columns | None = None
    row = 0
    while True:
        line = rows.line_num + 1
        try:
            with longest_field(MAX_LINE):
                fields = next(rows, None)
        except csv.Error as error:
            raise DataError(f"{path}:{rows.line_num}: broken CSV, from line {line} on: {error}") from error
        if fields is None:
            return
        if columns is None:
            columns = _columns(fields, str(path))
        elif fields:
            row += 1
            yield RawItem(row, line, _read_row(fields, columns, line))


def read_rows(rows: Iterator[Row], where: str) -> Iterator[RawItem]:
    """The items of a table's rows, numbered from 1; raises ConfigError as `read`."""
    columns: _Columns | None = None
    for number, row in enumerate(rows, 1):
        columns = columns or _columns(list(row), where)
        fields = ["" if value is None else str(value) for value in row.values()]
        yield RawItem(number, number, _read_row(fields, columns, number))


def _decoded(line: bytes | None, path: Path, number: int) -> str:
    if line is None:
        raise DataError(f"{path}:{number}: line longer than {MAX_LINE >> 20} MiB; a quotation mark may be open")
    return line.decode(errors="surrogateescape")


def _columns(header: Sequence[str], where: str) -> _Columns:
    names = [name.strip().lower().replace(" ", "") for name in header]

    def find(choices: Sequence[str]) -> int | None:
        return next((names.index(name) for name in choices if name in names), None)

    title, text, answer = find(_TITLES), find(_TEXTS), find(_ANSWERS)
    if answer is None or (title is None and text is None):
        raise ConfigError(
            f"{where}: the header must name a question ({', '.join(_TEXTS + _TITLES)}) and an answer "
            f"({', '.join(_ANSWERS)})"
        )
    return _Columns(title, text, answer, find(_IDS), len(names))


def _read_row(fields: Sequence[str], columns: _Columns, line: int) -> RawDialogue | RefusedItem:
    if len(fields) != columns.count:
        return RefusedItem("broken", line=line)
    try:
        for number, field in enumerate(fields, 1):
            require_unicode(field, line=line, column=number)
    except RefusedItem as refused:
        return refused
    title, text = ("" if at is None else plain_text(fields[at]).strip() for at in (columns.title, columns.text))
    asked = text if title in text else f"{title}\n{text}".strip()
    question = fields[columns.id].strip() if columns.id is not None else ""
    answer = plain_text(fields[columns.answer]).strip()
    return RawDialogue((("user", asked), ("companion", answer)), question=question or asked)
