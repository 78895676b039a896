"""A CSV ballot read back: what each row says, every mistake with file, row and column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.spreadsheets.answers import Choices, Raw, Reading, read_row
from h2htalk.rounds.spreadsheets.csv_ballots import answer_keys, ballot_name, csv_keys
from h2htalk.rounds.spreadsheets.files import MAX_FILE, Ballot, BallotRound
from h2htalk.rounds.spreadsheets.places import FileReading, changed_row, moved_rows
from h2htalk.rounds.spreadsheets.text import cell_text
from h2htalk.text.cells import longest_field

# More rows than any ballot has.
_MAX_ROWS = 20_000
# Characters of one cell: more than any text of ours and any comment have.
MAX_FIELD = 131_072


@dataclass(frozen=True, slots=True)
class CsvRows:
    """A CSV ballot as it came.

    Attributes:
        ballot: what each row's `ballot` says where the file is the right one.
        rows: (row in the file from 1, texts by column), rows without any text left out.
        answer_keys: columns to answer in.
        beside: what stands in columns that are not ours.
    """

    ballot: str
    rows: Sequence[tuple[int, Mapping[str, str]]]
    answer_keys: Sequence[str]
    beside: Sequence[str]


def read_csv_ballot(known: BallotRound, ballot: Ballot | None, path: Path, shown: str) -> FileReading:
    """Read a CSV file; arguments as `read_workbook`'s."""
    reading = FileReading()
    try:
        if ballot is None:
            raise RoundError("no ballot of this round has this name; give the file its ballot's name")
        table = read_csv(known, ballot, path)
    except RoundError as error:
        reading.mistakes.append(f"{shown}: {error}")
        return reading
    reading.mistakes += [f"{shown}: {told}" for told in table.beside]
    expected = [known.code(ballot, one.item) for one in ballot.seats]
    wrong = _wrong_ballot(known, ballot, table) or moved_rows(known, ballot, expected, _csv_codes(table))
    if wrong:
        reading.mistakes.append(f"{shown}: {wrong}")
        return reading
    choices = Choices(known.questions, ballot.language, {}, known.answered(ballot))
    rows = zip(table.rows, ballot.seats, expected, strict=True)
    for number, ((line, values), one, code) in enumerate(rows, 1):
        place = f"{shown}: row {line} (item {number})"
        if changed_row(known, code, number, values, place, reading):
            reading.rows.append(Reading(one.item, "unread", {}, place))
            continue
        given: dict[str, Raw] = {key: values[key] for key in table.answer_keys if values[key].strip()}

        def where(key: str, place: str = place) -> str:
            return f"{place}, column {key}"

        reading.rows.append(
            read_row(choices, known.items[one.item], given, where, reading.mistakes, reading.notes)
        )
    return reading


def _wrong_ballot(known: BallotRound, ballot: Ballot, table: CsvRows) -> str | None:
    """Another round's, voter's or wave's, as the first row that says so tells."""
    for line, values in table.rows:
        told = values["ballot"].strip()
        if not told or told == table.ballot:
            continue
        round, _, rest = told.rpartition(" wave ")
        wave, _, voter = rest.partition(" ")
        if round != known.name:
            return (
                f"row {line}: this is of another round, {quoted(round or told)}; nothing of the file is read"
            )
        if voter not in known.voters:
            return f"row {line}: this is of somebody outside this round; nothing of the file is read"
        if voter != ballot.voter.id:
            name = known.voters[voter].name
            return f"row {line}: this is the ballot of {name}, not the one of the file's name; nothing of it is read"
        return (
            f"row {line}: this is of wave {quoted(wave)}, not of {ballot.wave}; nothing of the file is read"
        )
    return None


def _csv_codes(table: CsvRows) -> Sequence[tuple[str, str | None]]:
    return [(f"row {line}", values["row"].partition("-")[0].strip() or None) for line, values in table.rows]


# --- The file -----------------------------------------------------------------------------------------------------


def read_csv(known: BallotRound, ballot: Ballot, path: Path) -> CsvRows:
    """The rows of a CSV ballot.

    Raises:
        RoundError: it is too large, no CSV in UTF-8, or lacks one of our columns; without the file's name.
    """
    text = _decoded(path)
    heading = text[: text.find("\n") + 1 or None]
    delimiter = max(",;\t", key=heading.count)
    keys = csv_keys(known, ballot)
    rows: list[tuple[int, Mapping[str, str]]] = []
    beside: list[str] = []
    try:
        with longest_field(MAX_FIELD):
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
            names = [name.strip() for name in next(reader, [])]
            _require_columns(names, keys)
            places = {key: names.index(key) for key in keys}
            for number, cells in enumerate(reader, 2):
                if not any(cell.strip() for cell in cells):
                    continue
                rows.append(
                    (number, {key: cells[at] if at < len(cells) else "" for key, at in places.items()})
                )
                beside += _beside(number, cells, set(places.values()))
                if len(rows) > _MAX_ROWS:
                    raise RoundError(f"it has more than {_MAX_ROWS:,} rows; no ballot is so long")
    except csv.Error as error:
        raise RoundError(f"it cannot be read as CSV: {error}; save it again as CSV in UTF-8") from error
    if len(beside) > 5:
        beside[5:] = [f"{len(beside) - 5} more cells beside the table"]
    return CsvRows(cell_text(ballot_name(known, ballot)), rows, answer_keys(known, ballot), beside)


def _beside(number: int, cells: Sequence[str], ours: set[int]) -> Iterator[str]:
    for at, cell in enumerate(cells):
        if at not in ours and cell.strip():
            yield (
                f"row {number}, column {at + 1}: {quoted(cell)} stands beside the table; move it to where it belongs, "
                "or take it out"
            )


def _require_columns(names: Sequence[str], keys: Sequence[str]) -> None:
    for key in keys:
        if names.count(key) != 1:
            raise RoundError(
                f"row 1: the column {key} is {'missing' if key not in names else 'there twice'}; the first row must be "
                f"{','.join(keys)}"
            )


def _decoded(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise RoundError(f"it has {size >> 20:,} MiB; no ballot has more than {MAX_FILE >> 20}")
        raw = path.read_bytes()
    except OSError as error:
        raise RoundError(
            f"it cannot be read: {error.strerror or error}; is it open in another program?"
        ) from error
    if not raw.strip():
        raise RoundError("it is empty; have it sent again")
    wide = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise RoundError("it is not in UTF-8; save it again as “CSV UTF-8”") from error
