"""A round of 12 items on spreadsheets from its opening to its deletion, as its manager goes through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.rounds.assignment.assignments import Assignment
from h2htalk.rounds.round_folder import RoundFolder
from support.spreadsheet_rounds import fill, spreadsheets, workbook_path
from support.whole_round import GONE, Walk


def by_item(numbered: tuple[int, Assignment]) -> str:
    """The id of an item with its number in a spreadsheet."""
    return numbered[1].item


class Sheets:
    """Workbooks that are filled in where they lie."""

    where = "spreadsheets"

    def __init__(self) -> None:
        self.filled = set[tuple[str, str]]()

    def answer(
        self, round: RoundFolder, name: str, answers: Mapping[str, Mapping[str, Any]], most: int
    ) -> int:
        count = 0
        for spreadsheet in spreadsheets(round):
            if spreadsheet.annotator.name != name:
                continue
            cells = dict[int, Mapping[str, Any]]()
            numbered = enumerate(spreadsheet.assignments, 1)
            # In the order of items: eve answers the ties before she stops.
            for number, assignment in sorted(numbered, key=by_item):
                if (name, assignment.item) not in self.filled and count < most:
                    cells[number] = answers[assignment.item] or {"skip": "yes"}
                    self.filled.add((name, assignment.item))
                    count += 1
            fill(workbook_path(round, spreadsheet.stem), cells)
        return count

    def leave_half_answered(self, round: RoundFolder, name: str) -> None:
        (workbook,) = [
            spreadsheet for spreadsheet in spreadsheets(round) if spreadsheet.annotator.name == name
        ]
        empty = [
            number
            for number, assignment in enumerate(workbook.assignments, 1)
            if (name, assignment.item) not in self.filled
        ]
        fill(workbook_path(round, workbook.stem), {empty[0]: {"accuracy": 3}})

    def stop(self) -> bool:
        return False

    def start(self) -> None:
        raise AssertionError("spreadsheets have no server")

    def traces(self, texts: Sequence[str]) -> dict[str, list[str]]:
        return {}

    def compact(self) -> None:
        pass

    def list_rest(self) -> list[str]:
        return []


def test_a_round_from_its_opening_to_its_deletion(tmp_path: Path) -> None:
    walk = Walk(tmp_path, Sheets())
    walk.open()
    walk.half_answered()
    walk.reopened()
    walk.closed()
    walk.reopened_and_closed_again()
    walk.adjudicated()
    (workbook,) = [
        spreadsheet
        for spreadsheet in spreadsheets(walk.round)
        if spreadsheet.annotator.name == GONE
    ]
    file = workbook_path(walk.round, workbook.stem)
    sent = file.read_bytes()
    walk.erased()
    assert not file.exists()
    # The annotator sends the workbook once more.
    file.write_bytes(sent)
    walk.do("status")
    assert not file.exists()
    walk.deleted()
    assert not list(walk.round.path.glob("spreadsheets/*.xlsx"))
    print("\n".join(walk.messages))
