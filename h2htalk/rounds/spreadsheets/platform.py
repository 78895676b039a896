"""The platform `spreadsheets`: files that the manager sends to annotators and puts back when they return."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from h2htalk.data.files import write_problem
from h2htalk.errors import DataError, MissingExtraError, RoundError, counted
from h2htalk.progress import Progress
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.platforms import Collected
from h2htalk.rounds.questions import Value
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.spreadsheets.assigned_files import Spreadsheet, SpreadsheetRound, read_spreadsheet_round
from h2htalk.rounds.spreadsheets.csv_format import write_csv, write_csv_guidelines
from h2htalk.rounds.spreadsheets.returned_files import ReturnedFiles
from h2htalk.rounds.spreadsheets.xlsx_reading import check_archive
from h2htalk.rounds.spreadsheets.xlsx_writing import write_workbook

# Seconds of writing without a progress line.
_SILENT = 3.0
# Items that a note names.
_MAX_NAMED = 5


class SpreadsheetPlatform:
    """Spreadsheets `NAME.xlsx` or `NAME.csv` in `ROUND/spreadsheets`; those of later sets are `NAME-2.xlsx`, ..."""

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
        _protect(round.folder)
        existing = {_comparable(path.name) for path in round.folder.glob("*")}
        active = [spreadsheet for spreadsheet in round.spreadsheets if spreadsheet.annotator.active]
        if round.format == "csv":
            for language, spreadsheet in {spreadsheet.language: spreadsheet for spreadsheet in active}.items():
                path = round.folder / f"guidelines-{language}.txt"
                write_csv_guidelines(round, spreadsheet, folder.guidelines(language), path)
        due = [one for one in active if _comparable(f"{one.stem}.{round.format}") not in existing]
        with Progress("spreadsheets", len(due), silent=_SILENT) as progress:
            for spreadsheet in due:
                path = round.folder / f"{spreadsheet.stem}.{round.format}"
                if round.format == "csv":
                    write_csv(round, spreadsheet, path, round.folder / f"{spreadsheet.stem}.texts.txt")
                else:
                    _write_workbook_atomically(round, spreadsheet, folder.guidelines(spreadsheet.language), path)
                progress.advance()
        _protect(round.folder)
        annotators = len({spreadsheet.annotator.id for spreadsheet in round.spreadsheets})
        messages = [
            f"{counted(len(round.spreadsheets), 'spreadsheet')} for {counted(annotators, 'annotator')} in "
            f"{round.folder}, {len(due):,} of them new"
        ]
        if due:
            texts = " and the .txt files" if round.format == "csv" else ""
            messages.append(f"send each annotator their spreadsheet{texts}; put returned files into that folder")
        return messages

    def collect(self, folder: RoundFolder) -> Collected:
        """Read all spreadsheets. Raise RoundError, DataError.

        A complete row replaces stored annotations, and so does a skipped one. An empty row withdraws them if the file
        has other rows that are filled in. They stay if the row is incomplete, mistaken or unreadable, or the file is
        blank.
        """
        round = read_spreadsheet_round(folder)
        returned = ReturnedFiles(round)
        # A partly opened round may lack files that nobody got.
        published = folder.state != "partly opened"
        if not round.folder.is_dir():
            missing = f"{round.folder}: folder not found; restore the returned spreadsheets"
            return Collected(notes=(missing,) if published else ())
        _protect(round.folder)
        try:
            paths = sorted(round.folder.iterdir())
        except OSError as error:
            raise RoundError(f"{round.folder}: cannot be read: {error.strerror or error}") from error
        for path in paths:
            returned.read(path)
        absent = [one.stem for one in round.spreadsheets if one.annotator.active and one.stem not in returned.files]
        if absent and published:
            returned.notes.append(f"{round.folder}: no file of {', '.join(absent)}; restore it to have it read")
        stored = folder.annotations()
        annotated = {(item, annotator) for item, annotator, _ in stored}
        annotations: list[Annotation] = []
        started: set[tuple[str, str]] = set()
        for spreadsheet in round.spreadsheets:
            file = returned.filled_in(spreadsheet)
            rows = file.rows if file else {}
            unreadable: list[int] = []
            withdrawn = 0
            for number, assignment in enumerate(spreadsheet.assignments, 1):
                pair = assignment.item, spreadsheet.annotator.id
                row = rows.get(assignment.item)
                if row and row.state == "partial":
                    started.add(pair)
                if file and row and row.state in ("answered", "empty"):
                    new = _row_annotations(round.name, *pair, row.answers, file.when, stored)
                    withdrawn += not row.answers and bool(new)
                    annotations += new
                elif pair in annotated:
                    unreadable.append(number)
            if withdrawn:
                returned.notes.append(
                    f"{spreadsheet.stem}: {counted(withdrawn, 'item')} annotated earlier and now empty; those "
                    "annotations do not count any more"
                )
            if unreadable and spreadsheet.stem in returned.files:
                returned.notes.append(f"{spreadsheet.stem}: {_describe_unreadable(unreadable)}")
        notes = tuple(returned.notes)
        return Collected(tuple(annotations), tuple(returned.mistakes), notes, frozenset(started))

    def close(self, folder: RoundFolder) -> list[str]:
        """Return a message: files cannot be closed."""
        return [
            f"later changes in {folder.path / 'spreadsheets'} are not read unless the round is reopened; tell the "
            "annotators"
        ]


def _row_annotations(
    round: str,
    item: str,
    annotator: str,
    answers: Mapping[str, Value],
    when: str,
    stored: Mapping[tuple[str, str, str], Annotation],
) -> list[Annotation]:
    """Return a row's annotations: unchanged ones keep their time, missing ones are withdrawn."""
    annotations = []
    for question, value in answers.items():
        old = stored.get((item, annotator, question))
        time = old.when if old and old.value == value else when
        annotations.append(Annotation(round, item, annotator, question, value, time))
    missing = [key[2] for key in stored if key[:2] == (item, annotator) and key[2] not in answers]
    return annotations + [Annotation(round, item, annotator, question, None, when) for question in missing]


def _describe_unreadable(numbers: list[int]) -> str:
    listed = ", ".join(map(str, numbers[:_MAX_NAMED]))
    more = f" and {len(numbers) - _MAX_NAMED} more" if len(numbers) > _MAX_NAMED else ""
    return (
        f"{counted(len(numbers), 'item')} annotated earlier cannot be read now (item {listed}{more}); the earlier "
        "annotations count until the rows are complete, skipped, or emptied in a file that is filled in"
    )


def _protect(folder: Path) -> None:
    """Create the folder, and let only the owner read it and its files. Raise DataError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        for path in folder.iterdir():
            if path.is_file() and not path.is_symlink():
                # A file of another user is protected by the folder.
                with suppress(PermissionError):
                    path.chmod(0o600)
    except OSError as error:
        raise DataError(f"{folder}: {write_problem(error)}") from error


def _comparable(name: str) -> str:
    """Normalise a file name: some file systems ignore case, some decompose accents."""
    return unicodedata.normalize("NFC", name).casefold()


def _write_workbook_atomically(round: SpreadsheetRound, spreadsheet: Spreadsheet, guidelines: str, path: Path) -> None:
    """Write a workbook completely or not at all.

    The round is locked, so a temporary name of its own is enough: the next write replaces an interrupted one.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        write_workbook(round, spreadsheet, guidelines, temporary)
        check_archive(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    except RoundError as error:
        raise RoundError(f"{path}: {error}; open rounds of fewer items") from error
    finally:
        temporary.unlink(missing_ok=True)
