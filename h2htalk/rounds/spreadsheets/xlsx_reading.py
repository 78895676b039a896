"""Read workbooks with openpyxl, after checks that protect against malicious files, and the answers in their rows.

A choice is accepted as displayed, as displayed in the other language, or as stored; in any case and character width,
with surrounding white space and any kind of apostrophe or hyphen (`fold`). A rating is also accepted as a number: 4,
4.0, "4", "４". Nothing else is accepted.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter

from h2htalk.data.erasure.unfinished_erasure import refuse_unfinished_erasure
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.questions import SKIPPED, Question, Value, whole_number
from h2htalk.rounds.spreadsheets.codes import MAX_UNPACKED
from h2htalk.rounds.spreadsheets.xlsx_writing import (
    CHECKED,
    CODES,
    LINE,
    item_choices,
    texts_checksum,
)
from h2htalk.rounds.texts.interface import interface_text

# Larger files are not read, and none is written; number of the XML tags of all parts: each becomes some hundred bytes.
MAX_FILE = 32 << 20
MAX_TAGS = 1_000_000
# Rows and columns that are read, and rows among which the keys are searched: somebody may insert rows above them.
_MAX_ROWS, _MAX_COLUMNS, _MAX_KEY_ROW = 20_000, 64, 10
# Lines of texts that are read: more do not fit into `MAX_TAGS`.
_MAX_LINES = 100_000
_CHUNK = 1 << 16
_OLD_FORMAT = b"\xd0\xcf\x11\xe0"
# A carriage return as Excel stores it (ECMA-376, ST_Xstring).
_RETURN = re.compile("(?<!_x005F)_x000D_")
# The type of the relationship that names the workbook in a *Strict Open XML Spreadsheet* (ISO/IEC 29500-1), which
# openpyxl does not read; elsewhere it begins with http://schemas.openxmlformats.org (ISO/IEC 29500-4).
_RELATIONSHIPS = "_rels/.rels"
_STRICT_WORKBOOK = b"http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument"
_SAVE_AGAIN = "open it in a spreadsheet program and save it again as .xlsx, without a password"
# Apostrophes and hyphens that keyboards and phones produce; before NFKC, which splits some of them.
_PUNCTUATION = str.maketrans(
    dict.fromkeys("‘’‚‛ʼʹ′`´＇｀", "'") | dict.fromkeys("‐‑‒–—―−－﹣﹘", "-")
)

CellValue = str | int | float | bool | datetime.date | datetime.time | datetime.timedelta


@dataclass(frozen=True, slots=True)
class ReturnedRow:
    """One item's row: the item's number, file and sheet, and number of the row, for messages.

    `letters` are the columns by key; a question with several labels has that of its first label. `values`, by key, are
    of cells that are not empty. `unchanged`: its texts, and its lines on the sheet of texts, are those that were sent.
    """

    number: int
    sheet: str
    line: int
    letters: Mapping[str, str]
    values: Mapping[str, CellValue]
    unchanged: bool = False

    def place(self, key: str) -> str:
        return f"{self.sheet}, {self.letters[key]}{self.line}"


@dataclass(frozen=True, slots=True)
class ReturnedWorkbook:
    """A workbook's code, the numbers of its items, their rows, and their texts with the numbers; see `xlsx_writing`."""

    code: str
    numbers: frozenset[int]
    rows: Sequence[ReturnedRow]
    texts: Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class RowAnnotations:
    """The answers of one row, by question; `skipped` of a skipped one.

    A row is `partial` if an answer that every item needs is missing, `mistaken` if one is invalid, `unread` if its
    texts are not the item's.
    """

    state: Literal["empty", "answered", "partial", "mistaken", "unread"]
    answers: Mapping[str, Value] = field(default_factory=dict)


# --- A file -----------------------------------------------------------------------------------------------------------


def read_xlsx(
    path: Path, shown: str, required: Sequence[str], mistakes: list[Message]
) -> ReturnedWorkbook:
    """Read a workbook; its code is empty if it has none.

    A sheet of a session must have columns with the keys `required`; mistakes get a message for each sheet that is not
    read completely. Raise RoundError, which does not name the file, if it is empty, too large, broken, protected, or
    not a workbook, OSError if it cannot be read.
    """
    check_archive(path)
    try:
        # Opened here, because a sheet that is not read to its end keeps openpyxl's own file open.
        with warnings.catch_warnings(), path.open("rb") as file:
            # Warnings are about parts that openpyxl does not support; none of them is needed.
            warnings.simplefilter("ignore")
            # Without `data_only`, formulas are read as formulas.
            with closing(load_workbook(file, read_only=True, keep_links=False)) as book:
                return _read_book(book, shown, required, mistakes)
    except (OSError, RoundError):
        raise
    except Exception as error:
        # openpyxl raises whatever its parsers raise; the manager sees it as this file's mistake.
        raise RoundError(
            f"the file cannot be read as a workbook ({type(error).__name__}); {_SAVE_AGAIN}"
        ) from error


def _read_book(
    book: Any, shown: str, required: Sequence[str], mistakes: list[Message]
) -> ReturnedWorkbook:
    code = ""
    checksums = dict[int, object]()
    rows: list[ReturnedRow] = []
    lines: dict[int, list[str]] = {}
    for sheet in book.worksheets:
        if sheet.title == CODES:
            (head, *codes) = [*sheet.iter_rows(max_row=_MAX_ROWS, max_col=2, values_only=True)] or [
                (None, None)
            ]
            code = str(head[1])
            checksums = {
                number: line[1] for line in codes if (number := whole_number(line[0])) is not None
            }
            continue
        if ("item", *LINE) not in sheet.iter_rows(
            max_row=_MAX_KEY_ROW, max_col=3, values_only=True
        ):
            rows += _session_rows(sheet, f"{shown}: {sheet.title}", required, mistakes)
            continue
        for number, *texts in sheet.iter_rows(max_row=_MAX_LINES, max_col=3, values_only=True):
            lines.setdefault(whole_number(number) or 0, []).extend(
                str(text or "") for text in texts
            )
    read = []
    shown_texts = [(number, line) for number, theirs in lines.items() for line in theirs]
    for row in rows:
        texts = {key: str(row.values[key]) for key in CHECKED if key in row.values}
        shown_texts += [(row.number, texts[key]) for key in ("text", "reply") if key in texts]
        checksum = texts_checksum(texts, "".join(lines.get(row.number, ())))
        read.append(replace(row, unchanged=checksums.get(row.number) == checksum))
    return ReturnedWorkbook(code, frozenset(checksums), read, shown_texts)


def _session_rows(
    sheet: Any, shown: str, required: Sequence[str], mistakes: list[Message]
) -> Iterator[ReturnedRow]:
    """Yield the rows of items; a sheet without keys (guidelines, sheets that people add) has none."""
    lines = enumerate(sheet.iter_rows(max_row=_MAX_ROWS, max_col=_MAX_COLUMNS), 1)
    above: list[tuple[int, Any]] = []
    keys: list[str] = []
    for number, line in islice(lines, _MAX_KEY_ROW):
        keys = [str(cell.value or "").strip() for cell in line]
        if "item" in keys and not set(keys).isdisjoint(required):
            break
        above.append((number, line))
    else:
        return
    for key in ("item", *required):
        if keys.count(key) != 1:
            problem = "occurs twice" if key in keys else "is missing"
            text = f"in row {number}, so nothing is read here; copy the answers into a new file"
            mistakes.append(Message(shown, f"the column {quoted(key)} {problem} {text}"))
            return
    columns = {key: at for at, key in enumerate(keys, 1) if key}
    letters = {key: get_column_letter(at) for key, at in columns.items()}
    for key in required:
        letters.setdefault(key.partition(":")[0], letters[key])
    outside: list[tuple[str, str]] = []
    headed = False
    for number, line in (*above, *lines):
        filled = {
            at: value for at, cell in enumerate(line, 1) if (value := _value(cell)) is not None
        }
        values = {key: filled[at] for key, at in columns.items() if at in filled}
        item = whole_number(values.get("item"))
        if not headed and item is None and all(key in values for key in required):
            headed = True
            continue
        inside = set() if item is None else set(columns.values())
        outside += [
            (f"{get_column_letter(at)}{number}", quoted(str(filled[at])))
            for at in filled
            if at not in inside
        ]
        if item is not None:
            yield ReturnedRow(item, shown, number, letters, values)
    if outside:
        (place, text), more = outside[0], len(outside) - 1
        problem = f"{text} is outside the table{f' ({more} more cells)' if more else ''}; move or delete it"
        mistakes.append(Message(f"{shown}, {place}", problem, "outside the table"))


def _value(cell: Any) -> CellValue | None:
    value: CellValue | None = cell.value
    if cell.data_type == "f":
        return str(getattr(value, "text", value))
    if isinstance(value, str):
        return _RETURN.sub("", value) if value.strip() else None
    return value


def check_archive(path: Path) -> None:
    """Raise RoundError, OSError for a file that is no workbook or would need too much memory, before it is parsed.

    Every part is unpacked once, in chunks; zipfile reads no more than the central directory states. Tags are counted
    as bytes, so that neither encoding nor prefix hides them.
    """
    refuse_unfinished_erasure(path)
    size = path.stat().st_size
    if not size:
        raise RoundError("the file is empty; ask for it again")
    if size > MAX_FILE:
        raise RoundError(f"the file has {size >> 20:,} MiB; the maximum is {MAX_FILE >> 20}")
    with path.open("rb") as file:
        if file.read(8).startswith(_OLD_FORMAT):
            raise RoundError(
                f"the file has a password, or is in Excel's old format (.xls); {_SAVE_AGAIN}"
            )
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise RoundError(
                    f"the file unpacks to more than {MAX_UNPACKED >> 20} MiB, the maximum"
                )
            if any(
                part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                for part in parts
            ):
                raise RoundError(
                    f"the file is packed in a way that spreadsheets do not use; {_SAVE_AGAIN}"
                )
            if _is_strict(archive):
                raise RoundError(
                    "the file is a Strict Open XML Spreadsheet, which is not read here; in Excel, choose "
                    'File > Save As and the type "Excel Workbook (*.xlsx)"'
                )
            tags = 0
            for part in parts:
                with archive.open(part) as stream:
                    while piece := stream.read(_CHUNK):
                        tags += piece.count(b"<")
                        if tags > MAX_TAGS:
                            raise RoundError(
                                "the file has more cells than any spreadsheet of a round"
                            )
    # zipfile raises these for other bytes, a password, or an unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise RoundError(f"the file is not a complete workbook ({error}); {_SAVE_AGAIN}") from error


def _is_strict(archive: zipfile.ZipFile) -> bool:
    """Whether Excel saved this as *Strict Open XML Spreadsheet*: the same suffix, other namespaces."""
    if _RELATIONSHIPS not in archive.namelist():
        return False
    with archive.open(_RELATIONSHIPS) as stream:
        return _STRICT_WORKBOOK in stream.read(_CHUNK)


# --- The answers of a row ---------------------------------------------------------------------------------------------


def read_answers(
    row: ReturnedRow,
    given: Mapping[str, CellValue],
    item: Item,
    questions: Sequence[Question],
    language: Language,
    mistakes: list[Message],
    notes: list[Message],
) -> RowAnnotations:
    """Read the answers of a row; mistakes and notes get messages, with the choices in `language`.

    `given`: column key -> value, of answer columns that are not empty.
    """
    if not given:
        return RowAnnotations("empty")
    marked: list[str] = []
    found: list[Message] = []
    for key in (key for key in given if ":" in key or key == "skip"):
        if isinstance(raw := given[key], str) and fold(raw) in _marks():
            marked.append(key)
        else:
            problem = (
                f"{quoted(str(raw))} is not a valid answer; write yes, or leave the cell empty"
            )
            found.append(Message(row.place(key), problem, "not a mark"))
    if "skip" in marked:
        if ignored := [key for key in given if key != "skip"]:
            problem = (
                f"the item is skipped; its answers, from {row.place(ignored[0])} on, do not count. If it was skipped "
                "by mistake, have this cell emptied"
            )
            notes.append(Message(row.place("skip"), problem, "skipped with answers"))
        return RowAnnotations("answered", {SKIPPED: "yes"})
    answers: dict[str, Value] = {}
    for question in questions:
        name = question.name
        labels = tuple(label for label in question.labels if f"{name}:{label}" in marked)
        if question.form == "labels" and labels:
            answers[name] = labels
        elif name in given:
            try:
                answers[name] = read_choice(question, item, given[name], language)
            except RoundError as error:
                found.append(Message(row.place(name), str(error), f"invalid answer to {name}"))
        if name in answers and question.after is not None and not question.is_asked(answers):
            other, label = question.after
            key = next(one for one in given if one.partition(":")[0] == name)
            problem = f"{name} is answered, but it is asked only if {other} is {label}; empty it, or change "
            found.append(Message(row.place(key), problem + row.place(other), problem))
    mistakes += found
    if found:
        return RowAnnotations("mistaken")
    missing = [one.name for one in questions if one.always_required and one.name not in answers]
    if missing:
        # No mistake: the annotator may be in the middle of it.
        cells = ", ".join(f"{row.place(name)} ({name})" for name in missing)
        problem = f"this row is begun and does not count yet; empty (or merged with another cell): {cells}"
        notes.append(Message(row.place(next(iter(given))), problem, f"begun: {', '.join(missing)}"))
        return RowAnnotations("partial")
    for question in questions:
        if question.required and question.name not in answers and question.is_asked(answers):
            # As on servers, whose pages cannot require an answer only in some cases. An empty list is an answer, too.
            answers[question.name] = ()
            problem = f"{question.name} is empty: the row counts without it, but ask for it"
            notes.append(
                Message(row.place(question.name), problem, f"counted without {question.name}")
            )
    return RowAnnotations("answered", answers)


def read_choice(question: Question, item: Item, raw: CellValue, language: Language) -> Value:
    """Return the answer in a cell; raise RoundError with the choices in `language` if it is invalid."""
    if question.form == "text":
        return str(raw).replace("\r\n", "\n").replace("\r", "\n").strip()
    if (
        question.form == "rating"
        and (number := whole_number(raw)) is not None
        and number in question.ratings
    ):
        return number
    values = (
        choice_forms(question, item.labels).get(fold(raw), frozenset())
        if isinstance(raw, str)
        else frozenset()
    )
    # Of labels that differ only in what `fold` removes, the one that is typed exactly.
    if len(values) > 1 and isinstance(raw, str) and raw.strip() in values:
        return raw.strip()
    if len(values) == 1:
        return next(iter(values))
    choices = ", ".join(
        f"“{text}”" for text in item_choices(question, item.labels, language).values()
    )
    typed = raw if isinstance(raw, (str, int, float)) else str(raw)
    raise RoundError(f"{quoted(typed)} is not a valid answer; choose from {choices}")


@lru_cache(maxsize=4096)
def choice_forms(question: Question, labels: tuple[str, ...]) -> Mapping[str, frozenset[str | int]]:
    """Return folded text -> values that it may mean. `labels`: of an adjudication's item."""
    forms: dict[str, frozenset[str | int]] = {}
    for language in LANGUAGES:
        for value, text in item_choices(question, labels, language).items():
            for form in (fold(str(value)), fold(text)):
                forms[form] = forms.get(form, frozenset()) | {value}
    return forms


@lru_cache(maxsize=1)
def _marks() -> frozenset[str]:
    """Return what is read as a mark in a column of one label, or of skipping."""
    marks = (interface_text(name, one) for name in ("skip_yes", "skip", "yes") for one in LANGUAGES)
    return frozenset(map(fold, (*marks, "yes")))


def fold(text: str) -> str:
    """Normalise a text for comparison: width, case, apostrophes, hyphens, white space and space around colons."""
    plain = unicodedata.normalize("NFKC", text.translate(_PUNCTUATION)).casefold()
    return re.sub(r" ?: ?", ":", " ".join(unicodedata.normalize("NFKC", plain).split()))
