"""A workbook read back: what each row says, every mistake with file, sheet and cell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.spreadsheets.answers import Choices, Reading, read_row
from h2htalk.rounds.spreadsheets.columns import SEALED
from h2htalk.rounds.spreadsheets.files import Ballot, BallotRound
from h2htalk.rounds.spreadsheets.parts import Cell, Sheet, address, merged_rows
from h2htalk.rounds.spreadsheets.places import FileReading, changed_row, moved_rows
from h2htalk.rounds.spreadsheets.record import FIRST_ROW, FORMAT, SHEET, Record, SheetRecord
from h2htalk.rounds.spreadsheets.workbook import Workbook
from h2htalk.rounds.texts import word

# Of cells beside a table so many are named one by one, the others counted.
_NAMED = 5


def read_workbook(known: BallotRound, ballot: Ballot | None, path: Path, shown: str) -> FileReading:
    """Read a workbook.

    Args:
        ballot: whose the file should be by its name; None where that is nobody's.
        shown: the file's name in messages.
    """
    reading = FileReading()
    try:
        with Workbook(path) as book:
            record = _record(known, book)
            own = _require_own(known, ballot, record)
            choices = Choices(known.questions, own.language, record.choices, known.answered(own))
            for part in record.sheets:
                _sheet(known, own, book, part, choices, shown, reading)
            extra = [name for name in book.names if name not in _names(record) and name not in _ours(own)]
            reading.notes += [
                f"{shown}: the sheet {quoted(name)} is not ours; nothing of it is read" for name in extra
            ]
    except RoundError as error:
        reading.mistakes.append(f"{shown}: {error}")
    return reading


def _names(record: Record) -> set[str]:
    return {SHEET, *(one.name for one in record.sheets)}


def _ours(ballot: Ballot) -> set[str]:
    """The sheets that are only read by people."""
    text = word("text", ballot.language)
    numbers = range(1, len(ballot.seats) + 1)
    return {word("guidelines", ballot.language), *(f"{text} {number}" for number in numbers)}


def _record(known: BallotRound, book: Workbook) -> Record:
    """The hidden record. Raises RoundError: it is missing, changed, or of another round."""
    if SHEET not in book.names:
        raise RoundError(
            f"the hidden sheet {SHEET!r} is missing or was renamed: this is no ballot, or not a whole one"
        )
    cells = book.sheet(SHEET).cells
    texts: list[str] = []
    while (cell := cells.get((len(texts) + 1, 1))) is not None:
        texts.append(str(cell.value))
    if len(texts) < 3 or texts[0] != FORMAT:
        raise RoundError(
            f"the hidden sheet {SHEET!r} was changed, or is of another version; take a fresh ballot"
        )
    text = "".join(texts[2:])
    record = Record.from_text(text)
    if record.round != known.name:
        raise RoundError(f"this is a ballot of another round, {quoted(record.round)}; nothing of it is read")
    if record.voter not in known.voters:
        raise RoundError("this is the ballot of somebody outside this round; nothing of it is read")
    if texts[1] != known.checksum(text):
        raise RoundError(
            f"the hidden sheet {SHEET!r} was changed, or is of another round of this name; take a fresh ballot"
        )
    return record


def _require_own(known: BallotRound, ballot: Ballot | None, record: Record) -> Ballot:
    """The ballot that a file holds; raises RoundError unless it is the one that its name says."""
    found = [one for one in known.ballots if one.voter.id == record.voter and one.wave == record.wave]
    if not found:
        name = known.voters[record.voter].name
        raise RoundError(
            f"this is a ballot of {name} for wave {record.wave}, which did not go out; nothing of it is read"
        )
    if ballot is None or found[0] is not ballot:
        raise RoundError(
            f"it holds the ballot {quoted(found[0].stem)}, not the one of its name; find out who filled it in, and "
            "give it that ballot's name. Nothing of it is read"
        )
    return found[0]


# --- A sitting ----------------------------------------------------------------------------------------------------


def _sheet(
    known: BallotRound,
    ballot: Ballot,
    book: Workbook,
    part: SheetRecord,
    choices: Choices,
    shown: str,
    reading: FileReading,
) -> None:
    """Read one sitting."""
    if part.name not in book.names:
        there = ", ".join(map(quoted, book.names))
        reading.mistakes.append(
            f"{shown}: the sheet {quoted(part.name)} is missing or was renamed; there are {there}"
        )
        return
    place = f"{shown}: {part.name}"
    sheet = book.sheet(part.name)
    filled = {at: cell for at, cell in sheet.cells.items() if str(cell.value).strip() or cell.formula}
    wrong = _wrong_columns(part, filled) or moved_rows(known, ballot, part.codes, _codes(place, part, filled))
    if wrong:
        reading.mistakes.append(wrong if wrong.startswith(place) else f"{place}, {wrong}")
        return
    blocked = _merged(sheet, part, place, reading)
    _beside(part, filled, place, reading)
    before = len(reading.rows)
    items = {known.code(ballot, one.item): (number, one.item) for number, one in enumerate(ballot.seats, 1)}
    for row, code in enumerate(part.codes, FIRST_ROW):
        number, item = items[code]
        cells = {key: filled[row, at] for at, key in enumerate(part.keys, 1) if (row, at) in filled}
        texts = {key: str(cell.value) for key, cell in cells.items()}
        if row in blocked or changed_row(known, code, number, texts, f"{place}, row {row}", reading):
            reading.rows.append(Reading(item, "unread", {}, f"{place}, row {row}"))
        else:
            reading.rows.append(_answers(known, item, row, part, cells, choices, place, reading))
    if not sheet.protected and any(row.state != "empty" for row in reading.rows[before:]):
        # Answers are bound to their rows by where they stand alone.
        reading.notes.append(
            f"{place}: the sheet is not protected any more; if answers were sorted or moved there without their rows, "
            "nothing shows it: ask who filled it in"
        )


def _answers(
    known: BallotRound,
    item: str,
    row: int,
    part: SheetRecord,
    cells: Mapping[str, Cell],
    choices: Choices,
    place: str,
    reading: FileReading,
) -> Reading:
    def where(key: str) -> str:
        # Of a question with a column a label, the first of them.
        at = next(at for at, one in enumerate(part.keys, 1) if one == key or one.startswith(f"{key}:"))
        return f"{place}, {address(row, at)}"

    formulas = [key for key, cell in cells.items() if cell.formula]
    if formulas:
        for key in formulas:
            reading.mistakes.append(f"{where(key)}: holds a formula, not an answer; choose the answer itself")
        return Reading(item, "unread", {}, where(formulas[0]))
    given = {key: cell.value for key, cell in cells.items() if key not in ("row", "item", *SEALED)}
    return read_row(choices, known.items[item], given, where, reading.mistakes, reading.notes)


def _wrong_columns(part: SheetRecord, filled: Mapping[tuple[int, int], Cell]) -> str | None:
    for at, key in enumerate(part.keys, 1):
        cell = filled.get((1, at))
        if cell is None or cell.value != key or cell.formula:
            return (
                f"column {address(1, at)[:-1]}: a column was put in, taken out, moved or merged here; undo that, or "
                "take a fresh ballot. Nothing of this sheet is read"
            )
    return None


def _codes(
    place: str, part: SheetRecord, filled: Mapping[tuple[int, int], Cell]
) -> list[tuple[str, str | None]]:
    """Of each row from the first item's on, where it is and its code; the column of codes is hidden, and not named."""
    last = max([FIRST_ROW + len(part.codes) - 1, *(row for row, column in filled if column == 1)])
    # More rows than went out: the first few tell what happened.
    last = min(last, FIRST_ROW + 2 * len(part.codes))
    found: list[tuple[str, str | None]] = []
    for row in range(FIRST_ROW, last + 1):
        cell = filled.get((row, 1))
        code = None if cell is None else str(cell.value).partition("-")[0].strip()
        found.append((f"{place}, row {row}", code))
    while len(found) > len(part.codes) and found[-1][1] is None:
        del found[-1]
    return found


def _merged(sheet: Sheet, part: SheetRecord, place: str, reading: FileReading) -> set[int]:
    """Rows of merged cells: what stands in one of them may be meant for another."""
    rows = range(FIRST_ROW, FIRST_ROW + len(part.codes))
    blocked: set[int] = set()
    for reference in sheet.merged:
        inside = merged_rows(reference)
        touched = range(max(inside.start, rows.start), min(inside.stop, rows.stop))
        blocked |= set(touched)
        told = f"rows {touched.start} to {touched.stop - 1} are" if len(touched) else "nothing else is"
        reading.mistakes.append(
            f"{place}, {reference}: merged cells; part them again, and answer each row. {told} not read"
            if len(touched)
            else f"{place}, {reference}: merged cells; part them again"
        )
    return blocked


def _beside(
    part: SheetRecord, filled: Mapping[tuple[int, int], Cell], place: str, reading: FileReading
) -> None:
    last = FIRST_ROW + len(part.codes) - 1
    outside = sorted(at for at in filled if at[0] > last or at[1] > len(part.keys))
    for row, column in outside[:_NAMED]:
        cell = filled[row, column]
        reading.mistakes.append(
            f"{place}, {address(row, column)}: {quoted(cell.value)} stands beside the table; move it to where it "
            "belongs, or take it out"
        )
    if len(outside) > _NAMED:
        reading.mistakes.append(f"{place}: {len(outside) - _NAMED} more cells beside the table")
