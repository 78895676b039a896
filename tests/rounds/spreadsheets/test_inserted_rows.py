"""Rows that somebody inserts into a spreadsheet: they are reported, and all other rows count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook
from spreadsheet_rounds import collect, edited, fill, item, opened, workbook_path

from h2htalk.rounds.round_folder import RoundFolder

XLSX = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}


@pytest.fixture
def crowd(tmp_path: Path) -> RoundFolder:
    """A round with three items, all annotated, in workbooks."""
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)])
    fill(workbook_path(round), dict.fromkeys(range(1, 4), XLSX))
    return round


@pytest.mark.parametrize("at", [1, 2, 3, 4])
@pytest.mark.parametrize("text", ["", "my notes"])
def test_a_row_inserted_into_a_sheet(crowd: RoundFolder, at: int, text: str) -> None:
    """Above the hidden keys it made the whole sheet unread, between keys and headings it made them a row."""
    with edited(workbook_path(crowd)) as book:
        book["Session 1"].insert_rows(at)
        book["Session 1"].cell(at, 4).value = text
    pulled = collect(crowd)
    assert len(pulled.annotations) == 9
    expected = f"spreadsheets/anna.xlsx: Session 1, D{at}: 'my notes' is outside the table; move or delete it"
    assert list(pulled.mistakes) == [expected] * bool(text)


def test_rows_of_another_annotator(crowd: RoundFolder, tmp_path: Path) -> None:
    """As many rows of one as of the other do not tell whose file it is."""
    round = opened(tmp_path / "two", "crowd", [item(n) for n in range(2)], annotators="anna,en;bert,en")
    fill(workbook_path(round), dict.fromkeys((1, 2), XLSX))
    source = load_workbook(workbook_path(round, "bert"))["Session 1"]

    def copy(row: int, to: int) -> Any:
        with edited(workbook_path(round)) as book:
            for cell in source[row]:
                book["Session 1"].cell(to, cell.column).value = cell.value
        return collect(round)

    pulled = copy(3, 5)
    assert len(pulled.annotations) == 6
    assert [str(mistake) for mistake in pulled.mistakes] == [
        "spreadsheets/anna.xlsx: Session 1, row 5: a row of bert; undo the change, or use a new file. This row is not "
        "read"
    ]
    pulled = copy(4, 6)
    assert not pulled.annotations
    assert "the file contains rows of anna, bert, so nothing is read" in pulled.mistakes[0]


def test_an_item_s_text_is_not_taken_for_the_keys(tmp_path: Path) -> None:
    """The separate sheet of an item is searched for keys, too."""
    round = opened(tmp_path, "crowd", [item(1, crisis=True, prompt="row"), item(2, crisis=False)])
    fill(workbook_path(round), {1: XLSX, 2: XLSX})
    pulled = collect(round)
    assert (len(pulled.annotations), pulled.mistakes) == (6, ())
