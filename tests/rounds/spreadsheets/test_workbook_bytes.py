"""Workbooks are saved in memory: nothing of them lies in the folder for temporary files, also after a kill."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from openpyxl import load_workbook

from h2htalk.data.files import write_jsonl
from h2htalk.rounds.annotator_erasure import erase_annotator
from h2htalk.rounds.lifecycle import open_round, round_status
from h2htalk.rounds.round_deletion import delete_round
from h2htalk.rounds.settings import make_spec
from support import spreadsheet_rounds as made
from support.kills import killed_at
from support.rounds import NAMES, begin, people


def test_no_word_of_a_sheet_lies_in_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that was killed left sheets in the folder for temporary files, where no erasure looks."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no folder for temporary files"))
    round = made.opened(tmp_path, "expert", [made.item(1)])
    monkeypatch.undo()
    book = load_workbook(made.workbook_path(round, "anna"))
    texts = [str(cell.value) for sheet in book for row in sheet.iter_rows() for cell in row]
    assert any("My tomatoes have their first flowers!" in text for text in texts)


def half_written(folder: Path) -> list[str]:
    return [
        path.name
        for path in folder.rglob(".*")
        if path.is_file() and path.name.rpartition(".")[2].isdigit()
    ]


def test_the_next_command_removes_what_a_kill_left_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workbook that was being written stayed for good: no command but an erasure looked for it."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    write_jsonl(tmp_path / "items.jsonl", [made.item(n) for n in range(2)])
    listed = people(tmp_path / "people.csv", *NAMES[:2])
    spec = make_spec(
        "expert", str(tmp_path / "items.jsonl"), {"annotators": str(listed), "overlap": 2}
    )
    left: set[str] = set()
    for step in range(1, 80):
        out = tmp_path / f"killed-{step}"
        killed = killed_at(step, partial(open_round, spec, out))
        left.update(name.rpartition(".")[0] for name in half_written(out))
        open_round(spec, out)
        assert half_written(out) == [], step
        assert [*temporary.iterdir()] == []
        shutil.rmtree(out)
        if not killed:
            break
    assert f".{NAMES[0]}.xlsx" in left  # a kill did come in the middle of a workbook


def test_no_command_leaves_a_half_written_workbook(tmp_path: Path) -> None:
    path = begin(tmp_path, people=2)
    sheet = path / "spreadsheets" / f"{NAMES[0]}.xlsx"
    kept = path / "spreadsheets" / ".notes"
    kept.write_text("mine")

    def leave() -> Path:
        unfinished = sheet.with_name(f".{sheet.name}.4711")
        shutil.copy(sheet, unfinished)
        return unfinished

    unfinished = leave()
    os.truncate(unfinished, 1000)
    round_status(path)
    assert not unfinished.exists()
    leave()
    removal = delete_round(path, force=True)
    assert not unfinished.exists()
    assert not any("4711" in line for line in removal.left)
    assert kept.read_text() == "mine"


def test_files_of_the_user_that_look_half_written_stay(tmp_path: Path) -> None:
    """`round status` removed `.backup.2024`, and files of a version control, without a word."""
    path = begin(tmp_path, people=3)
    names = (
        *(
            ".backup.2024",
            ".notes.txt.1",
            ".plan.json.7",
            "spreadsheets/.notes.1",
            "spreadsheets/.sent.xlsx.2024",
        ),
        *(
            "private/.mine.csv.3",
            "guidelines/.draft.2",
            ".git/x/.y.5",
            ".git/.items.jsonl.5",
            "mine/.items.jsonl.5",
        ),
        ".vscode/.round.json.8",
    )
    files = [path / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine", encoding="utf-8")
    names = (
        *(".items.jsonl.5", "private/.payment.before-2.csv.5", "guidelines/.en.md.5"),
        *(f"spreadsheets/.{NAMES[1]}.xlsx.5", f"spreadsheets/.{NAMES[1]} set 2.xlsx.5"),
    )
    unfinished = [path / name for name in names]
    for file in unfinished:
        file.write_text("half", encoding="utf-8")
    round_status(path)
    assert [str(file) for file in unfinished if file.exists()] == []
    erase_annotator(path, NAMES[0], keep_payments=False)
    delete_round(path, force=True)
    assert [str(file) for file in files if not file.exists()] == []


def test_an_erasure_removes_a_half_written_workbook(tmp_path: Path) -> None:
    path = begin(tmp_path, people=3)
    sheet = path / "spreadsheets" / f"{NAMES[0]}.xlsx"
    unfinished = sheet.with_name(f".{sheet.name}.4711")
    shutil.copy(sheet, unfinished)
    erase_annotator(path, NAMES[0], keep_payments=False)
    assert not unfinished.exists()
    assert not sheet.exists()
