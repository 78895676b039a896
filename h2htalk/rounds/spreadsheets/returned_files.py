"""The files in the spreadsheets' folder: whose they are, and the answers of their rows.

A file is identified by the codes of its rows, whatever its name is. One file of each spreadsheet counts, the one that
is filled in; blank copies are ignored.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.errors import RoundError, listed
from h2htalk.rounds.assignment.assignments import Assignment
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.columns import CHECKED, answer_columns
from h2htalk.rounds.spreadsheets.returned_rows import OUTSIDE, CellValue, ReturnedRow
from h2htalk.rounds.spreadsheets.row_answers import Choices, RowAnnotations, read_row
from h2htalk.rounds.spreadsheets.row_removal import remove_rows
from h2htalk.rounds.spreadsheets.stored_readings import FileReading, StoredReadings
from h2htalk.rounds.spreadsheets.xlsx_reading import read_xlsx
from h2htalk.text.escaping import printable

# Suffixes of files that may be filled in: a mistake if they are not in the round's format.
_SPREADSHEETS = (".xlsx", ".csv", ".tsv", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".et", ".zip", ".rar")
_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "icon\r")
# Keys of columns that are not answers.
_NOT_ANSWERS = ("row", "item", "session", "choices", *CHECKED)
_UNDO = "undo the change, or use a new file. This row is not read"


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
    """The files that were read, by the stem of their spreadsheet, with mistakes and notes."""

    round: SpreadsheetRound
    readings: StoredReadings
    mistakes: list[Message] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: dict[str, list[ReturnedFile]] = field(default_factory=dict)
    _codes: dict[str, tuple[Spreadsheet, Assignment]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for spreadsheet in self.round.spreadsheets:
            for one in spreadsheet.assignments:
                self._codes[self.round.row_code(spreadsheet, one.item)] = spreadsheet, one

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
            key = self.readings.key(path)
            reading = self.readings.find(key)
            if reading is None and self.round.erased_codes and remove_rows(path, self.round.erased_codes):
                self.notes.append(Message(shown, "it held items that were erased since; their rows were removed"))
                if not path.exists():
                    return
                key = self.readings.key(path)
            reading = reading or self._read_file(path, shown, key)
            when = _changed_at(path)
        except RoundError as error:
            self.mistakes.append(Message(shown, str(error)))
            return
        except OSError as error:
            reason = error.strerror or error
            problem = f"cannot be read: {reason}; close it if it is open in another program"
            self.mistakes.append(Message(shown, problem))
            return
        self.files.setdefault(reading.stem, []).append(ReturnedFile(shown, when, reading.rows))
        self.notes += [Message(*message) for message in reading.notes]
        # Annotators who left do not correct mistakes, so these must not prevent closing.
        active = next(one for one in self.round.spreadsheets if one.stem == reading.stem).annotator.active
        (self.mistakes if active else self.notes).extend(Message(*message) for message in reading.mistakes)

    def filled_in(self, spreadsheet: Spreadsheet) -> ReturnedFile | None:
        """Return the file of a spreadsheet that is filled in; None if there is none, or several (a mistake)."""
        filled = [file for file in self.files.get(spreadsheet.stem, ()) if file.is_filled_in]
        if len(filled) > 1:
            problem = (
                f"several files of {spreadsheet.stem} are filled in, so none is read; keep the one that counts, and "
                "move the others away"
            )
            self.mistakes.append(Message(", ".join(file.shown for file in filled), problem))
        return filled[0] if len(filled) == 1 else None

    def _read_file(self, path: Path, shown: str, key: str) -> FileReading:
        """Read a file, and store what it contains. Raise RoundError if nothing can be read, OSError."""
        mistakes: list[Message] = []
        notes: list[Message] = []
        rows = self._read_rows(path, shown, mistakes)
        spreadsheet = self._owner(rows, mistakes)
        answers = self._read_answers(spreadsheet, rows, shown, mistakes, notes)
        parts = (tuple((one.place, one.problem, one.kind) for one in messages) for messages in (mistakes, notes))
        self.readings.used[key] = FileReading(key, spreadsheet.stem, answers, *parts)
        return self.readings.used[key]

    def _read_rows(self, path: Path, shown: str, mistakes: list[Message]) -> list[ReturnedRow]:
        answers = answer_columns(self.round.questions, "en", per_label=True)
        required = ["row", *(column.key for column in answers)]
        return read_xlsx(path, shown, required, mistakes)

    def _is_unchanged(self, row: ReturnedRow) -> bool:
        """Return whether the row's code is known and its texts are those that were published."""
        code, checksum = row.code
        texts = [str(row.values.get(key, "")) for key in CHECKED]
        return code in self._codes and checksum == self.round.checksum(code, texts)

    def _owner(self, rows: Sequence[ReturnedRow], mistakes: Sequence[Message]) -> Spreadsheet:
        """Return the spreadsheet of most of a file's rows: single rows may be inserted from another one.

        Raises:
            RoundError: no row tells whose file it is, or as many rows are of one spreadsheet as of another.
        """
        owners = [self._codes[row.code[0]][0] for row in rows if row.code[0] in self._codes]
        counts = Counter(spreadsheet.stem for spreadsheet in owners).most_common()
        if not counts:
            # A missing column explains why there are no rows.
            problems = [one.problem for one in mistakes if one.kind != OUTSIDE]
            problems.append(
                f"no row belongs to the round {self.round.name!r}, so nothing is read; is the file from another round, "
                "or was the column of row codes changed?"
            )
            raise RoundError(problems[0])
        if len(counts) > 1 and counts[0][1] == counts[1][1]:
            stems = ", ".join(stem for stem, _ in counts)
            raise RoundError(f"the file contains rows of {stems}, so nothing is read; use one file for each")
        return next(one for one in owners if one.stem == counts[0][0])

    def _read_answers(
        self,
        spreadsheet: Spreadsheet,
        rows: Sequence[ReturnedRow],
        shown: str,
        mistakes: list[Message],
        notes: list[Message],
    ) -> dict[str, RowAnnotations]:
        choices = Choices(self.round.questions, spreadsheet.language)
        answers: dict[str, RowAnnotations] = {}
        typed: dict[str, Mapping[str, CellValue]] = {}
        for row in rows:
            owner, assignment = self._codes.get(row.code[0], (None, None))
            if owner is None or assignment is None or owner.stem != spreadsheet.stem:
                problem = f"a row of {owner.stem}" if owner else "the row's code was changed"
                mistakes.append(Message(row.where, f"{problem}; {_UNDO}"))
                continue
            item = assignment.item
            given = {key: value for key, value in row.values.items() if key not in _NOT_ANSWERS}
            unchanged = self._is_unchanged(row)
            # A copied row that is blank, or says the same, changes nothing.
            if item in typed and (not given or (unchanged and given == typed[item])):
                continue
            kind = ""
            if typed.get(item):
                kind = "the row of item {} occurs twice"
            elif not unchanged:
                kind = "the text of item {} was changed (edited, or sorted without its row)"
            if kind:
                mistakes.append(Message(row.where, f"{kind.format(assignment.place)}; {_UNDO}", kind))
                answers[item] = RowAnnotations("unread")
            else:
                answers[item] = read_row(choices, self.round.items[item], given, row.cell, mistakes, notes)
            typed[item] = given
        missing = [one.place for one in spreadsheet.assignments if one.item not in answers]
        if missing:
            problem = f"the row of item {listed(missing)} is missing; undo the change, or use a new file"
            mistakes.append(Message(shown, problem, "missing rows"))
        return answers


def _changed_at(path: Path) -> str:
    """Return when a file was changed; the current time if that is in the future."""
    changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    return min(changed, datetime.datetime.now(datetime.UTC)).isoformat(timespec="seconds")
