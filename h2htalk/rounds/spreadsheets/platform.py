"""The spreadsheets platform: a spreadsheet an annotator, sent and collected by whatever means people have."""

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

# Seconds of writing that need no line of progress.
_QUICK = 3.0
# Of items in a note so many are named one by one.
_NAMED = 5


class SpreadsheetPlatform:
    """Spreadsheets in `ROUND/spreadsheets`: `NAME.xlsx` or `NAME.csv`, as the round says; of a later assignment set
    `NAME-2.xlsx`.
    """

    assigns_items = True

    def check(self, round: RoundFolder) -> None:
        """Raise MissingExtraError without openpyxl, RoundError where the spreadsheets' folder is none."""
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            raise MissingExtraError("making spreadsheets", 'pip install "h2htalk[rounds]"') from None
        folder = round.path / "spreadsheets"
        if folder.exists() and not folder.is_dir():
            raise RoundError(f"{folder}: must be a folder: the spreadsheets go there; move that file away")

    def publish(self, round: RoundFolder) -> list[str]:
        """Write every spreadsheet that is not there yet; one that is there may hold answers, and is never touched."""
        known = read_spreadsheet_round(round)
        _protect(known.folder)
        there = {_folded(path.name) for path in known.folder.glob("*")}
        asked = [spreadsheet for spreadsheet in known.spreadsheets if spreadsheet.annotator.here]
        if known.format == "csv":
            for language, spreadsheet in {spreadsheet.language: spreadsheet for spreadsheet in asked}.items():
                beside = known.folder / f"guidelines-{language}.txt"
                write_csv_guidelines(known, spreadsheet, round.guidelines(language), beside)
        due = [one for one in asked if _folded(f"{one.stem}.{known.format}") not in there]
        with Progress("spreadsheets", len(due), silent=_QUICK) as progress:
            for spreadsheet in due:
                path = known.folder / f"{spreadsheet.stem}.{known.format}"
                if known.format == "csv":
                    write_csv(known, spreadsheet, path, known.folder / f"{spreadsheet.stem}.texts.txt")
                else:
                    _write_whole(known, spreadsheet, round.guidelines(spreadsheet.language), path)
                progress.advance()
        _protect(known.folder)
        annotators = len({spreadsheet.annotator.id for spreadsheet in known.spreadsheets})
        lines = [
            f"{counted(len(known.spreadsheets), 'spreadsheet')} of {counted(annotators, 'annotator')} "
            f"in {known.folder}, "
            f"{len(due):,} of them new"
        ]
        if due:
            with_it = ", with the .txt files beside it," if known.format == "csv" else ""
            lines.append(f"send each annotator theirs{with_it} and put what comes back into that folder")
        return lines

    def collect(self, round: RoundFolder, *, whole: bool = False) -> Collected:
        """What the spreadsheets hold now; they are always read whole. Raises RoundError, DataError.

        What becomes of an answer that is stored when its row is changed later: a whole row replaces it, and so does
        Skip, whatever stands beside it; a row that was emptied, in a file with a row that somebody filled in, takes it
        back; where the row is half filled, mistaken or not to be read, or nothing in the file is filled in, it stays.
        """
        known = read_spreadsheet_round(round)
        found = ReturnedFiles(known)
        # Where opening was refused or broken off, nobody has missed a spreadsheet yet.
        went_out = round.state != "half opened"
        if not known.folder.is_dir():
            gone = f"{known.folder}: no spreadsheets there; put back what came in"
            return Collected((), notes=(gone,) if went_out else ())
        _protect(known.folder)
        try:
            paths = sorted(known.folder.iterdir())
        except OSError as error:
            raise RoundError(f"{known.folder}: cannot be looked into: {error.strerror or error}") from error
        for path in paths:
            found.read(path)
        absent = [
            spreadsheet.stem
            for spreadsheet in known.spreadsheets
            if spreadsheet.annotator.here and spreadsheet.stem not in found.files
        ]
        if absent and went_out:
            found.notes.append(
                f"{known.folder}: no file there of {', '.join(absent)}; put it back to have it read"
            )
        stored = round.answers()
        answered = {(item, annotator) for item, annotator, _ in stored}
        answers: list[Annotation] = []
        started: dict[str, int] = {}
        for spreadsheet in known.spreadsheets:
            file = found.filled_in(spreadsheet)
            rows = file.rows if file else {}
            half = sum(row.state == "half" for row in rows.values())
            if half:
                started[spreadsheet.annotator.name] = started.get(spreadsheet.annotator.name, 0) + half
            kept: list[int] = []
            taken_back = 0
            for number, assignment in enumerate(spreadsheet.assignments, 1):
                row = rows.get(assignment.item)
                if file and row and row.state in ("answered", "empty"):
                    new = _as_answers(
                        known.name, assignment.item, spreadsheet, row.answers, file.when, stored
                    )
                    taken_back += not row.answers and bool(new)
                    answers += new
                elif (assignment.item, spreadsheet.annotator.id) in answered:
                    kept.append(number)
            if taken_back:
                found.notes.append(
                    f"{spreadsheet.stem}: {taken_back:,} of the items answered before are empty now; "
                    "those answers count no "
                    "more"
                )
            if kept and spreadsheet.stem in found.files:
                found.notes.append(f"{spreadsheet.stem}: {_kept(kept)}")
        return Collected(tuple(answers), tuple(found.mistakes), tuple(found.notes), started)

    def close(self, round: RoundFolder) -> list[str]:
        """Nothing can be closed in a file; say so."""
        return [
            f"what is changed in {round.path / 'spreadsheets'} from now on is not read unless the "
            "round is opened again; "
            "tell the annotators"
        ]


def _as_answers(
    round: str,
    item: str,
    spreadsheet: Spreadsheet,
    values: Mapping[str, Value],
    when: str,
    stored: Mapping[tuple[str, str, str], Annotation],
) -> list[Annotation]:
    """Answers of one row; one that is stored with the same value keeps its time, one that is gone is taken back."""
    annotator = spreadsheet.annotator.id
    made = []
    for question, value in values.items():
        old = stored.get((item, annotator, question))
        made.append(
            Annotation(
                round, item, annotator, question, value, old.when if old and old.value == value else when
            )
        )
    gone = [key for key in stored if key[:2] == (item, annotator) and key[2] not in values]
    return made + [Annotation(round, item, annotator, question, None, when) for _, _, question in gone]


def _kept(numbers: list[int]) -> str:
    listed = ", ".join(map(str, numbers[:_NAMED]))
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return (
        f"{counted(len(numbers), 'item')} answered before cannot be read now (item {listed}{more}); the earlier "
        "answers still count, until the rows are whole, skipped, or emptied in a file that is filled in"
    )


def _protect(folder: Path) -> None:
    """Close the spreadsheets, and the folder they lie in, to everybody but their owner. Raises DataError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        for path in folder.iterdir():
            if path.is_file() and not path.is_symlink():
                # One that somebody else put there is theirs to close; the folder keeps others out.
                with suppress(PermissionError):
                    path.chmod(0o600)
    except OSError as error:
        raise DataError(f"{folder}: {write_problem(error)}") from error


def _folded(name: str) -> str:
    """A file's name as file systems compare it: some keep no case, some write accents apart."""
    return unicodedata.normalize("NFC", name).casefold()


def _write_whole(known: SpreadsheetRound, spreadsheet: Spreadsheet, guidelines: str, path: Path) -> None:
    """Write a workbook so that it is there whole or not at all.

    The round is locked while it is written, so that a name of its own is enough: what a killed write left there is
    written over by the next one.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        write_workbook(known, spreadsheet, guidelines, temporary)
        check_archive(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    except RoundError as error:
        raise RoundError(f"{path}: {error}; open rounds of fewer items") from error
    finally:
        temporary.unlink(missing_ok=True)
