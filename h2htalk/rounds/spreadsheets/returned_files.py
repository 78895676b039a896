"""What lies in the ballots' folder: whose each file is, which its rows say, and what is said of each item.

A file is known by the codes of its rows, whatever it is called. Of one voter one file counts, the one that is filled
in: a blank copy beside it says nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.errors import RoundError
from h2htalk.rounds.spreadsheets.assigned_files import Ballot, BallotRound
from h2htalk.rounds.spreadsheets.columns import SEALED, answer_columns
from h2htalk.rounds.spreadsheets.csv_format import read_csv
from h2htalk.rounds.spreadsheets.returned_rows import ReturnedRow
from h2htalk.rounds.spreadsheets.row_answers import Choices, Reading, read_row
from h2htalk.rounds.spreadsheets.xlsx_reading import read_xlsx
from h2htalk.text.escaping import printable

# Forms in which a filled-in file may come back: named as mistakes where they are not the round's, never left out.
_SPREADSHEETS = (".xlsx", ".csv", ".tsv", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".et", ".zip", ".rar")
_OF_THE_SYSTEM = ("thumbs.db", "desktop.ini", "icon\r")
# Columns in which nobody answers.
_GIVEN = ("row", "item", "sitting", "choices", *SEALED)
_AGAIN = "undo that, or take a fresh file. This row is not read"


@dataclass(frozen=True, slots=True)
class ReturnedFile:
    """A file of ours: its name in messages, when it was changed, and what it says of each item."""

    shown: str
    when: str
    rows: Mapping[str, Reading]

    @property
    def filled(self) -> bool:
        return any(row.state not in ("empty", "unread") for row in self.rows.values())


@dataclass(slots=True)
class ReturnedFiles:
    """What was found in the folder."""

    known: BallotRound
    mistakes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # By a ballot's stem.
    files: dict[str, list[ReturnedFile]] = field(default_factory=dict)
    _codes: dict[str, tuple[Ballot, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for ballot in self.known.ballots:
            for number, one in enumerate(ballot.seats, 1):
                self._codes[self.known.code(ballot, one.item)] = ballot, number

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
        ballot = None
        try:
            rows = self._rows(path, shown, mistakes)
            ballot = self._owner(rows)
            read = self._readings(ballot, rows, shown, mistakes)
            self.files.setdefault(ballot.stem, []).append(ReturnedFile(shown, _changed_at(path), read))
        except RoundError as error:
            mistakes.append(f"{shown}: {error}")
        except OSError as error:
            told = f"cannot be read: {error.strerror or error}; is it open in another program?"
            mistakes.append(f"{shown}: {told}")
        # Who left the round mends nothing any more; closing must not wait for them.
        left = ballot is not None and not ballot.voter.here
        (self.notes if left else self.mistakes).extend(mistakes)

    def filled_in(self, ballot: Ballot) -> ReturnedFile | None:
        """The file of a ballot that says something; none where two do, which is a mistake."""
        filled = [file for file in self.files.get(ballot.stem, ()) if file.filled]
        if len(filled) > 1:
            self.mistakes.append(
                f"{', '.join(file.shown for file in filled)}: all are filled in by {ballot.stem}; leave the one that "
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

    def _owner(self, rows: Sequence[ReturnedRow]) -> Ballot:
        """Whose file it is. Raises RoundError where no row tells, or rows are of several."""
        found = [self._codes[row.code[0]][0] for row in rows if row.code[0] in self._codes]
        owners = {ballot.stem: ballot for ballot in found}
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
        self, ballot: Ballot, rows: Sequence[ReturnedRow], shown: str, mistakes: list[str]
    ) -> dict[str, Reading]:
        choices = Choices(self.known.questions, ballot.language)
        found: dict[str, Reading] = {}
        for row in rows:
            if row.code[0] not in self._codes:
                mistakes.append(f"{row.where}: the row's code was changed; {_AGAIN}")
                continue
            number = self._codes[row.code[0]][1]
            item = ballot.seats[number - 1].item
            wrong = None
            if item in found:
                wrong = f"the row of item {number} stands here a second time"
            elif not self._is_intact(row):
                wrong = f"the text of item {number} is not the one that went out (edited, or sorted in part)"
            if wrong:
                mistakes.append(f"{row.where}: {wrong}; {_AGAIN}")
                found[item] = Reading("unread")
            else:
                given = {key: value for key, value in row.values.items() if key not in _GIVEN}
                found[item] = read_row(choices, self.known.items[item], given, row.cell, mistakes, self.notes)
        gone = [str(number) for number, one in enumerate(ballot.seats, 1) if one.item not in found]
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
