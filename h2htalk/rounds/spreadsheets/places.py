"""Whether a ballot's rows stand where they went out: none gone, added, moved, taken from another ballot or changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.errors import quoted
from h2htalk.rounds.spreadsheets.answers import Reading
from h2htalk.rounds.spreadsheets.columns import SEALED
from h2htalk.rounds.spreadsheets.files import Ballot, BallotRound

# Where all rows stand right again.
MEND = "undo that, or take a fresh ballot; of these rows nothing is read"


@dataclass(slots=True)
class FileReading:
    """What one file says: by item; `mistakes` and `notes` as lines for the manager."""

    rows: list[Reading] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def moved_rows(
    known: BallotRound, ballot: Ballot, expected: Sequence[str], found: Sequence[tuple[str, str | None]]
) -> str | None:
    """What is wrong with the order of rows; None where nothing is.

    Args:
        expected: the rows' codes as they went out.
        found: of each row, where it is and its code (without the seal); None for a row without one.
    """
    codes = [code for _, code in found]
    if codes == list(expected):
        return None
    numbers = {known.code(ballot, one.item): number for number, one in enumerate(ballot.seats, 1)}
    elsewhere = {
        known.code(other, one.item): other
        for other in known.ballots
        if other is not ballot
        for one in other.seats
    }
    seen: set[str] = set()
    for where, code in found:
        told = None if code is None else _foreign(code, numbers, elsewhere, seen)
        if told:
            return f"{where}: {told}; {MEND}"
        seen.add(code or "")
    gone = [code for code in expected if code not in seen]
    if gone:
        listed = ", ".join(str(numbers[code]) for code in gone[:5])
        more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
        first = next(
            (where for (where, code), right in zip(found, expected, strict=False) if code != right), None
        )
        return f"{first or (found[-1][0] if found else 'the table')}: the row of item {listed}{more} is gone; {MEND}"
    where, code = next(
        pair for pair, right in zip(found, [*expected, None], strict=False) if pair[1] != right
    )
    if code is None or [code for _, code in found if code is not None] == list(expected):
        return f"{where}: a row was put in here; take it out again, nothing of these rows is read"
    return f"{where}: the rows were sorted or moved (this is item {numbers[code]}); {MEND}"


def _foreign(
    code: str, numbers: Mapping[str, int], elsewhere: Mapping[str, Ballot], seen: set[str]
) -> str | None:
    if code in elsewhere:
        return f"this row is of another ballot, {quoted(elsewhere[code].stem)}"
    if code not in numbers:
        return f"the row's code was changed ({quoted(code)})"
    return f"the row of item {numbers[code]} stands here a second time" if code in seen else None


def changed_row(
    known: BallotRound,
    code: str,
    number: int,
    values: Mapping[str, str],
    place: str,
    reading: FileReading,
) -> bool:
    """Whether a row's number or text is not the one that went out: rows that were sorted in part, or edited.

    `values`: texts by column key; a mistake is added to `reading`.
    """
    if values.get("item", "").strip().removesuffix(".0") != str(number):
        reading.mistakes.append(
            f"{place}: the item's number is {quoted(values.get('item', ''))}, it was {number}; undo that, or take a "
            "fresh ballot. This row is not read"
        )
        return True
    seal = values.get("row", "").strip().partition("-")[2]
    if seal != known.seal(code, [values.get(key, "") for key in SEALED]):
        reading.mistakes.append(
            f"{place}: the text of item {number} is not the one that went out (sorted in part, or edited); undo that, "
            "or take a fresh ballot. This row is not read"
        )
        return True
    return False
