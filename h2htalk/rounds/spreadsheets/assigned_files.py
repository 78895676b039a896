"""The spreadsheets that a round's assignments need, and the codes that identify their rows."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import Assignment
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundFolder

# Larger files are not read, and none is written (bytes).
MAX_FILE = 32 << 20
# What a checksum ignores: white space, punctuation, and workbook escapes, which programs write differently.
_IGNORED = re.compile(r"(?:_x005[Ff])?_x[0-9A-Fa-f]{4}_|\W+")


@dataclass(frozen=True, slots=True)
class Spreadsheet:
    """One annotator's part of one assignment set.

    Attributes:
        stem: file name without suffix: NAME, or NAME-2 for the second assignment set.
        language: of headings and choices: the annotator's first language in which one of the items is written.
        assignments: in the annotator's order.
    """

    annotator: Annotator
    assignment_set: int
    stem: str
    language: Language
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class SpreadsheetRound:
    """A round as its spreadsheets need it, read once.

    Attributes:
        folder: of the spreadsheets.
        salt: key of the codes, so that nobody else can make a spreadsheet that is accepted.
        erased_codes: of rows of items that were erased; spreadsheets that come back may hold them.
    """

    name: str
    folder: Path
    salt: bytes
    suggest: bool
    items: Mapping[str, Item]
    questions: tuple[Question, ...]
    annotators: Mapping[str, Annotator]
    spreadsheets: tuple[Spreadsheet, ...]
    erased_codes: frozenset[str] = frozenset()

    def row_code(self, spreadsheet: Spreadsheet, item: str) -> str:
        """Return the code of a row: 13 letters and digits that do not reveal the item's id.

        It begins with a letter, since programs read 123e4567 as a number.
        """
        return self.code(spreadsheet.assignment_set, spreadsheet.annotator.id, item)

    def code(self, assignment_set: int, annotator: str, item: str) -> str:
        return "r" + self._keyed(12, "row", str(assignment_set), annotator, item)

    def checksum(self, code: str, texts: Sequence[str]) -> str:
        """Return the checksum of a row's code and texts, 8 digits; white space and punctuation do not matter."""
        return self._keyed(8, "checksum", code, *(_IGNORED.sub("", text) for text in texts))

    def _keyed(self, digits: int, *parts: str) -> str:
        message = "\0".join((self.name, *parts)).encode(errors="backslashreplace")
        return hmac.new(self.salt, message, hashlib.sha256).hexdigest()[:digits]


def require_size(path: Path) -> int:
    """Return a file's size in bytes; raise RoundError if it is empty or too large."""
    size = path.stat().st_size
    if not size:
        raise RoundError("the file is empty; ask for it again")
    if size > MAX_FILE:
        raise RoundError(f"the file has {size >> 20:,} MiB; the maximum is {MAX_FILE >> 20}")
    return size


def read_spreadsheet_round(folder: RoundFolder) -> SpreadsheetRound:
    """Read a round and its spreadsheets. Raise RoundError, DataError."""
    items = {item.id: item for item in folder.items()}
    annotators = {annotator.id: annotator for annotator in folder.annotators()}
    spec = folder.spec()
    round = SpreadsheetRound(
        name=folder.name,
        folder=folder.path / "spreadsheets",
        salt=folder.salt(),
        suggest=spec.suggest,
        items=items,
        questions=folder.questions(),
        annotators=annotators,
        spreadsheets=tuple(_spreadsheets(folder, items, annotators)),
    )
    gone, sets = folder.erased_items(), range(1, len(folder.assignment_sets()) + 1)
    codes = (round.code(number, name, one.id) for number in sets for one in gone for name in one.given_to)
    return replace(round, erased_codes=frozenset(codes))


def _spreadsheets(
    folder: RoundFolder, items: Mapping[str, Item], annotators: Mapping[str, Annotator]
) -> Iterator[Spreadsheet]:
    first: set[str] = set()
    for one_set in folder.assignment_sets():
        by_annotator: dict[str, list[Assignment]] = {}
        for assignment in one_set.assignments:
            by_annotator.setdefault(assignment.annotator, []).append(assignment)
        if one_set.number == 1:
            first = {annotators[annotator].name.casefold() for annotator in by_annotator}
        for annotator_id, assignments in by_annotator.items():
            annotator = annotators[annotator_id]
            assignments.sort(key=lambda one: one.place)
            written = {items[one.item].language for one in assignments}
            language = next(one for one in (*annotator.languages, *written) if one in written)
            stem = _stem(annotator.name, one_set.number, first)
            yield Spreadsheet(annotator, one_set.number, stem, language, tuple(assignments))


def _stem(name: str, number: int, first: set[str]) -> str:
    """Return NAME, then NAME-2, or NAME~2 if an annotator of the first assignment set is called NAME-2."""
    if number == 1:
        return name
    return f"{name}~{number}" if f"{name}-{number}".casefold() in first else f"{name}-{number}"
