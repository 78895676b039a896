"""The files in the spreadsheets' folder: whose they are, and the answers of their rows.

A file is identified by its code, whatever its name is. One file of each spreadsheet counts, the one that is filled in;
blank copies are ignored. What was read is stored, so that only new and changed files are parsed again.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from h2htalk.data.files import sha256_of, write_jsonl
from h2htalk.errors import DataError, RoundError, listed
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.round_folder import RoundFolder, read_record_lines
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.row_answers import CellValue, Choices, RowAnnotations, read_row
from h2htalk.rounds.spreadsheets.xlsx_reading import ReturnedWorkbook, read_xlsx, remove_rows
from h2htalk.rounds.spreadsheets.xlsx_writing import CHECKED, answer_columns, texts_checksum
from h2htalk.text.escaping import printable
from h2htalk.version import __version__

# In the private folder. It may be deleted: everything is read again then.
STORED_READINGS = "read_spreadsheets.jsonl"
# Files of the round that determine what a spreadsheet means.
_CONTEXT = ("round.json", "items.jsonl", "assignment_sets.jsonl", "private/annotators.jsonl")
# Suffixes of files that may be filled in: a mistake if they are not in the round's format.
_SPREADSHEETS = (".xlsx", ".csv", ".tsv", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".et", ".zip", ".rar")
_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "icon\r")
_UNDO = "undo the change, or use a new file. This row is not read"


@dataclass(frozen=True, slots=True)
class FileReading:
    """What a file of the spreadsheet `code` contains: item -> answers; place, problem and kind of each message."""

    key: str
    code: str
    rows: Mapping[str, RowAnnotations]
    mistakes: tuple[tuple[str, str, str], ...]
    notes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class ReturnedFile:
    """A file of the round: its name in messages, when it was changed, and item -> answers."""

    shown: str
    when: str
    rows: Mapping[str, RowAnnotations]

    @property
    def is_filled_in(self) -> bool:
        return any(row.state not in ("empty", "unread") for row in self.rows.values())


@dataclass(slots=True)
class ReturnedFiles:
    """The files that were read, by the code of their spreadsheet, with mistakes and notes."""

    folder: RoundFolder
    round: SpreadsheetRound
    mistakes: list[Message] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)
    files: dict[str, list[ReturnedFile]] = field(default_factory=dict)
    _context: str = ""
    _stored: dict[str, FileReading] = field(default_factory=dict)
    _used: dict[str, FileReading] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._context = "\n".join([__version__, *(sha256_of(self.folder.path / name) for name in _CONTEXT)])
        try:
            stored = read_record_lines(self.folder.private / STORED_READINGS, FileReading)
            self._stored = {one.key: one for _, one in stored}
        except DataError:
            pass  # missing or damaged: nothing is lost, the files are read again

    def save(self) -> None:
        """Store what this collection read. Raise DataError."""
        if self._used != self._stored:
            write_jsonl(self.folder.private / STORED_READINGS, map(asdict, self._used.values()))

    def read(self, path: Path) -> None:
        """Read a file, or add a message that says why not."""
        shown = f"{self.round.folder.name}/{printable(path.name)}"
        name, suffix = path.name.lower(), path.suffix.lower()
        if name.startswith((".", "~$")) or name in _SYSTEM_FILES:
            return
        if suffix != ".xlsx" or not path.is_file():
            message = Message(shown, "not read; the files of this round are .xlsx files")
            (self.mistakes if suffix in _SPREADSHEETS else self.notes).append(message)
            return
        try:
            reading = self._stored.get(self._key(path))
            if reading is None and self.round.has_erased and remove_rows(path, self.round):
                self.notes.append(Message(shown, "it held items that were erased since; their rows were removed"))
                if not path.exists():
                    return
            reading = reading or self._parse(path, shown)
            changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
        except RoundError as error:
            self.mistakes.append(Message(shown, str(error)))
            return
        except OSError as error:
            problem = f"cannot be read: {error.strerror or error}; close it if it is open in another program"
            self.mistakes.append(Message(shown, problem))
            return
        self._used[reading.key] = reading
        # A wrong clock sets no time in the future.
        when = min(changed, datetime.datetime.now(datetime.UTC)).isoformat(timespec="seconds")
        self.files.setdefault(reading.code, []).append(ReturnedFile(shown, when, reading.rows))
        self.notes += [Message(*message) for message in reading.notes]
        # Annotators who left do not correct mistakes, so these must not prevent closing.
        spreadsheet = self.round.by_code[reading.code]
        active = spreadsheet is not None and spreadsheet.annotator.active
        (self.mistakes if active else self.notes).extend(Message(*message) for message in reading.mistakes)

    def filled_in(self, spreadsheet: Spreadsheet) -> ReturnedFile | None:
        """Return the file of a spreadsheet that is filled in; None if there is none, or several (a mistake)."""
        filled = [file for file in self.files.get(spreadsheet.code, ()) if file.is_filled_in]
        if len(filled) > 1:
            problem = (
                f"several files of {spreadsheet.stem} are filled in, so none is read; keep the one that counts, and "
                "move the others away"
            )
            self.mistakes.append(Message(", ".join(file.shown for file in filled), problem))
        return filled[0] if len(filled) == 1 else None

    def _key(self, path: Path) -> str:
        """Return a fingerprint of a file's name and content, the round, and the version. Raise OSError."""
        text = f"{self._context}\n{sha256_of(path)}\n{path.name}"
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    def _parse(self, path: Path, shown: str) -> FileReading:
        """Read a workbook. Raise RoundError if nothing can be read, OSError."""
        mistakes: list[Message] = []
        notes: list[Message] = []
        required = [column.key for column in answer_columns(self.round.questions, "en")]
        book = read_xlsx(path, shown, required, mistakes)
        spreadsheet = self.round.by_code.get(book.code)
        if spreadsheet is None:
            raise RoundError(
                f"it is no spreadsheet of the round {self.round.name!r}, so nothing is read; is the file from another "
                "round, or were its hidden sheets deleted?"
            )
        answers = self._answers(spreadsheet, book, shown, required, mistakes, notes)
        parts = (tuple((one.place, one.problem, one.kind) for one in messages) for messages in (mistakes, notes))
        return FileReading(self._key(path), book.code, answers, *parts)

    def _answers(
        self,
        spreadsheet: Spreadsheet,
        book: ReturnedWorkbook,
        shown: str,
        required: list[str],
        mistakes: list[Message],
        notes: list[Message],
    ) -> dict[str, RowAnnotations]:
        choices = Choices(self.round.questions, spreadsheet.language)
        places = {one.place: one.item for one in spreadsheet.assignments}
        answers: dict[str, RowAnnotations] = {}
        typed: dict[str, Mapping[str, CellValue]] = {}
        for row in book.rows:
            item = places.get(row.number, "")
            given = {key: row.values[key] for key in required if key in row.values}
            texts = {key: str(row.values[key]) for key in CHECKED if key in row.values}
            unchanged = book.checksums.get(row.number) == f"c{texts_checksum(texts)}"
            # A copied row that is blank, or says the same, changes nothing.
            if item in typed and (not given or (unchanged and given == typed[item])):
                continue
            kind = ""
            if not item:
                kind = "this spreadsheet has no item {}"
            elif typed.get(item):
                kind = "the row of item {} occurs twice"
            elif not unchanged:
                kind = "the text of item {} was changed (edited, or sorted without its row)"
            if kind:
                mistakes.append(Message(row.where, f"{kind.format(row.number)}; {_UNDO}", kind))
                answers |= {item: RowAnnotations("unread")} if item else {}
            else:
                answers[item] = read_row(choices, self.round.items[item], given, row.cells.__getitem__, mistakes, notes)
            typed[item] = given
        if missing := [place for place, item in places.items() if item not in answers]:
            problem = f"the row of item {listed(missing)} is missing; undo the change, or use a new file"
            mistakes.append(Message(shown, problem, "missing rows"))
        return answers
