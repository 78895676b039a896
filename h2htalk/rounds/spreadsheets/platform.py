"""The platform `spreadsheets`: files that the manager sends to annotators and puts back when they return.

A file is identified by its code, whatever its name is. One file of each spreadsheet counts, the one that is filled in;
blank copies are ignored. What was read is stored, so that only new and changed files are parsed again.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import shutil
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import reading, remove_file, replacing, sha256_of, write_jsonl
from h2htalk.errors import ConfigError, DataError, RoundError, counted, listed
from h2htalk.progress import Progress
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.platforms import Collected, Message, Removal
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import SPREADSHEETS, RoundState, protect_folder, read_record_lines
from h2htalk.rounds.spreadsheets.codes import holds_code, spreadsheet_codes
from h2htalk.rounds.spreadsheets.xlsx_reading import (
    CellValue,
    RowAnnotations,
    check_archive,
    read_answers,
    read_xlsx,
)
from h2htalk.rounds.spreadsheets.xlsx_writing import (
    Spreadsheet,
    TypedAnswers,
    answer_columns,
    spreadsheets_of,
    write_workbook,
)
from h2htalk.text.escaping import printable
from h2htalk.version import __version__

# In the private folder. It may be deleted: everything is read again then.
STORED_READINGS = "read_spreadsheets.jsonl"
# Files of the round that determine what a spreadsheet means.
_CONTEXT = ("round.json", "items.jsonl", "assignment_sets.jsonl", "private/annotators.jsonl")
# Of how rows are read; another number reads every file again.
_RULES = "2"
# Suffixes of files that may be filled in: a mistake if they are not in the round's format.
_SPREADSHEETS = (
    ".xlsx",
    ".csv",
    ".tsv",
    ".xls",
    ".xlsm",
    ".xlsb",
    ".ods",
    ".numbers",
    ".et",
    ".zip",
    ".rar",
)
_CAME_BACK = (
    "a spreadsheet of an annotator who was erased from the round: deleted without being read"
)
_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "icon\r")
_UNDO = "undo the change, or use a new file. This row is not read"
# Characters of a text that may be in a comment by chance.
_SHORT_TEXT = 12
# Seconds of writing without a progress line.
_SILENT = 3.0


class SpreadsheetPlatform:
    """Spreadsheets `NAME.xlsx` in `ROUND/spreadsheets`; those of later sets are `NAME set 2.xlsx`, ..."""

    assigns_items = True

    def check(self, state: RoundState) -> None:
        """Raise RoundError if the folder's path is not a folder."""
        path = _folder(state)
        if path.exists() and not path.is_dir():
            raise RoundError(f"{path}: must be a folder for the spreadsheets; move the file away")

    def publish(self, state: RoundState) -> list[str]:
        """Write missing spreadsheets; existing ones may contain answers and do not change."""
        folder = _folder(state)
        spreadsheets = [one for one in spreadsheets_of(state).values() if one]
        protect_folder(folder)
        existing = {_comparable(path.name) for path in folder.glob("*")}
        due = [
            one
            for one in spreadsheets
            if one.annotator.active and _comparable(f"{one.stem}.xlsx") not in existing
        ]
        with Progress("spreadsheets", len(due), silent=_SILENT) as progress:
            for spreadsheet in due:
                _write(state, spreadsheet, folder / f"{spreadsheet.stem}.xlsx")
                progress.advance()
        protect_folder(folder)
        annotators = len({spreadsheet.annotator.id for spreadsheet in spreadsheets})
        messages = [
            f"{counted(len(spreadsheets), 'spreadsheet')} for {counted(annotators, 'annotator')} in {folder}, "
            f"{len(due):,} of them new"
        ]
        if due:
            messages.append(
                "send each annotator their spreadsheet; put returned files into that folder"
            )
        return messages

    def collect(self, state: RoundState) -> Collected:
        """Read all spreadsheets. Raise RoundError, DataError.

        A complete row replaces stored annotations, and so does a skipped one. An empty row withdraws them if the file
        has other rows that are filled in. They stay if the row is incomplete, mistaken or unreadable, or the file is
        blank. A row with some of the answers is begun, which is no mistake.
        """
        folder = _folder(state)
        returned = _ReturnedFiles(state)
        # A partly opened round may lack files that nobody got.
        published = state.phase != "partly opened"
        if not folder.is_dir():
            missing = f"{folder}: folder not found; restore the returned spreadsheets"
            return Collected(notes=(missing,) if published else ())
        protect_folder(folder)
        with reading(folder, RoundError):
            paths = sorted(folder.iterdir())
        for path in paths:
            returned.read(path)
        returned.save()
        spreadsheets = [one for one in returned.spreadsheets.values() if one]
        absent = [
            one.stem
            for one in spreadsheets
            if one.annotator.active and one.code not in returned.files
        ]
        if absent and published:
            problem = f"no file of {', '.join(absent)}; restore it to have it read"
            returned.notes.append(Message(str(folder), problem))
        annotated = {(item, annotator) for item, annotator, _ in state.stored}
        questions = [*(question.name for question in state.questions), SKIPPED]
        annotations: list[Annotation] = []
        started: set[tuple[str, str]] = set()
        for spreadsheet in spreadsheets:
            files = returned.files.get(spreadsheet.code, ())
            filled = [
                one
                for one in files
                if any(row.state not in ("empty", "unread") for row in one.rows.values())
            ]
            file = filled[0] if len(filled) == 1 else None
            if len(filled) > 1:
                problem = (
                    f"several files of {spreadsheet.stem} are filled in, so none is read; keep the one that counts, "
                    "and move the others away"
                )
                returned.mistakes.append(Message(", ".join(one.shown for one in filled), problem))
            unreadable = list[int]()
            withdrawn = 0
            for assignment in spreadsheet.assignments:
                pair = assignment.item, spreadsheet.annotator.id
                row = file.rows.get(assignment.item) if file else None
                if row and row.state == "partial":
                    started.add(pair)
                if file and row and row.state in ("answered", "empty"):
                    withdrawn += not row.answers and pair in annotated
                    annotations += [
                        Annotation(
                            state.name, *pair, question, row.answers.get(question), file.when
                        )
                        for question in questions
                        if question in row.answers or (*pair, question) in state.stored
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

    def close(self, state: RoundState) -> list[str]:
        """Return a message: files cannot be closed."""
        return [
            f"later changes in {_folder(state)} are not read unless the round is reopened; tell the annotators"
        ]

    def delete(self, state: RoundState) -> Removal:
        """Delete the round's spreadsheets and what was read from them; other files in their folder stay."""
        remove_for_good(state.folder.private / STORED_READINGS)  # they hold comments
        folder = _folder(state)
        codes = spreadsheets_of(state).keys()
        deleted = 0
        left = list[str]()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if _has_code(state, path, codes):
                remove_for_good(path)
                deleted += 1
            else:
                left.append(
                    f"{path}: not a spreadsheet of this round that can be read; delete it if nobody needs it"
                )
        remove_file(folder)
        given = {one.annotator for one_set in state.sets for one in one_set.assignments}
        if names := sorted(one.name for one in state.annotators if one.id in given):
            left.append(
                f"spreadsheets were sent to {', '.join(names)}: ask them to delete their copies"
            )
        return Removal((f"{counted(deleted, 'spreadsheet')} deleted from {folder}",), tuple(left))

    def erase_annotator(self, state: RoundState, annotator: Annotator) -> Removal:
        """Delete the annotator's spreadsheets, by their codes and by their names, and what was read from files."""
        remove_for_good(state.folder.private / STORED_READINGS)  # they hold comments
        folder = _folder(state)
        codes = spreadsheet_codes(state, annotator.id)
        named = re.compile(
            rf"\W*{re.escape(_comparable(annotator.name))}(?: set \d+)?\W*(?:\(\d+\))?\W*"
        )
        deleted = 0
        left = list[str]()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            code = _code_of(state, path)
            if holds_code(path, codes) or code in codes or named.fullmatch(_comparable(path.stem)):
                remove_for_good(path)
                deleted += 1
            elif code is None and not path.name.startswith("."):
                left.append(
                    f"{path}: cannot be read as a spreadsheet of this round; delete it if it is {annotator.name}'s"
                )
        protect_folder(folder)
        given = {one.annotator for one_set in state.sets for one in one_set.assignments}
        if annotator.id in given:
            left.append(
                f"spreadsheets were sent to {annotator.name}: their own copies are theirs to delete"
            )
        return Removal((f"{counted(deleted, 'spreadsheet')} deleted from {folder}",), tuple(left))

    def erase(self, state: RoundState, items: Collection[str]) -> Iterator[str]:
        """Remove erased items from all files; raise RoundError, naming them, if some could not be searched.

        Without items only spreadsheets of erased annotators go that came back.
        """
        yield from _delete_returned(state)
        if not items:
            return
        remove_file(state.folder.private / STORED_READINGS)  # they hold comments
        folder = _folder(state)
        spreadsheets = spreadsheets_of(state)
        left = list[str]()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            try:
                if path.suffix.lower() == ".xlsx":
                    _without_erased(state, spreadsheets, path)
                elif not path.name.startswith((".~", "~$")):
                    left.append(str(path))
            except (RoundError, OSError) as error:
                left.append(f"{path} ({error})")
        if folder.is_dir():
            protect_folder(folder)
        given = {annotator for gone in state.folder.erased_items() for annotator in gone.given_to}
        if names := sorted(
            annotator.name for annotator in state.annotators if annotator.id in given
        ):
            yield (
                f"spreadsheets with erased items were sent to {', '.join(names)}: ask them to delete their copies; a "
                f"file that comes back loses these items with the next `h2htalk round status {state.folder.path}`"
            )
        if left:
            raise RoundError(
                f"not searched for erased items: {'; '.join(left)}: delete these files, or remove the items by hand "
                "and move the files away"
            )


def _folder(state: RoundState) -> Path:
    return state.folder.path / SPREADSHEETS


def _erased_codes(state: RoundState) -> set[str]:
    """Return the codes of the spreadsheets of annotators who were erased from the round."""
    erased = state.folder.erased_annotators()
    return {code for one in erased for code in one.spreadsheets}


def _delete_returned(state: RoundState) -> Iterator[str]:
    """Delete spreadsheets of erased annotators that came back; yield a message for each."""
    codes = _erased_codes(state)
    if not codes:
        return
    for path in sorted(_folder(state).rglob("*")):
        if _has_code(state, path, codes):
            remove_for_good(path)
            yield f"{SPREADSHEETS}: {_CAME_BACK}"


def _comparable(name: str) -> str:
    """Normalise a file name: some file systems ignore case, some decompose accents."""
    return unicodedata.normalize("NFC", name).casefold()


def _code_of(state: RoundState, path: Path) -> str | None:
    """Return the code of a spreadsheet; None for a file that cannot be read as one."""
    required = [column.key for column in answer_columns(state.questions, "en")]
    try:
        return read_xlsx(path, "", required, []).code if path.suffix.lower() == ".xlsx" else None
    except (RoundError, OSError):
        return None


def _has_code(state: RoundState, path: Path, codes: Collection[str]) -> bool:
    """Return whether a file is one of these spreadsheets, also if it was saved as another type."""
    return holds_code(path, codes) or _code_of(state, path) in codes


def _write(
    state: RoundState, spreadsheet: Spreadsheet, path: Path, answers: TypedAnswers | None = None
) -> None:
    """Write a workbook that can be read back, completely or not at all. Raise RoundError, DataError."""
    try:
        with replacing(path) as temporary:
            write_workbook(state, spreadsheet, temporary, answers)
            check_archive(temporary)
            if answers is not None:
                shutil.copystat(path, temporary)  # answers that were not read yet keep their time
    except RoundError as error:
        raise RoundError(f"{path}: {error}; open rounds of fewer items") from error


def _without_erased(
    state: RoundState, spreadsheets: Mapping[str, Spreadsheet | None], path: Path
) -> bool:
    """Write a workbook that holds erased items anew, without them; return whether it held any.

    Only answers in rows that are as they were sent come into the new one, without those that hold a text of an erased
    item: what else somebody wrote or moved in the old one may be of it. A file that holds no other item is deleted.
    Raise RoundError if the file cannot be read or is not one of the round, DataError if it cannot be written, OSError.
    """
    required = [column.key for column in answer_columns(state.questions, "en")]
    book = read_xlsx(path, "", required, [])
    if book.code not in spreadsheets:
        raise RoundError("no spreadsheet of this round can be recognised in it")
    spreadsheet = spreadsheets[book.code]
    kept = {one.place for one in spreadsheet.assignments} if spreadsheet else set[int]()
    if not kept <= book.numbers:
        raise RoundError("its hidden sheets were changed, so that its items cannot be recognised")
    if kept == book.numbers:
        return False
    if spreadsheet is None:
        path.unlink()
        return True
    gone = [text for number, text in book.texts if number not in kept and len(text) > _SHORT_TEXT]
    answers = {
        row.number: {
            key: row.values[key]
            for key in required
            if key in row.values and not any(text in str(row.values[key]) for text in gone)
        }
        for row in book.rows
        if row.number in kept and row.unchanged
    }
    _write(state, spreadsheet, path, answers)
    return True


# --- Returned files ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileReading:
    """What a file of the spreadsheet `code` contains: item -> answers; place, problem and kind of each message.

    The key is a fingerprint of the file's name, content and time, the round, and the version. `shown` is its name in
    messages, `when` the time of its last change.
    """

    key: str
    code: str
    rows: Mapping[str, RowAnnotations]
    mistakes: tuple[tuple[str, str, str], ...]
    notes: tuple[tuple[str, str, str], ...]
    shown: str
    when: str


class _ReturnedFiles:
    """The files that were read, by the code of their spreadsheet, with mistakes and notes."""

    def __init__(self, state: RoundState) -> None:
        self.mistakes: list[Message] = []
        self.notes: list[Message] = []
        self.files: dict[str, list[FileReading]] = {}
        self.spreadsheets = spreadsheets_of(state)
        self._state, self._required = (
            state,
            [column.key for column in answer_columns(state.questions, "en")],
        )
        self._has_erased = bool(state.folder.erased_items())
        self._erased_codes = _erased_codes(state)
        self._context = "\n".join(
            [__version__, _RULES, *(sha256_of(state.folder.path / name) for name in _CONTEXT)]
        )
        try:
            stored = read_record_lines(state.folder.private / STORED_READINGS, FileReading)
            self._stored = {one.key: one for _, one in stored}
        except DataError:
            self._stored = {}  # missing or damaged: nothing is lost, the files are read again

    def save(self) -> None:
        """Store what this collection read. Raise DataError."""
        used = {one.key: one for files in self.files.values() for one in files}
        if used != self._stored:
            write_jsonl(self._state.folder.private / STORED_READINGS, map(asdict, used.values()))
            self._state.folder.protect()

    def read(self, path: Path) -> None:
        """Read a file, or add a message that says why not."""
        shown = f"spreadsheets/{printable(path.name)}"
        name = path.name.lower()
        suffix = path.suffix.lower()
        if name.startswith((".", "~$")) or name in _SYSTEM_FILES:
            return
        if suffix != ".xlsx" or not path.is_file():
            if self._delete_if_erased(path):
                return
            message = Message(shown, "not read; the files of this round are .xlsx files")
            (self.mistakes if suffix in _SPREADSHEETS else self.notes).append(message)
            return
        try:
            file = self._stored.get(self._key(path))
            if file is None and self._delete_if_erased(path):
                return
            if (
                file is None
                and self._has_erased
                and _without_erased(self._state, self.spreadsheets, path)
            ):
                problem = "it held items that were erased since, and was written anew with the answers to the others"
                self.notes.append(Message(shown, problem))
                if not path.exists():
                    return
            file = file or self._parse(path, shown)
        except (RoundError, ConfigError, OSError) as error:
            self.mistakes.append(Message(shown, str(error)))
            return
        self.files.setdefault(file.code, []).append(file)
        self.notes += [Message(*message) for message in file.notes]
        # Annotators who left do not correct mistakes, so these must not prevent closing.
        spreadsheet = self.spreadsheets[file.code]
        active = spreadsheet is not None and spreadsheet.annotator.active
        (self.mistakes if active else self.notes).extend(
            Message(*message) for message in file.mistakes
        )

    def _delete_if_erased(self, path: Path) -> bool:
        """Delete a spreadsheet of an erased annotator that came back; return whether it was one."""
        if not self._erased_codes or not _has_code(self._state, path, self._erased_codes):
            return False
        remove_for_good(path)
        self.notes.append(Message(SPREADSHEETS, _CAME_BACK))
        return True

    def _key(self, path: Path) -> str:
        text = f"{self._context}\n{sha256_of(path)}\n{path.stat().st_mtime_ns}\n{path.name}"
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    def _parse(self, path: Path, shown: str) -> FileReading:
        """Read a workbook. Raise RoundError if nothing can be read, OSError."""
        mistakes: list[Message] = []
        notes: list[Message] = []
        book = read_xlsx(path, shown, self._required, mistakes)
        state = self._state
        spreadsheet = self.spreadsheets.get(book.code)
        if spreadsheet is None:
            raise RoundError(
                f"it is no spreadsheet of the round {state.name!r}, so nothing is read; is the file from another "
                "round, or were its hidden sheets deleted?"
            )
        items = {item.id: item for item in state.items}
        places = {one.place: one.item for one in spreadsheet.assignments}
        answers: dict[str, RowAnnotations] = {}
        typed: dict[str, Mapping[str, CellValue]] = {}
        for row in book.rows:
            item = places.get(row.number, "")
            given = {key: row.values[key] for key in self._required if key in row.values}
            # A copied row that is blank, or says the same, changes nothing.
            if item in typed and (not given or (row.unchanged and given == typed[item])):
                continue
            kind = ""
            if not item:
                kind = "this spreadsheet has no item {}"
            elif typed.get(item):
                kind = "the row of item {} occurs twice"
            elif not row.unchanged:
                kind = "the text of item {} was changed (edited, or sorted without its row)"
            if kind:
                place = f"{row.sheet}, row {row.line}"
                mistakes.append(Message(place, f"{kind.format(row.number)}; {_UNDO}", kind))
                if item:
                    answers |= {item: RowAnnotations("unread")}
            else:
                language = spreadsheet.language
                answers[item] = read_answers(
                    row, given, items[item], state.questions, language, mistakes, notes
                )
            typed[item] = given
        if missing := [place for place, item in places.items() if item not in answers]:
            problem = (
                f"the row of item {listed(missing)} is missing; undo the change, or use a new file"
            )
            mistakes.append(Message(shown, problem, "missing rows"))
        # A wrong clock sets no time in the future.
        changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
        return FileReading(
            key=self._key(path),
            code=book.code,
            rows=answers,
            mistakes=tuple((one.place, one.problem, one.kind) for one in mistakes),
            notes=tuple((one.place, one.problem, one.kind) for one in notes),
            shown=shown,
            when=min(changed, datetime.datetime.now(datetime.UTC)).isoformat(timespec="seconds"),
        )
