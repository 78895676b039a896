"""Which annotator fills in which spreadsheet, and the codes by which its rows and their text are known again."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import Assignment
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundFolder

# Files over this size are no spreadsheets, and spreadsheets are never made larger (bytes).
MAX_FILE = 32 << 20
# What a seal leaves out: blanks and signs, and what looks like a workbook's escape, which programs write variously.
_NO_WORD = re.compile(r"(?:_x005[Ff])?_x[0-9A-Fa-f]{4}_|\W+")


@dataclass(frozen=True, slots=True)
class Spreadsheet:
    """What one annotator gets of one assignment set.

    Attributes:
        stem: of its file's name: NAME, of a later assignment set NAME-2.
        language: of its headings and choices: the annotator's first in which an item of it is written.
        assignments: its items, in the annotator's own order.
    """

    annotator: Annotator
    assignment_set: int
    stem: str
    language: Language
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class SpreadsheetRound:
    """A round as its spreadsheets see it, read once.

    Attributes:
        folder: where the spreadsheets lie.
        format: of its files, `xlsx` or `csv`.
        salt: under which codes are made: nobody outside can make a spreadsheet that is taken for one of ours.
    """

    name: str
    folder: Path
    format: str
    salt: bytes
    suggest: bool
    items: Mapping[str, Item]
    questions: tuple[Question, ...]
    annotators: Mapping[str, Annotator]
    spreadsheets: tuple[Spreadsheet, ...]

    def code(self, spreadsheet: Spreadsheet, item: str) -> str:
        """A row's code: whose row it is and of which item, in 13 letters and digits that tell nobody the item's id
        (which names a subtask, or gold).

        It begins with a letter: a spreadsheet would read 123e4567 as a number.
        """
        return "r" + self._keyed(12, "row", str(spreadsheet.assignment_set), spreadsheet.annotator.id, item)

    def seal(self, code: str, texts: Sequence[str]) -> str:
        """What a row's text seals its code with: 8 digits. Blanks, line ends and signs do not count."""
        return self._keyed(8, "seal", code, *(_NO_WORD.sub("", text) for text in texts))

    def _keyed(self, digits: int, *parts: str) -> str:
        message = "\0".join((self.name, *parts)).encode(errors="backslashreplace")
        return hmac.new(self.salt, message, hashlib.sha256).hexdigest()[:digits]


def require_size(path: Path) -> int:
    """A file's size in bytes; raises RoundError where no spreadsheet has it."""
    size = path.stat().st_size
    if not size:
        raise RoundError("it is empty; have it sent again")
    if size > MAX_FILE:
        raise RoundError(f"it has {size >> 20:,} MiB; no spreadsheet has more than {MAX_FILE >> 20}")
    return size


def read_spreadsheet_round(round: RoundFolder) -> SpreadsheetRound:
    """A round's facts and the spreadsheets that its assignment sets want. Raises RoundError, DataError."""
    items = {item.id: item for item in round.items()}
    annotators = {annotator.id: annotator for annotator in round.annotators()}
    spec = round.spec()
    return SpreadsheetRound(
        name=round.name,
        folder=round.path / "spreadsheets",
        format=spec.format,
        salt=round.salt(),
        suggest=spec.suggest,
        items=items,
        questions=round.questions(),
        annotators=annotators,
        spreadsheets=tuple(_spreadsheets(round, items, annotators)),
    )


def _spreadsheets(
    round: RoundFolder, items: Mapping[str, Item], annotators: Mapping[str, Annotator]
) -> Iterator[Spreadsheet]:
    first: set[str] = set()
    for assignment_set in round.assignment_sets():
        theirs: dict[str, list[Assignment]] = {}
        for one in assignment_set.assignments:
            theirs.setdefault(one.annotator, []).append(one)
        if assignment_set.number == 1:
            first = {annotators[annotator].name.casefold() for annotator in theirs}
        for annotator_id, assignments in theirs.items():
            annotator = annotators[annotator_id]
            assignments.sort(key=lambda one: one.place)
            written = {items[one.item].language for one in assignments}
            language = next(one for one in (*annotator.languages, *written) if one in written)
            yield Spreadsheet(
                annotator,
                assignment_set.number,
                _stem(annotator, assignment_set.number, first),
                language,
                tuple(assignments),
            )


def _stem(annotator: Annotator, assignment_set: int, first: set[str]) -> str:
    """NAME, then NAME-2; where an annotator of the first assignment set is called that, a sign that no name has keeps
    them apart.
    """
    if assignment_set == 1:
        return annotator.name
    stem = f"{annotator.name}-{assignment_set}"
    return f"{annotator.name}~{assignment_set}" if stem.casefold() in first else stem
