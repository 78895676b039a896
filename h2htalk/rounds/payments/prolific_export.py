"""Prolific's own export of a study's participants ("demographic export") as a list of annotators.

Its headings are read in the forms of several years: `Participant id` or `participant_id`, `Completion code` or
`entered_code`, `Fluent languages`, `Language` or `First Language`. Columns `languages` and `crisis` may be added.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from h2htalk.data.languages import RECORDS
from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.payments.amounts import PAID, UNPAID

# Statuses of submissions whose participants take part, and of those that ended without; hyphens are read as spaces.
_TAKING_PART = ("reserved", "active", "awaiting review", *PAID)
_ENDED = UNPAID
# Columns that say what participants read, and what Prolific calls a language beside its name.
_LANGUAGES = ("fluent_languages", "language", "first_language", "primary_language")
_ALSO_CALLED = {"mandarin": "zh"}


def comparable_participant_id(participant: str) -> str:
    """Return an id without differences of case and of the width of characters, which make no other participant."""
    return unicodedata.normalize("NFKC", participant).casefold()


def is_export(headings: Iterable[str]) -> bool:
    """Return whether a list has the headings of Prolific's export, in lower case with underscores."""
    names = set(headings)
    return {"participant_id", "status"} <= names and "name" not in names


def export_rows(
    rows: Iterable[tuple[str, Mapping[str, str]]], notes: list[str]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the participants of an export with the columns of a list of annotators, each once, as their last row says.

    `rows`: `file:line` and cells by heading. `notes` gets a message that counts submissions that ended without answers.
    Raise RoundError for a status or a language that is not known.
    """
    participants: dict[str, tuple[str, Mapping[str, str]]] = {}
    ended: dict[str, str] = {}
    for where, row in rows:
        participant = row["participant_id"]
        status = _status_of(row, where)
        if status in _ENDED:
            ended[participant] = status
        else:
            participants[participant] = where, row
    left_out = ended.keys() - participants.keys()
    if left_out:
        counts = sorted(
            f"{[ended[one] for one in left_out].count(status)} {status}"
            for status in set(ended.values())
        )
        notes.append(
            f"{counted(len(participants), 'participant')} of Prolific in the list; {counted(len(left_out), 'other')} "
            f"left out, whose submissions ended ({', '.join(one for one in counts if not one.startswith('0 '))})"
        )
    for participant, (where, row) in participants.items():
        yield (
            where,
            {
                "name": participant,
                "languages": row.get("languages") or _languages(row, where),
                "crisis": row.get("crisis", ""),
                "participant_id": participant,
                "completion_code": _code_of(row),
            },
        )


@dataclass(frozen=True, slots=True)
class ExportedSubmission:
    """What an export says of a submission: its status, in lower case with spaces, and the code that was entered."""

    status: str
    code: str = ""


def exported_submissions(
    rows: Iterable[tuple[str, Mapping[str, str]]],
) -> dict[str, ExportedSubmission]:
    """Return comparable participant id -> what the last row of a participant says.

    A submission that ended does not count for somebody with another one. Raise RoundError for an unknown status.
    """
    taking_part: dict[str, ExportedSubmission] = {}
    ended: dict[str, ExportedSubmission] = {}
    for where, row in rows:
        status = _status_of(row, where)
        submissions = ended if status in _ENDED else taking_part
        participant = comparable_participant_id(row["participant_id"])
        submissions[participant] = ExportedSubmission(status=status, code=_code_of(row))
    return {**ended, **taking_part}


def _code_of(row: Mapping[str, str]) -> str:
    return row.get("completion_code") or row.get("entered_code", "")


def _status_of(row: Mapping[str, str], where: str) -> str:
    status = row["status"].casefold().replace("-", " ").replace("_", " ").strip()
    if status not in (*_TAKING_PART, *_ENDED):
        known = ", ".join((*_TAKING_PART, *_ENDED))
        raise RoundError(f"{where}: Status is {quoted(row['status'])}; known are {known}")
    return status


def _languages(row: Mapping[str, str], where: str) -> str:
    """Return the codes of the languages that a participant reads. Raise RoundError for none."""
    texts = [row[name] for name in _LANGUAGES if row.get(name)]
    words = " ".join(texts).casefold()
    names = {record.name.casefold(): code for code, record in RECORDS.items()} | _ALSO_CALLED
    codes = dict.fromkeys(code for name, code in names.items() if name in words)
    if not codes:
        problem = (
            f"no language of a round in {quoted('; '.join(texts))}"
            if texts
            else "no column says what they read"
        )
        raise RoundError(
            f"{where}: participant {row['participant_id']}: {problem}; add a column languages with "
            f"{' or '.join(RECORDS)}, or remove the row"
        )
    return " ".join(codes)
