"""What lies in the spreadsheets' folder: whose each file is, which its rows say, and what is said of each item.

A file is known by the codes of its rows, whatever it is called. Of one annotator one file counts, the one that is
filled
in: a blank copy beside it says nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.errors import RoundError
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound
from h2htalk.rounds.spreadsheets.columns import SEALED, answer_columns
from h2htalk.rounds.spreadsheets.csv_format import read_csv
from h2htalk.rounds.spreadsheets.returned_rows import ReturnedRow
from h2htalk.rounds.spreadsheets.row_answers import Choices, RowAnnotations, read_row
from h2htalk.rounds.spreadsheets.xlsx_reading import read_xlsx
from h2htalk.text.escaping import printable

# Forms in which a filled-in file may come back: named as mistakes where they are not the round's, never left out.
_SPREADSHEETS = (".xlsx", ".csv", ".tsv", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".et", ".zip", ".rar")
_OF_THE_SYSTEM = ("thumbs.db", "desktop.ini", "icon\r")
# Columns in which nobody answers.
_GIVEN = ("row", "item", "session", "choices", *SEALED)
_AGAIN = "undo that, or take a fresh file. This row is not read"


@dataclass(frozen=True, slots=True)
class ReturnedFile:
    """A file of ours: its name in messages, when it was changed, and what it says of each item."""

    shown: str
    when: str
    rows: Mapping[str, RowAnnotations]

    @property
    def filled(self) -> bool:
        return any(row.state not in ("empty", "unread") for row in self.rows.values())


@dataclass(slots=True)
class ReturnedFiles:
    """What was found in the folder."""

    known: SpreadsheetRound
    mistakes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # By a spreadsheet's stem.
    files: dict[str, list[ReturnedFile]] = field(default_factory=dict)
    _codes: dict[str, tuple[Spreadsheet, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for spreadsheet in self.known.spreadsheets:
            for number, one in enumerate(spreadsheet.assignments, 1):
                self._codes[self.known.code(spreadsheet, one.item)] = spreadsheet, number

    def read(self, path: Path) -> None:
        """Read a file, or say why not."""
        shown = f"{self.known.folder.name}/{printable(path.name)}"
        name, suffix = path.name.lower(), path.suffix.lower()
        ours = name.endswith(".texts.txt") or (name.startswith("guidelines-") and name.endswith(".txt"))
        if name.startswith((".", "~$")) or name in _OF_THE_SYSTEM or ours:
            return
        if suffix != f".{self.known.format}" or not path.is_file():
            told = f"{shown}: is not read; this round's files are .{self.known.format} files"
            (self.mistakes if suffix in _SPREADSHEETS else self.notes).append(told)
            return
        mistakes: list[str] = []
        spreadsheet = None
        try:
            rows = self._rows(path, shown, mistakes)
            spreadsheet = self._owner(rows)
            read = self._readings(spreadsheet, rows, shown, mistakes)
            self.files.setdefault(spreadsheet.stem, []).append(ReturnedFile(shown, _changed_at(path), read))
        except RoundError as error:
            mistakes.append(f"{shown}: {error}")
        except OSError as error:
            told = f"cannot be read: {error.strerror or error}; is it open in another program?"
            mistakes.append(f"{shown}: {told}")
        # Who left the round mends nothing any more; closing must not wait for them.
        left = spreadsheet is not None and not spreadsheet.annotator.here
        (self.notes if left else self.mistakes).extend(mistakes)

    def filled_in(self, spreadsheet: Spreadsheet) -> ReturnedFile | None:
        """The file of a spreadsheet that says something; none where two do, which is a mistake."""
        filled = [file for file in self.files.get(spreadsheet.stem, ()) if file.filled]
        if len(filled) > 1:
            self.mistakes.append(
                f"{', '.join(file.shown for file in filled)}: all are filled in by "
                f"{spreadsheet.stem}; leave the one that "
                "counts, and move the others away. None of them is read"
            )
        return filled[0] if len(filled) == 1 else None

    def _rows(self, path: Path, shown: str, mistakes: list[str]) -> list[ReturnedRow]:
        workbook = self.known.format == "xlsx"
        answers = answer_columns(self.known.questions, "en", apart=workbook)
        required = ["row", *(column.key for column in answers)]
        if workbook:
            return read_xlsx(path, shown, required, mistakes)
        return read_csv(path, shown, required, mistakes, self._is_intact)

    def _is_intact(self, row: ReturnedRow) -> bool:
        code, seal = row.code
        texts = [str(row.values.get(key, "")) for key in SEALED]
        return code in self._codes and seal == self.known.seal(code, texts)

    def _owner(self, rows: Sequence[ReturnedRow]) -> Spreadsheet:
        """Whose file it is. Raises RoundError where no row tells, or rows are of several."""
        found = [self._codes[row.code[0]][0] for row in rows if row.code[0] in self._codes]
        owners = {spreadsheet.stem: spreadsheet for spreadsheet in found}
        if not owners:
            raise RoundError(
                f"no row of it is of the round {self.known.name!r} (is it of another round, or was its column of row "
                "codes changed?); nothing of it is read"
            )
        if len(owners) > 1:
            raise RoundError(
                f"it holds rows of {', '.join(owners)}; to each their own file. Nothing of it is read"
            )
        return found[0]

    def _readings(
        self, spreadsheet: Spreadsheet, rows: Sequence[ReturnedRow], shown: str, mistakes: list[str]
    ) -> dict[str, RowAnnotations]:
        choices = Choices(self.known.questions, spreadsheet.language)
        found: dict[str, RowAnnotations] = {}
        for row in rows:
            if row.code[0] not in self._codes:
                mistakes.append(f"{row.where}: the row's code was changed; {_AGAIN}")
                continue
            number = self._codes[row.code[0]][1]
            item = spreadsheet.assignments[number - 1].item
            wrong = None
            if item in found:
                wrong = f"the row of item {number} stands here a second time"
            elif not self._is_intact(row):
                wrong = f"the text of item {number} is not the one that went out (edited, or sorted in part)"
            if wrong:
                mistakes.append(f"{row.where}: {wrong}; {_AGAIN}")
                found[item] = RowAnnotations("unread")
            else:
                given = {key: value for key, value in row.values.items() if key not in _GIVEN}
                found[item] = read_row(choices, self.known.items[item], given, row.cell, mistakes, self.notes)
        gone = [str(number) for number, one in enumerate(spreadsheet.assignments, 1) if one.item not in found]
        if gone:
            more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
            mistakes.append(
                f"{shown}: the row of item {', '.join(gone[:5])}{more} is missing; undo that, or take a fresh file"
            )
        return found


def _changed_at(path: Path) -> str:
    """When a file was changed; now, where its clock was before ours."""
    changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    return min(changed, datetime.datetime.now(datetime.UTC)).isoformat(timespec="seconds")
