"""The files in the spreadsheets' folder: whose they are, and the answers of their rows.

A file is identified by the codes of its rows, whatever its name is. One file of each spreadsheet counts, the one that
is filled in; blank copies are ignored.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.errors import RoundError
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.columns import CHECKED, answer_columns
from h2htalk.rounds.spreadsheets.csv_format import read_csv
from h2htalk.rounds.spreadsheets.returned_rows import ReturnedRow
from h2htalk.rounds.spreadsheets.row_answers import Choices, RowAnnotations, read_row
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
    mistakes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: dict[str, list[ReturnedFile]] = field(default_factory=dict)
    _codes: dict[str, tuple[Spreadsheet, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for spreadsheet in self.round.spreadsheets:
            for number, one in enumerate(spreadsheet.assignments, 1):
                self._codes[self.round.row_code(spreadsheet, one.item)] = spreadsheet, number

    def read(self, path: Path) -> None:
        """Read a file, or add a message that says why not."""
        shown = f"{self.round.folder.name}/{printable(path.name)}"
        name, suffix = path.name.lower(), path.suffix.lower()
        guidelines = name.startswith("guidelines-") and name.endswith(".txt")
        if name.startswith((".", "~$")) or name in _SYSTEM_FILES or guidelines or name.endswith(".texts.txt"):
            return
        if suffix != f".{self.round.format}" or not path.is_file():
            message = f"{shown}: not read; the files of this round are .{self.round.format} files"
            (self.mistakes if suffix in _SPREADSHEETS else self.notes).append(message)
            return
        mistakes: list[str] = []
        spreadsheet = None
        try:
            rows = self._read_rows(path, shown, mistakes)
            spreadsheet = self._owner(rows)
            answers = self._read_answers(spreadsheet, rows, shown, mistakes)
            file = ReturnedFile(shown, _changed_at(path), answers)
            self.files.setdefault(spreadsheet.stem, []).append(file)
        except RoundError as error:
            mistakes.append(f"{shown}: {error}")
        except OSError as error:
            reason = error.strerror or error
            mistakes.append(f"{shown}: cannot be read: {reason}; close it if it is open in another program")
        # Annotators who left do not correct mistakes, so these must not prevent closing.
        left = spreadsheet is not None and not spreadsheet.annotator.active
        (self.notes if left else self.mistakes).extend(mistakes)

    def filled_in(self, spreadsheet: Spreadsheet) -> ReturnedFile | None:
        """Return the file of a spreadsheet that is filled in; None if there is none, or several (a mistake)."""
        filled = [file for file in self.files.get(spreadsheet.stem, ()) if file.is_filled_in]
        if len(filled) > 1:
            self.mistakes.append(
                f"{', '.join(file.shown for file in filled)}: several files of {spreadsheet.stem} are filled in, so "
                "none is read; keep the one that counts, and move the others away"
            )
        return filled[0] if len(filled) == 1 else None

    def _read_rows(self, path: Path, shown: str, mistakes: list[str]) -> list[ReturnedRow]:
        is_workbook = self.round.format == "xlsx"
        answers = answer_columns(self.round.questions, "en", per_label=is_workbook)
        required = ["row", *(column.key for column in answers)]
        if is_workbook:
            return read_xlsx(path, shown, required, mistakes)
        return read_csv(path, shown, required, mistakes, self._is_unchanged)

    def _is_unchanged(self, row: ReturnedRow) -> bool:
        """Return whether the row's code is known and its texts are those that were published."""
        code, checksum = row.code
        texts = [str(row.values.get(key, "")) for key in CHECKED]
        return code in self._codes and checksum == self.round.checksum(code, texts)

    def _owner(self, rows: Sequence[ReturnedRow]) -> Spreadsheet:
        """Return the spreadsheet of a file; raise RoundError if no row tells, or rows are of several."""
        spreadsheets = [self._codes[row.code[0]][0] for row in rows if row.code[0] in self._codes]
        stems = list(dict.fromkeys(spreadsheet.stem for spreadsheet in spreadsheets))
        if not stems:
            raise RoundError(
                f"no row belongs to the round {self.round.name!r}, so nothing is read; is the file from another round, "
                "or was the column of row codes changed?"
            )
        if len(stems) > 1:
            raise RoundError(f"the file contains rows of {', '.join(stems)}, so nothing is read; use one file for each")
        return spreadsheets[0]

    def _read_answers(
        self, spreadsheet: Spreadsheet, rows: Sequence[ReturnedRow], shown: str, mistakes: list[str]
    ) -> dict[str, RowAnnotations]:
        choices = Choices(self.round.questions, spreadsheet.language)
        answers: dict[str, RowAnnotations] = {}
        for row in rows:
            if row.code[0] not in self._codes:
                mistakes.append(f"{row.where}: the row's code was changed; {_UNDO}")
                continue
            number = self._codes[row.code[0]][1]
            item = spreadsheet.assignments[number - 1].item
            problem = None
            if item in answers:
                problem = f"the row of item {number} occurs twice"
            elif not self._is_unchanged(row):
                problem = f"the text of item {number} was changed (edited, or sorted without its row)"
            if problem:
                mistakes.append(f"{row.where}: {problem}; {_UNDO}")
                answers[item] = RowAnnotations("unread")
            else:
                given = {key: value for key, value in row.values.items() if key not in _NOT_ANSWERS}
                answers[item] = read_row(choices, self.round.items[item], given, row.cell, mistakes, self.notes)
        missing = [str(n) for n, one in enumerate(spreadsheet.assignments, 1) if one.item not in answers]
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            items = f"{', '.join(missing[:5])}{more}"
            mistakes.append(f"{shown}: the row of item {items} is missing; undo the change, or use a new file")
        return answers


def _changed_at(path: Path) -> str:
    """Return when a file was changed; the current time if that is in the future."""
    changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    return min(changed, datetime.datetime.now(datetime.UTC)).isoformat(timespec="seconds")
