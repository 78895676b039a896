"""Rows that somebody inserts into a spreadsheet: they are reported, and all other rows count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook
from spreadsheet_rounds import collect, csv_rows, edited, fill, fill_csv, item, opened, workbook_path, write_csv_rows

from h2htalk.rounds.reopening import reopen_round
from h2htalk.rounds.round_folder import RoundFolder

XLSX = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}
CSV = {"subtask": "dialogue_base", "keep": "keep", "quality": "4"}


@pytest.fixture
def crowd(tmp_path: Path) -> RoundFolder:
    """A round with three items, all annotated, in workbooks."""
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)])
    fill(workbook_path(round), dict.fromkeys(range(1, 4), XLSX))
    return round


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """The CSV file of a round with three items, all annotated."""
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)], format="csv")
    path = round.path / "spreadsheets" / "anna.csv"
    fill_csv(path, dict.fromkeys(range(1, 4), CSV))
    return path


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


@pytest.mark.parametrize("line", ["", "my notes", ",,,,,,my notes,,"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_line_inserted_above_a_csv_table(plain: Path, line: str, delimiter: str) -> None:
    """It made the whole file unread."""
    write_csv_rows(plain, csv_rows(plain), delimiter=delimiter)
    line = line.replace(",", delimiter)
    plain.write_text(f"\ufeff{line}\r\n" + plain.read_bytes().decode("utf-8-sig"), encoding="utf-8", newline="")
    pulled = collect(RoundFolder(plain.parent.parent))
    assert len(pulled.annotations) == 9
    assert len(pulled.mistakes) == bool(line)
    assert all("row 1" in mistake and "'my notes' is outside" in mistake for mistake in pulled.mistakes)


def test_a_row_of_a_later_assignment_set(tmp_path: Path) -> None:
    """One row of NAME-2 that was copied into NAME made both assignment sets unread."""
    items = [item(n) for n in range(3)]
    round = opened(tmp_path, "crowd", items, annotators="anna,en;bert,en", overlap=1, format="csv")
    folder = round.path / "spreadsheets"
    files = {path.stem: len(csv_rows(path)) for path in folder.glob("*.csv")}
    stem, other = sorted(files, key=lambda name: files[name], reverse=True)
    fill_csv(folder / f"{other}.csv", {n: {"skip": "yes"} for n in range(1, files[other] + 1)})
    reopen_round(round.path)
    second = folder / f"{stem}-2.csv"
    fill_csv(folder / f"{stem}.csv", dict.fromkeys(range(1, files[stem] + 1), CSV))
    write_csv_rows(folder / f"{stem}.csv", [csv_rows(second)[0] | CSV, *csv_rows(folder / f"{stem}.csv")])
    pulled = collect(round)
    assert len(pulled.annotations) == 3 * files[stem] + files[other]
    (mistake,) = pulled.mistakes
    assert mistake.startswith(f"spreadsheets/{stem}.csv, row 2: a row of {stem}-2; undo")


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


@pytest.mark.parametrize(
    ("copy", "left", "mistakes"), [({}, 9, 0), (dict.fromkeys(CSV, ""), 9, 0), ({"keep": "drop"}, 6, 1)]
)
@pytest.mark.parametrize("first", [True, False])
def test_a_copied_row(plain: Path, copy: dict[str, str], left: int, mistakes: int, first: bool) -> None:
    """A blank or equal copy withdrew the answers of the row."""
    rows = csv_rows(plain)
    rows.insert(0 if first else len(rows), rows[0] | copy)
    write_csv_rows(plain, rows)
    pulled = collect(RoundFolder(plain.parent.parent))
    assert (len(pulled.annotations), len(pulled.mistakes)) == (left, mistakes)


def test_an_item_s_text_is_not_taken_for_the_keys(tmp_path: Path) -> None:
    """The separate sheet of an item is searched for keys, too."""
    round = opened(tmp_path, "crowd", [item(1, crisis=True, prompt="row"), item(2, crisis=False)])
    fill(workbook_path(round), {1: XLSX, 2: XLSX})
    pulled = collect(round)
    assert (len(pulled.annotations), pulled.mistakes) == (6, ())
