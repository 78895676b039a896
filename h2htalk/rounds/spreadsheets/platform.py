"""The platform `spreadsheets`: files that the manager sends to annotators and puts back when they return."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from pathlib import Path

from h2htalk.data.files import remove_file, replacing
from h2htalk.errors import MissingExtraError, RoundError, counted, listed
from h2htalk.progress import Progress
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.platforms import Collected, Message
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder, protect_folder
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound, read_spreadsheet_round
from h2htalk.rounds.spreadsheets.returned_files import STORED_READINGS, ReturnedFiles
from h2htalk.rounds.spreadsheets.xlsx_reading import check_archive, remove_rows
from h2htalk.rounds.spreadsheets.xlsx_writing import write_workbook

# Seconds of writing without a progress line.
_SILENT = 3.0


class SpreadsheetPlatform:
    """Spreadsheets `NAME.xlsx` in `ROUND/spreadsheets`; those of later sets are `NAME-2.xlsx`, ..."""

    assigns_items = True

    def check(self, folder: RoundFolder) -> None:
        """Raise MissingExtraError without openpyxl, RoundError if the folder's path is not a folder."""
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            raise MissingExtraError("making spreadsheets", 'pip install "h2htalk[rounds]"') from None
        path = folder.path / "spreadsheets"
        if path.exists() and not path.is_dir():
            raise RoundError(f"{path}: must be a folder for the spreadsheets; move the file away")

    def publish(self, folder: RoundFolder) -> list[str]:
        """Write missing spreadsheets; existing ones may contain answers and do not change."""
        round = read_spreadsheet_round(folder)
        protect_folder(round.folder)
        existing = {_comparable(path.name) for path in round.folder.glob("*")}
        active = [spreadsheet for spreadsheet in round.spreadsheets if spreadsheet.annotator.active]
        due = [one for one in active if _comparable(f"{one.stem}.xlsx") not in existing]
        with Progress("spreadsheets", len(due), silent=_SILENT) as progress:
            for spreadsheet in due:
                path = round.folder / f"{spreadsheet.stem}.xlsx"
                _write_workbook_atomically(round, spreadsheet, folder.guidelines(spreadsheet.language), path)
                progress.advance()
        protect_folder(round.folder)
        annotators = len({spreadsheet.annotator.id for spreadsheet in round.spreadsheets})
        messages = [
            f"{counted(len(round.spreadsheets), 'spreadsheet')} for {counted(annotators, 'annotator')} in "
            f"{round.folder}, {len(due):,} of them new"
        ]
        if due:
            messages.append("send each annotator their spreadsheet; put returned files into that folder")
        return messages

    def collect(self, folder: RoundFolder) -> Collected:
        """Read all spreadsheets. Raise RoundError, DataError.

        A complete row replaces stored annotations, and so does a skipped one. An empty row withdraws them if the file
        has other rows that are filled in. They stay if the row is incomplete, mistaken or unreadable, or the file is
        blank.
        """
        round = read_spreadsheet_round(folder)
        returned = ReturnedFiles(folder, round)
        # A partly opened round may lack files that nobody got.
        published = folder.state != "partly opened"
        if not round.folder.is_dir():
            missing = f"{round.folder}: folder not found; restore the returned spreadsheets"
            return Collected(notes=(missing,) if published else ())
        protect_folder(round.folder)
        try:
            paths = sorted(round.folder.iterdir())
        except OSError as error:
            raise RoundError(f"{round.folder}: cannot be read: {error.strerror or error}") from error
        for path in paths:
            returned.read(path)
        returned.save()
        folder.protect()
        absent = [one.stem for one in round.spreadsheets if one.annotator.active and one.code not in returned.files]
        if absent and published:
            problem = f"no file of {', '.join(absent)}; restore it to have it read"
            returned.notes.append(Message(str(round.folder), problem))
        stored = folder.stored_annotations()
        annotated = {(item, annotator) for item, annotator, _ in stored}
        questions = [*(question.name for question in round.questions), SKIPPED]
        annotations: list[Annotation] = []
        started: set[tuple[str, str]] = set()
        for spreadsheet in round.spreadsheets:
            file = returned.filled_in(spreadsheet)
            rows = file.rows if file else {}
            unreadable: list[int] = []
            withdrawn = 0
            for assignment in spreadsheet.assignments:
                pair = assignment.item, spreadsheet.annotator.id
                row = rows.get(assignment.item)
                if row and row.state == "partial":
                    started.add(pair)
                if file and row and row.state in ("answered", "empty"):
                    withdrawn += not row.answers and pair in annotated
                    annotations += [
                        Annotation(round.name, *pair, question, row.answers.get(question), file.when)
                        for question in questions
                        if question in row.answers or (*pair, question) in stored
                    ]
                elif pair in annotated:
                    unreadable.append(assignment.place)
            if withdrawn:
                items = counted(withdrawn, "item")
                problem = f"{items} annotated earlier and now empty; those annotations do not count any more"
                returned.notes.append(Message(spreadsheet.stem, problem, "emptied"))
            if unreadable and spreadsheet.code in returned.files:
                problem = (
                    f"{counted(len(unreadable), 'item')} annotated earlier cannot be read now (item "
                    f"{listed(unreadable)}); the earlier annotations count until the rows are complete, skipped, or "
                    "emptied in a file that is filled in"
                )
                returned.notes.append(Message(spreadsheet.stem, problem, "unreadable"))
        notes = tuple(returned.notes)
        return Collected(tuple(annotations), tuple(returned.mistakes), notes, frozenset(started))

    def close(self, folder: RoundFolder) -> list[str]:
        """Return a message: files cannot be closed."""
        return [
            f"later changes in {folder.path / 'spreadsheets'} are not read unless the round is reopened; tell the "
            "annotators"
        ]

    def erase(self, folder: RoundFolder, items: Collection[str]) -> list[str]:
        """Remove the rows of erased items from all files."""
        remove_file(folder.private / STORED_READINGS)  # they hold comments
        round, messages = read_spreadsheet_round(folder), []
        if round.folder.is_dir():
            for path in sorted(path for path in round.folder.rglob("*") if path.is_file()):
                problem = ""
                if path.suffix.lower() == ".xlsx":
                    try:
                        remove_rows(path, round)
                    except (RoundError, OSError) as error:
                        problem = f": {error}"
                elif path.name.startswith((".~", "~$")):
                    continue
                if problem or path.suffix.lower() != ".xlsx":
                    messages.append(
                        f"{path}: not searched for erased items{problem}; delete it, or remove them by hand"
                    )
            protect_folder(round.folder)
        names = sorted({round.annotators[one].name for gone in folder.erased_items() for one in gone.given_to})
        if names:
            messages.append(
                f"spreadsheets with erased items were sent to {', '.join(names)}: ask them to delete their copies; a "
                f"file that comes back loses these rows with the next `h2htalk round status {folder.path}`"
            )
        return messages


def _comparable(name: str) -> str:
    """Normalise a file name: some file systems ignore case, some decompose accents."""
    return unicodedata.normalize("NFC", name).casefold()


def _write_workbook_atomically(round: SpreadsheetRound, spreadsheet: Spreadsheet, guidelines: str, path: Path) -> None:
    """Write a workbook that can be read back, completely or not at all. Raise RoundError, DataError."""
    try:
        with replacing(path) as temporary:
            write_workbook(round, spreadsheet, guidelines, temporary)
            check_archive(temporary)
    except RoundError as error:
        raise RoundError(f"{path}: {error}; open rounds of fewer items") from error
