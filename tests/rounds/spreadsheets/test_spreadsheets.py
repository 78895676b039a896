"""Spreadsheets from opening to closing, and later changes of stored annotations."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import spreadsheet_rounds as made
from kills import interrupted_at

from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.questions import questions_for
from h2htalk.rounds.round_folder import read_state
from h2htalk.rounds.spreadsheets import platform
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform
from h2htalk.rounds.texts.interface import interface_text, label_text, rating_text

CROWD = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}
ANSWERS: dict[str, dict[str, Any]] = {
    "crowd": {"subtask": "itinerary_basic", "keep": "drop", "quality": 2},
    "expert": {"accuracy": 5, "consistency": 1, "domain_compliance": 3, "keep": "keep", "comment": "好 =1\nwell"},
    "adjudication": {"rating": 0, "comment": "@home"},
    "safety": {"perception": 1, "violation": "yes", "violations": ("privacy", "other"), "comment": "x"},
}


def shown_answers(kind: str, language: Any) -> dict[str, Any]:
    """`ANSWERS` as an annotator chooses them in a workbook."""
    typed: dict[str, Any] = {}
    for question in questions_for(kind, []):  # type: ignore[arg-type]
        value = ANSWERS[kind][question.name]
        if question.form == "rating":
            typed[question.name] = rating_text(question.name, value, language)
        elif question.form == "label":
            typed[question.name] = label_text(question.name, value, language)
        elif question.form == "labels":
            typed |= {f"{question.name}:{label}": interface_text("yes", language) for label in value}
        else:
            typed[question.name] = value
    return typed


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", list(ANSWERS))
def test_answers_of_every_kind_are_read(tmp_path: Path, kind: str, language: str) -> None:
    items = [made.item(n, language) for n in range(2)]
    expected = {(f"{language}-item-1", name): value for name, value in ANSWERS[kind].items()}
    round = made.opened(tmp_path, kind, items)
    made.fill(made.workbook_path(round), {made.places(round)[f"{language}-item-1"]: shown_answers(kind, language)})
    assert (made.values(made.collect(round)), made.collect(round).mistakes) == (expected, ())


def test_adjudications_accept_the_choices_of_the_item(tmp_path: Path) -> None:
    items = [made.item(1, labels=["keep", "drop"]), made.item(2, labels=["dialogue_base", "=cmd", "a, b"])]
    round = made.opened(tmp_path, "adjudication", items)
    at = made.places(round)
    made.fill(made.workbook_path(round), {at["en-item-1"]: {"label": "Drop"}, at["en-item-2"]: {"label": "'=cmd "}})
    assert made.values(made.collect(round)) == {("en-item-1", "label"): "drop", ("en-item-2", "label"): "=cmd"}
    made.fill(made.workbook_path(round), {at["en-item-1"]: {"label": "Everyday reply"}})
    (mistake,) = made.collect(round).mistakes
    assert "choose from “Keep”, “Drop”" in mistake


def test_opening_again_writes_only_missing_spreadsheets(tmp_path: Path) -> None:
    round = made.opened(tmp_path, "crowd", [made.item(1)], annotators="anna,en;bert,en")
    made.fill(made.workbook_path(round), {1: CROWD})
    made.workbook_path(round).rename(made.workbook_path(round, "ANNA"))
    before = {path.name: path.read_bytes() for path in (round.path / "spreadsheets").iterdir()}
    _, messages = open_round(round.spec(), round.path)
    assert "0 of them new" in messages[0]
    assert {path.name: path.read_bytes() for path in (round.path / "spreadsheets").iterdir()} == before
    made.workbook_path(round, "bert").unlink()
    assert "1 of them new" in SpreadsheetPlatform().publish(read_state(round))[0]
    assert len(made.collect(round).annotations) == 3


def test_interrupted_and_later_spreadsheets(tmp_path: Path) -> None:
    round = made.opened(tmp_path, "crowd", [made.item(1)])
    made.workbook_path(round).unlink()
    assert interrupted_at(0, partial(SpreadsheetPlatform().publish, read_state(round)))
    assert list((round.path / "spreadsheets").iterdir()) == []
    SpreadsheetPlatform().publish(read_state(round))
    assert made.workbook_path(round).exists()
    # File names of later assignment sets are unique.
    items = [made.item(1), made.item(2)]
    round = made.opened(tmp_path / "later", "crowd", items, annotators="anna,en;anna-2,en", overlap=1)
    number = len(made.known(round, "anna-2").assignments)
    made.fill(made.workbook_path(round, "anna-2"), {n: {"skip": "yes"} for n in range(1, number + 1)})
    reopen_round(round.path)
    assert made.stems(round) == ["anna", "anna-2", "anna set 2"]
    made.fill(made.workbook_path(round, "anna set 2"), {1: CROWD})
    assert {question for _, question in made.values(made.collect(round))} == {"skipped", *CROWD}
    # Stored readings may be damaged.
    round = made.opened(tmp_path / "damaged", "crowd", items, annotators="anna,en;bert,en")
    made.fill(made.workbook_path(round), {1: CROWD, 2: {"keep": "best"}})
    first = made.collect(round)
    path = round.private / platform.STORED_READINGS
    assert path.stat().st_mode & 0o077 == 0
    path.write_text('{"key": 1')
    assert made.collect(round) == first


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps who may read a file elsewhere")
def test_only_the_owner_can_read_spreadsheets(tmp_path: Path) -> None:
    def modes() -> set[str]:
        folder = round.path / "spreadsheets"
        return {oct(path.stat().st_mode & 0o777) for path in (folder, *folder.iterdir())}

    round = made.opened(tmp_path, "crowd", [made.item(1, crisis=True)])
    assert modes() == {"0o700", "0o600"}
    # As an earlier version or a mail program creates them.
    (round.path / "spreadsheets").chmod(0o755)
    (round.path / "spreadsheets" / "anna.xlsx").chmod(0o644)
    made.collect(round)
    assert modes() == {"0o700", "0o600"}


def test_skips_and_answers_replace_each_other(tmp_path: Path) -> None:
    round = made.opened(tmp_path, "crowd", [made.item(1)])
    made.fill(made.workbook_path(round), {1: {"skip": "跳过"}})
    assert round_status(round.path).skipped == 1
    made.fill(made.workbook_path(round), {1: CROWD | {"skip": None}})
    status = round_status(round.path)
    assert (status.skipped, status.completed) == (0, 1)
    made.fill(made.workbook_path(round), {1: {"skip": "Skip this item"}})
    status = round_status(round.path)
    assert (status.skipped, status.completed, status.mistakes) == (1, 0, ())
    assert "the item is skipped; its answers" in status.notes[0]


def test_empty_rows_withdraw_annotations_and_invalid_ones_do_not(tmp_path: Path) -> None:
    """Until an invalid row is corrected, the earlier annotations count, and a note names the items."""
    round = made.opened(tmp_path, "crowd", [made.item(n) for n in range(5)])
    path = made.workbook_path(round)
    made.fill(path, dict.fromkeys(range(1, 6), CROWD))
    assert round_status(round.path).completed == 5
    made.fill(path, {1: {"quality": "best"}, 2: {"keep": None}, 3: {"skip": "Skip"}, 4: dict.fromkeys(CROWD)})
    with made.edited(path) as book:
        sheet, row = made.session_of(book, 5)
        sheet.cell(row, made.keys_of(sheet).index("text") + 1).value = "My"
    assert len(made.collect(round).started) == 1
    status = round_status(round.path)
    assert (status.completed, status.skipped, len(status.mistakes)) == (3, 1, 3)
    assert status.notes[-2].startswith("anna: 1 item annotated earlier and now empty")
    assert status.notes[-1].startswith("anna: 3 items annotated earlier cannot be read now (item 1, 2, 5)")
    _, settled = close_round(round.path, force=True)
    numbers = made.places(round)
    assert {numbers[one.item] for one in settled if one.label is not None} == {1, 2, 5}


@pytest.mark.parametrize("spoilt", [None, "text", "sheet", "file"])
def test_blank_or_unreadable_files_withdraw_nothing(tmp_path: Path, spoilt: str | None) -> None:
    """A blank copy without one of its sheets withdrew the annotations of the other sheets."""
    items, care = [made.item(n) for n in range(4)], {"session_items": 2, "crisis_share": 0.5}
    round = made.opened(tmp_path, "crowd", items, care=care)
    path = made.workbook_path(round)
    blank = path.read_bytes()
    made.fill(path, dict.fromkeys(range(1, 5), CROWD))
    assert round_status(round.path).completed == 4
    path.write_bytes(blank)
    if spoilt in ("text", "sheet"):
        with made.edited(path) as book:
            if spoilt == "sheet":
                del book["Session 1"]
            else:
                book["Session 1"]["B3"].value = "My"
    elif spoilt == "file":
        path.write_bytes(b"PK and no more")
    status = round_status(round.path)
    assert (status.completed, status.new) == (4, 0)
    assert status.notes[-1].startswith("anna: 4 items annotated earlier cannot") or "of anna" in status.notes[-1]


def test_files_are_identified_by_their_code(tmp_path: Path) -> None:
    """A browser calls the second download `bert (1).xlsx`; a blank original beside it is ignored."""
    round = made.opened(tmp_path, "crowd", [made.item(1), made.item(2)], annotators="anna,en;bert,en")
    folder = round.path / "spreadsheets"
    blank = made.workbook_path(round, "bert").read_bytes()
    made.fill(made.workbook_path(round, "bert"), {1: CROWD, 2: CROWD})
    made.workbook_path(round, "bert").rename(folder / "Bert (1).xlsx")
    bert = made.known(round, "bert").annotator.id
    for beside in (None, blank):
        if beside is not None:
            made.workbook_path(round, "bert").write_bytes(beside)
        pulled = made.collect(round)
        assert ({one.annotator for one in pulled.annotations}, len(pulled.annotations)) == ({bert}, 6)
        assert pulled.mistakes == ()
    assert round_status(round.path).completed == 2
    # Of two files that are filled in, none counts until one is removed.
    made.fill(made.workbook_path(round, "bert"), {1: CROWD | {"quality": 1}})
    status = round_status(round.path)
    assert (status.completed, status.new) == (2, 0)
    assert "several files of bert are filled in, so none is read" in status.mistakes[0]
    (folder / "Bert (1).xlsx").unlink()
    assert round_status(round.path).completed == 1


def test_other_files_are_mistakes_notes_or_ignored(tmp_path: Path) -> None:
    round = made.opened(tmp_path, "crowd", [made.item(1)])
    folder = round.path / "spreadsheets"
    for name in ("~$anna.xlsx", ".~lock.anna.xlsx#", ".DS_Store", "Thumbs.db", "desktop.ini"):
        (folder / name).write_bytes(b"x")
    assert (made.collect(round).mistakes, made.collect(round).notes) == ((), ())
    for name in ("anna.ods", "anna.XLS", "anna.csv", "letter.docx"):
        (folder / name).write_bytes(b"x")
    (folder / "gina.xlsx").mkdir()
    pulled = made.collect(round)
    message = "not read; the files of this round are .xlsx files"
    assert list(pulled.mistakes) == [
        f"spreadsheets/{name}: {message}" for name in ("anna.XLS", "anna.csv", "anna.ods", "gina.xlsx")
    ]
    assert pulled.notes == (f"spreadsheets/letter.docx: {message}",)


@pytest.mark.parametrize("name", made.SAME)
def test_spreadsheets_of_other_rounds_are_not_read(tmp_path: Path, name: str) -> None:
    round = made.opened(tmp_path / "one", "crowd", [made.item(1)])
    other = made.opened(tmp_path / "two", "crowd", [made.item(1)], name=name)
    made.fill(made.workbook_path(other), {1: CROWD})
    made.workbook_path(round).write_bytes(made.workbook_path(other).read_bytes())
    (mistake,) = made.collect(round).mistakes
    assert "it is no spreadsheet of the round 'round'" in mistake
