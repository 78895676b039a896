"""Messages of one kind are printed together, for every place where a fault occurs."""

from __future__ import annotations

from pathlib import Path

import pytest
from argilla_double import ArgillaDouble
from argilla_made import opened as opened_on_server
from command_line import h2htalk_here
from rounds_made import answer, begin, crowd
from spreadsheet_rounds import edited, keys_of, rows_of, session_of, write_rows

from h2htalk.rounds.platforms import Message
from h2htalk.rounds.settings import Care
from h2htalk.rounds.terminal import grouped


def test_one_line_for_a_fault_in_many_places() -> None:
    many = [Message(f"anna.csv: row {n}", f"'{n}' is not valid", "not valid") for n in range(236)]
    other = Message("bert.csv", "the file is empty")
    assert list(grouped([many[0], other, "a note", *many[1:]])) == [
        "anna.csv: row 0: '0' is not valid",
        "  the same in 235 more places: anna.csv: row 1; anna.csv: row 2; anna.csv: row 3; anna.csv: row 4; "
        "anna.csv: row 5; and 230 more",
        "bert.csv: the file is empty",
        "a note",
    ]


@pytest.mark.parametrize("fault", ["column", "value", "incomplete", "texts", "suffix"])
def test_a_fault_in_each_file_and_row(tmp_path: Path, fault: str) -> None:
    """A misspelt answer in each row printed 236 lines, a renamed column one for each file."""
    path = begin(tmp_path, "crowd", count=40, people=6, overlap=6)
    answer(path, lambda *_: crowd())
    for file in sorted((path / "spreadsheets").glob("*.xlsx")):
        rows = rows_of(file)
        if fault == "suffix":
            file.rename(file.with_suffix(".ods"))
            continue
        for number, row in enumerate(rows):
            row |= {
                "column": {},
                "value": {"keep": f"maybe {number}"},
                "incomplete": {"quality": ""},
                "texts": {"text": "My own text."},
            }[fault]
        write_rows(file, rows)
        if fault == "column":
            with edited(file) as book:
                sheet, _ = session_of(book, 1)
                sheet.cell(1, keys_of(sheet).index("keep") + 1).value = "verdict"
    for words in (("status",), ("close", "--force")):
        done = h2htalk_here("round", words[0], path, *words[1:])
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "spreadsheets/" in line]
        assert 2 <= len(lines) <= 6, lines
        assert "more places" in lines[1]
    assert done.returncode == 0


def test_each_mistake_can_be_listed(tmp_path: Path) -> None:
    path = begin(tmp_path, "crowd", count=10, people=2, overlap=2)
    answer(path, lambda *_: crowd("perhaps"))
    assert len(h2htalk_here("round", "status", path).stderr.splitlines()) == 2
    done = h2htalk_here("round", "status", path, "--mistakes")
    assert done.returncode == 2
    assert done.stderr.count("'perhaps' is not a valid answer") == len(done.stderr.splitlines()) == 20


def test_a_fault_in_each_dataset(server: ArgillaDouble, tmp_path: Path) -> None:
    """Every session has a dataset; other guidelines in each of them printed a line for each."""
    items = [{"id": f"i{n}", "language": "en", "prompt": "Good morning."} for n in range(8)]
    round = opened_on_server(tmp_path, items=items, care=Care(session_items=1))
    for dataset in server.datasets.values():
        dataset["guidelines"] = "Be quick."
    lines = [line for line in h2htalk_here("round", "status", round.path).stdout.splitlines() if "set1" in line]
    assert lines == [
        "round-set1-en-01: changed on the server: other guidelines; restore its settings",
        "  the same in 7 more places: round-set1-en-02; round-set1-en-03; round-set1-en-04; round-set1-en-05; "
        "round-set1-en-06; and 2 more",
    ]
