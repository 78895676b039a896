"""Annotators: their languages and consent. Names stay in the round's private folder; other files hold salted hashes."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from h2htalk.data.files import json_line
from h2htalk.data.imports.csv_rows import read_rows
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.payments.prolific_export import (
    ExportedSubmission,
    comparable_participant_id,
    export_rows,
    exported_submissions,
    is_export,
)

COLUMNS = ("name", "languages", "crisis", "participant_id", "completion_code")
# An empty cell is no consent to read about crises.
_CONSENT = {"yes": True, "no": False, "": False}
MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Annotator:
    """A person who annotates.

    Attributes:
        id: salted hash of the name, 12 hexadecimal digits; used in annotations and decisions.
        name: the name of their spreadsheet, or their user name in Argilla.
        languages: languages that they read.
        crisis: whether they agreed to read items about a crisis.
        active: False after they left the round; their annotations stay.
        participant_id, completion_code: of a participant of Prolific, for the payment; empty for others.
    """

    id: str
    name: str
    languages: tuple[Language, ...]
    crisis: bool = True
    active: bool = True
    participant_id: str = ""
    completion_code: str = ""

    @property
    def is_participant(self) -> bool:
        """Whether a platform pays them: they are known by an id there, or by the code that they entered there."""
        return bool(self.participant_id or self.completion_code)


def annotator_id(name: str, salt: bytes) -> str:
    """Return the salted hash of a name: 12 hexadecimal digits of HMAC-SHA-256 under the round's private salt."""
    return hmac.new(salt, name.encode(), hashlib.sha256).hexdigest()[:12]


def annotators_fingerprint(annotators: Iterable[Annotator]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over annotators, independent of their order."""
    lines = sorted(json_line(asdict(annotator)) for annotator in annotators)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def read_annotators(
    path: Path, salt: bytes, notes: list[str] | None = None, *, may_be_empty: bool = False
) -> tuple[Annotator, ...]:
    """Read annotators from a CSV file with the columns of `COLUMNS`, or from Prolific's export; others are ignored.

    `notes` gets messages on participants of the export who are left out. Raise RoundError, with file and line, for a
    list that is invalid, or empty unless `may_be_empty`.
    """
    if not path.exists():
        raise RoundError(
            f"{path}: this list of annotators does not exist; closing a pilot writes qualified.csv only if somebody "
            "passed"
        )
    try:
        rows = _read_cells(path)
        if rows and is_export(rows[0][1]):
            rows = [*export_rows(rows, notes if notes is not None else [])]
        annotators = tuple(annotator_of(row, where, salt) for where, row in rows)
    except DataError as error:
        raise RoundError(str(error)) from error
    if not annotators and not may_be_empty:
        raise RoundError(
            f"{path}: the list of annotators is empty; add a heading with name and languages (and crisis, if items are "
            "about one), and one line for each annotator"
        )
    _require_distinct_names(annotators, path)
    _require_distinct_participants(annotators, path)
    return annotators


def read_export(path: Path) -> dict[str, ExportedSubmission]:
    """Return comparable participant id -> what Prolific's export says of the submission; empty for another list.

    Raise RoundError, with file and line.
    """
    try:
        rows = _read_cells(path)
    except DataError as error:
        raise RoundError(str(error)) from error
    return exported_submissions(rows) if rows and is_export(rows[0][1]) else {}


def _read_cells(path: Path) -> list[tuple[str, Mapping[str, str]]]:
    """Return `file:line` and cells by heading. Raise DataError, RoundError."""
    return [(where, _by_heading(cells, where)) for where, cells in read_rows(path)]


def placeholder_annotators(
    count: int, languages: Sequence[Language], salt: bytes
) -> tuple[Annotator, ...]:
    """Make `count` annotators for each language, named `en-01`, `en-02`, ..., for a round without a list."""
    names = [
        (f"{language}-{n:02}", language) for language in languages for n in range(1, count + 1)
    ]
    return tuple(Annotator(annotator_id(name, salt), name, (language,)) for name, language in names)


def _by_heading(cells: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the cells of a row by heading, in lower case with underscores. Raise RoundError for a missing column."""
    row = {key.casefold().replace(" ", "_"): cell for key, cell in cells.items()}
    missing = [name for name in COLUMNS[:2] if name not in row]
    is_twice = len(row) < len(cells)
    if is_twice or (missing and not is_export(row)):
        problem = "which names a column twice" if is_twice else f"without {' and '.join(missing)}"
        raise RoundError(
            f"{where}: a list of annotators needs the columns name and languages (and crisis, if items are about one), "
            f"or those of Prolific's export, Participant id and Status; its first row is {quoted(', '.join(row))}, "
            f"{problem}"
        )
    return row


def annotator_of(row: Mapping[str, str], where: str, salt: bytes) -> Annotator:
    """Return an annotator by the cells of `COLUMNS`; raise RoundError, beginning with `where`, for an invalid cell."""
    name = row["name"]
    crisis = row.get("crisis", "").lower()
    languages = row["languages"].replace(",", " ").replace("+", " ").split()
    if (
        len(name) > MAX_NAME
        or not name[:1].isalnum()
        or not all(one.isalnum() or one in "._-" for one in name)
    ):
        raise RoundError(
            f"{where}: name is {quoted(name)}; use up to {MAX_NAME} letters, digits, dots, hyphens and underscores, "
            "because it becomes a file name or a user name"
        )
    if not languages or not set(languages) <= set(LANGUAGES):
        raise RoundError(
            f"{where}: languages is {quoted(row['languages'])}; choose from {', '.join(LANGUAGES)}"
        )
    if crisis not in _CONSENT:
        raise RoundError(f"{where}: crisis is {quoted(crisis)}; write yes or no")
    participant, code = (row.get(column, "") for column in COLUMNS[3:])
    plain = comparable_participant_id(participant)
    if participant and not (plain.isascii() and plain.isalnum()):
        raise RoundError(
            f"{where}: participant_id is {quoted(participant)}; copy it from Prolific: letters and digits"
        )
    known: tuple[Language, ...] = tuple(dict.fromkeys(languages))
    return Annotator(
        annotator_id(name, salt), name, known, _CONSENT[crisis], True, participant, code
    )


def merge_annotators(
    known: Sequence[Annotator],
    listed: Sequence[Annotator],
    path: Path,
    *,
    replace_ids: bool = False,
) -> dict[str, Annotator]:
    """Return the annotators of a round and of a new list by name; the list replaces languages and consent.

    An annotator whom the list gives no participant's id or code keeps them. Raise RoundError, naming the list's `path`,
    if two names differ only in case or have one participant's id, or, unless `replace_ids`, the list has another id.
    """
    merged = {annotator.name: annotator for annotator in known}
    for annotator in listed:
        earlier = merged.get(annotator.name, annotator)
        if not replace_ids:
            _require_same_participant(earlier, annotator, path)
        merged[annotator.name] = replace(
            annotator,
            participant_id=annotator.participant_id or earlier.participant_id,
            completion_code=annotator.completion_code or earlier.completion_code,
        )
    _require_distinct_names(list(merged.values()), path)
    _require_distinct_participants(list(merged.values()), path)
    return merged


def _require_same_participant(earlier: Annotator, annotator: Annotator, path: Path) -> None:
    """Raise RoundError if an annotator would become another participant: bonuses may have been listed for the first."""
    ids = earlier.participant_id, annotator.participant_id
    if not all(ids) or ids[0] == ids[1]:
        return
    if comparable_participant_id(ids[0]) == comparable_participant_id(ids[1]):
        raise RoundError(
            f"{path}: the participant id of {annotator.name} is {ids[0]} in this round, and {ids[1]} here; write it as "
            "before. If Prolific writes it so, add --replace-id to correct it"
        )
    raise RoundError(
        f"{path}: {annotator.name} is participant {ids[0]} in this round, and is to become {ids[1]}; another "
        "person needs another name. To correct the id, add --replace-id: what was listed for the first id still "
        "counts as paid"
    )


def _require_distinct_names(annotators: Sequence[Annotator], path: Path) -> None:
    """Raise RoundError if a file system or server could take two names for the same: they would share a spreadsheet."""
    seen: dict[str, str] = {}
    for annotator in annotators:
        folded = unicodedata.normalize("NFC", annotator.name).casefold()
        if folded in seen:
            raise RoundError(
                f"{path}: {quoted(annotator.name)} and {quoted(seen[folded])} differ only in case; rename one, or "
                "write it as before"
            )
        seen[folded] = annotator.name


def _require_distinct_participants(annotators: Sequence[Annotator], path: Path) -> None:
    """Raise RoundError if a participant of Prolific has two names: they would be paid twice.

    Ids that differ only in case or in the width of characters are one id. Prolific's export names annotators by their
    ids, so an annotator without an id is also known by the name.
    """
    names: dict[str, str] = {}
    for annotator in annotators:
        if not annotator.participant_id:
            names[comparable_participant_id(annotator.name)] = annotator.name
    for annotator in annotators:
        participant = comparable_participant_id(annotator.participant_id)
        if participant and participant in names:
            raise RoundError(
                f"{path}: participant_id {quoted(annotator.participant_id)} occurs twice, as "
                f"{quoted(names[participant])} and {quoted(annotator.name)}; a participant is one annotator: keep the "
                "name that has answers, and leave out the other"
            )
        if participant:
            names[participant] = annotator.name
