"""`question_answers`: a CSV file of questions and answers; one dialogue for each answer, linked by their question."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.curation.gather.html_text import plain_text
from h2htalk.curation.gather.raw_files import raw_lines, require_unicode
from h2htalk.curation.gather.raw_items import OnRead, RawDialogue, RawItem, RefusedItem
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
    lines = (line.decode(errors="surrogateescape") for _, line in raw_lines(path, on_read))
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
            columns = _columns(fields, path)
        elif fields:
            row += 1
            yield RawItem(row, line, _read_row(fields, columns, line))


def _columns(header: Sequence[str], path: Path) -> _Columns:
    names = [name.strip().lower().replace(" ", "") for name in header]

    def find(choices: Sequence[str]) -> int | None:
        return next((names.index(name) for name in choices if name in names), None)

    title, text, answer = find(_TITLES), find(_TEXTS), find(_ANSWERS)
    if answer is None or (title is None and text is None):
        raise ConfigError(
            f"{path}: the header must name a question ({', '.join(_TEXTS + _TITLES)}) and an answer "
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
