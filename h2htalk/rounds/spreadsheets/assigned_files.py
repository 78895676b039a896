"""The spreadsheets that a round's assignments need, and the codes by which returned files are recognised."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import Assignment
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundFolder


@dataclass(frozen=True, slots=True)
class Spreadsheet:
    """One annotator's part of one assignment set.

    Attributes:
        stem: file name without suffix: NAME, or NAME-2 for the second assignment set.
        code: keyed hash of round, assignment set and annotator; it identifies the file whatever its name is.
        language: of headings and choices: the annotator's first language in which one of the items is written.
        assignments: in the annotator's order; erased items leave gaps in their places.
    """

    annotator: Annotator
    assignment_set: int
    stem: str
    code: str
    language: Language
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class SpreadsheetRound:
    """A round as its spreadsheets need it, read once.

    Attributes:
        folder: of the spreadsheets.
        spreadsheets: code -> spreadsheet; None where all of its items were erased.
        has_erased: whether spreadsheets that come back may hold erased items.
    """

    name: str
    folder: Path
    suggest: bool
    items: Mapping[str, Item]
    questions: tuple[Question, ...]
    annotators: Mapping[str, Annotator]
    by_code: Mapping[str, Spreadsheet | None]
    has_erased: bool

    @property
    def spreadsheets(self) -> tuple[Spreadsheet, ...]:
        return tuple(one for one in self.by_code.values() if one is not None)


def read_spreadsheet_round(folder: RoundFolder) -> SpreadsheetRound:
    """Read a round and its spreadsheets. Raise RoundError, DataError."""
    items = {item.id: item for item in folder.items()}
    annotators = {annotator.id: annotator for annotator in folder.annotators()}
    salt, sets = folder.salt(), folder.assignment_sets()
    by_code: dict[str, Spreadsheet | None] = {
        _code(folder.name, salt, one.number, annotator): None for one in sets for annotator in annotators
    }
    by_code |= {one.code: one for one in _spreadsheets(folder, items, annotators)}
    return SpreadsheetRound(
        name=folder.name,
        folder=folder.path / "spreadsheets",
        suggest=folder.spec().suggest,
        items=items,
        questions=folder.questions(),
        annotators=annotators,
        by_code=by_code,
        has_erased=bool(folder.erased_items()),
    )


def _spreadsheets(
    folder: RoundFolder, items: Mapping[str, Item], annotators: Mapping[str, Annotator]
) -> Iterator[Spreadsheet]:
    salt = folder.salt()
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
            code = _code(folder.name, salt, one_set.number, annotator_id)
            yield Spreadsheet(annotator, one_set.number, stem, code, language, tuple(assignments))


def _code(round: str, salt: bytes, assignment_set: int, annotator: str) -> str:
    message = "\0".join((round, str(assignment_set), annotator)).encode(errors="backslashreplace")
    return hmac.new(salt, message, hashlib.sha256).hexdigest()[:16]


def _stem(name: str, number: int, first: set[str]) -> str:
    """Return NAME, then NAME-2, or NAME~2 if an annotator of the first assignment set is called NAME-2."""
    if number == 1:
        return name
    return f"{name}~{number}" if f"{name}-{number}".casefold() in first else f"{name}-{number}"
