"""Spreadsheets from opening to closing: content, changes, mistakes by file, sheet and cell, malicious files."""

from __future__ import annotations

import os
import re
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from h2htalk.errors import RoundError
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.questions import (
    KEEP_LABELS,
    QUESTIONS,
    READING_QUESTIONS,
    SUBTASK,
    questions_for,
)
from h2htalk.rounds.round_folder import RoundFolder, read_state
from h2htalk.rounds.spreadsheets import codes, platform, xlsx_reading
from h2htalk.rounds.spreadsheets.cells import add_styles, write_cell
from h2htalk.rounds.spreadsheets.item_text import cell_text
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform
from h2htalk.rounds.spreadsheets.xlsx_writing import MAX_PROMPT_TITLE, write_workbook
from h2htalk.rounds.texts.interface import interface_text, label_text, question_title, rating_text
from support import spreadsheet_rounds as made
from support.kills import interrupted_at
from support.tables import table

CROWD = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good", "harmful": "No"}
ANSWERS: dict[str, dict[str, Any]] = {
    "crowd": {"subtask": "itinerary_basic", "keep": "drop", "quality": 2, "harmful": "unsure"},
    "expert": {
        "accuracy": 5,
        "consistency": 1,
        "domain_compliance": 3,
        "keep": "keep",
        "harmful": "yes",
        "comment": "好 =1\nwell",
    },
    "adjudication": {"rating": 0, "comment": "@home"},
    "safety": {
        "perception": 1,
        "violation": "yes",
        "violations": ("privacy", "other"),
        "comment": "x",
    },
}


def shown_answers(kind: str, language: Any) -> dict[str, Any]:
    """`ANSWERS` as an annotator chooses them in a workbook."""
    typed: dict[str, Any] = {}
    reading = [name for name in ANSWERS[kind] if name in READING_QUESTIONS]
    for question in questions_for(kind, [], reading):  # type: ignore[arg-type]
        value = ANSWERS[kind][question.name]
        if question.form == "rating":
            typed[question.name] = rating_text(question.name, value, language)
        elif question.form == "label":
            typed[question.name] = label_text(question.name, value, language)
        elif question.form == "labels":
            typed |= {
                f"{question.name}:{label}": interface_text("yes", language) for label in value
            }
        else:
            typed[question.name] = value
    return typed


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", list(ANSWERS))
def test_answers_of_every_kind_are_read(tmp_path: Path, kind: str, language: str) -> None:
    items = [made.item(n, language) for n in range(2)]
    expected = {(f"{language}-item-1", name): value for name, value in ANSWERS[kind].items()}
    round = made.opened(tmp_path, kind, items)
    made.fill(
        made.workbook_path(round),
        {made.places(round)[f"{language}-item-1"]: shown_answers(kind, language)},
    )
    assert (made.values(made.collect(round)), made.collect(round).mistakes) == (expected, ())


def test_adjudications_accept_the_choices_of_the_item(tmp_path: Path) -> None:
    items = [
        made.item(1, labels=["keep", "drop"]),
        made.item(2, labels=["dialogue_base", "=cmd", "a, b"]),
    ]
    round = made.opened(tmp_path, "adjudication", items)
    at = made.places(round)
    made.fill(
        made.workbook_path(round),
        {at["en-item-1"]: {"label": "Drop"}, at["en-item-2"]: {"label": "'=cmd "}},
    )
    assert made.values(made.collect(round)) == {
        ("en-item-1", "label"): "drop",
        ("en-item-2", "label"): "=cmd",
    }
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
    assert {
        path.name: path.read_bytes() for path in (round.path / "spreadsheets").iterdir()
    } == before
    made.workbook_path(round, "bert").unlink()
    assert "1 of them new" in SpreadsheetPlatform().publish(read_state(round))[0]
    assert len(made.collect(round).annotations) == 4


def test_interrupted_and_later_spreadsheets(tmp_path: Path) -> None:
    round = made.opened(tmp_path, "crowd", [made.item(1)])
    made.workbook_path(round).unlink()
    assert interrupted_at(0, partial(SpreadsheetPlatform().publish, read_state(round)))
    assert list((round.path / "spreadsheets").iterdir()) == []
    SpreadsheetPlatform().publish(read_state(round))
    assert made.workbook_path(round).exists()
    # File names of later assignment sets are unique.
    items = [made.item(1), made.item(2)]
    round = made.opened(
        tmp_path / "later", "crowd", items, annotators="anna,en;anna-2,en", overlap=1
    )
    number = len(made.known(round, "anna-2").assignments)
    made.fill(
        made.workbook_path(round, "anna-2"), {n: {"skip": "yes"} for n in range(1, number + 1)}
    )
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
    made.fill(
        path,
        {1: {"quality": "best"}, 2: {"keep": None}, 3: {"skip": "Skip"}, 4: dict.fromkeys(CROWD)},
    )
    with made.edited(path) as book:
        sheet, row = made.session_of(book, 5)
        sheet.cell(row, made.keys_of(sheet).index("text") + 1).value = "My"
    assert len(made.collect(round).started) == 1
    status = round_status(round.path)
    assert (status.completed, status.skipped, len(status.mistakes)) == (3, 1, 2)
    assert status.notes[-2].startswith("anna: 1 item annotated earlier and now empty")
    assert status.notes[-1].startswith(
        "anna: 3 items annotated earlier cannot be read now (item 1, 2, 5)"
    )
    _, settled = close_round(round.path, force=True)
    numbers = made.places(round)
    assert {numbers[one.item] for one in settled if one.label is not None} == {1, 2, 5}


@pytest.mark.parametrize("spoilt", [None, "text", "sheet", "file"])
def test_blank_or_unreadable_files_withdraw_nothing(tmp_path: Path, spoilt: str | None) -> None:
    """A blank copy without one of its sheets withdrew the annotations of the other sheets."""
    items = [made.item(n) for n in range(4)]
    care = {"session_items": 2, "crisis_share": 0.5}
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
    assert (
        status.notes[-1].startswith("anna: 4 items annotated earlier cannot")
        or "of anna" in status.notes[-1]
    )


def test_files_are_identified_by_their_code(tmp_path: Path) -> None:
    """A browser calls the second download `bert (1).xlsx`; a blank original beside it is ignored."""
    round = made.opened(
        tmp_path, "crowd", [made.item(1), made.item(2)], annotators="anna,en;bert,en"
    )
    folder = round.path / "spreadsheets"
    blank = made.workbook_path(round, "bert").read_bytes()
    made.fill(made.workbook_path(round, "bert"), {1: CROWD, 2: CROWD})
    made.workbook_path(round, "bert").rename(folder / "Bert (1).xlsx")
    bert = made.known(round, "bert").annotator.id
    for beside in (None, blank):
        if beside is not None:
            made.workbook_path(round, "bert").write_bytes(beside)
        pulled = made.collect(round)
        assert ({one.annotator for one in pulled.annotations}, len(pulled.annotations)) == (
            {bert},
            8,
        )
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
        f"spreadsheets/{name}: {message}"
        for name in ("anna.XLS", "anna.csv", "anna.ods", "gina.xlsx")
    ]
    assert pulled.notes == (f"spreadsheets/letter.docx: {message}",)
    # Spreadsheets of other rounds: a different one, and the same one in another folder.
    round = made.opened(tmp_path / "one", "crowd", [made.item(1)])
    for name in ("other", "round"):
        other = made.opened(tmp_path / "two", "crowd", [made.item(1)], name=name)
        made.fill(made.workbook_path(other), {1: CROWD})
        made.workbook_path(round).write_bytes(made.workbook_path(other).read_bytes())
        (mistake,) = made.collect(round).mistakes
        assert "it is no spreadsheet of the round 'round'" in mistake


def book_of(round: RoundFolder) -> Any:
    return load_workbook(made.workbook_path(round))


def row_of(round: RoundFolder, name: str) -> dict[str, Any]:
    """Column key -> cell, of an item."""
    sheet, row = made.session_of(book_of(round), made.places(round)[name])
    return {key: sheet.cell(row, at) for at, key in enumerate(made.keys_of(sheet), 1)}


def offered(round: RoundFolder, name: str, key: str) -> list[str]:
    """What a cell's drop-down list offers."""
    book = book_of(round)
    sheet, row = made.session_of(book, made.places(round)[name])
    cell = sheet.cell(row, made.keys_of(sheet).index(key) + 1).coordinate
    (rule,) = (rule for rule in sheet.data_validations.dataValidation if cell in rule.sqref)
    assert (rule.type, rule.errorStyle, rule.showErrorMessage) == ("list", "stop", True)
    assert len(rule.promptTitle) <= MAX_PROMPT_TITLE
    found = re.fullmatch(r"'lists'!\$(\w+)\$1:\$\w+\$(\d+)", rule.formula1)
    assert found is not None
    return [book["lists"][f"{found[1]}{at}"].value for at in range(1, int(found[2]) + 1)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sheets_headings_and_choices(tmp_path: Path, language: Any) -> None:
    round = made.opened(tmp_path, "crowd", [made.item(1, language)])
    book = book_of(round)
    name = f"{language}-item-1"
    assert book.sheetnames == [
        interface_text("guidelines", language),
        made.TITLES[language],
        "lists",
        "codes",
    ]
    assert {book["lists"].sheet_state, book["codes"].sheet_state} == {"hidden"}
    assert question_title("keep", language) in [
        cell.value for cell in book[made.TITLES[language]][2]
    ]
    assert (
        offered(round, name, "keep") == {"en": ["Keep", "Drop"], "zh": ["留下", "删掉"]}[language]
    )
    assert len(offered(round, name, "subtask")) == 12
    assert offered(round, name, "quality")[3] == {"en": "4: good", "zh": "4：较好"}[language]
    assert len(offered(round, name, "skip")) == 1


def test_texts_and_suggestions_of_an_item_reveal_nothing_else(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "Hello!\nTwo lines."},
        {"role": "companion", "content": "=SUM(A1)"},
    ]
    record = made.item(1, prompt=said, context={"memories": "likes tea"}, note="Which is right?")
    cells = row_of(made.opened(tmp_path / "texts", "expert", [record]), "en-item-1")
    assert cells["text"].value == (
        "Which is right?\n\nWhat the companion remembers\nlikes tea\n\n"
        "Conversation\nUser: Hello!\nTwo lines.\nCompanion: =SUM(A1)"
    )
    assert cells["reply"].value.startswith("Reply to judge\nAfter all")
    assert "\n\nProposed reply\n" in cells["reply"].value
    # Suggestions only if the round shows them.
    items = [made.item(1, suggested={"keep": "drop", "quality": 2}), made.item(2)]
    assert "suggestion" not in row_of(made.opened(tmp_path / "blind", "crowd", items), "en-item-1")
    seeing = made.opened(tmp_path / "seeing", "crowd", items, suggest=True)
    assert row_of(seeing, "en-item-1")["suggestion"].value.splitlines()[1::2] == ["Drop", "2: poor"]
    assert row_of(seeing, "en-item-2")["suggestion"].value is None
    # Files do not reveal ids, subtasks or gold answers.
    items = [
        made.item(n, subtask="itinerary_basic", gold={"keep": "drop"}, id=f"hidden-id-{n}")
        for n in range(3)
    ]
    with zipfile.ZipFile(made.workbook_path(made.opened(tmp_path, "expert", items))) as parts:
        texts = [parts.read(part) for part in parts.namelist()]
    assert not any(
        hint in text for text in texts for hint in (b"hidden-id", b"itinerary_basic", b'"gold"')
    )


def test_no_cell_is_a_formula_or_an_error(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@x", "＝1", "#N/A", "#REF!", " \n=1", "\x01\u202e\ufffe_x000D_\t"]
    items = [
        made.item(
            n,
            prompt=None,
            context={text: text},
            response=text,
            reference=text,
            note=text,
            labels=["@b", "c"],
        )
        for n, text in enumerate(texts)
    ]
    items[0]["labels"] = ["=a", "#N/A"]
    round = made.opened(tmp_path, "adjudication", items)
    with zipfile.ZipFile(made.workbook_path(round)) as parts:
        for name in parts.namelist():
            assert not re.search(rb'<f[ >]|t="e"', parts.read(name))
    assert offered(round, "en-item-0", "label") == ["'=a", "#N/A"]
    assert offered(round, "en-item-5", "label") == ["'@b", "c"]
    for line in book_of(round).worksheets[1].iter_rows(min_row=3):
        for cell in line:
            assert not str(cell.value or "").lstrip().startswith(("=", "+", "-", "@", "＝"))
    # The file contains `_x005F_x000D_`, which programs decode.
    assert "\\x01\\u202e\\ufffe_x005F_x000D_\\t" in row_of(round, "en-item-8")["text"].value
    made.fill(made.workbook_path(round), {made.places(round)["en-item-8"]: {"label": "c"}})
    assert made.collect(round).mistakes == ()


def test_crises_have_a_notice_and_a_linked_text(tmp_path: Path) -> None:
    items = [made.item(n) for n in range(4)]
    items += [
        made.item(
            9, crisis=True, prompt="I cannot go on.", reference="I am here.", note="About keep."
        )
    ]
    round = made.opened(tmp_path, "crowd", items)
    book = book_of(round)
    number = made.places(round)["en-item-9"]
    cells = row_of(round, "en-item-9")
    notices = [interface_text(name, "en") for name in ("crisis_notice", "unread_notice")]
    assert cells["notice"].value.splitlines() == notices
    assert cells["text"].value == f"The text of item {number} is on the sheet “Texts”."
    assert cells["reply"].value is None
    assert cells["text"].hyperlink.location == "'Texts'!C2"
    # Texts are after the sessions, and not in them.
    assert book.sheetnames == ["Guidelines", "Session 1", "Texts", "lists", "codes"]
    assert not any("cannot go on" in str(c.value) for r in book["Session 1"].iter_rows() for c in r)
    lines = [
        (line[1], line[2])
        for line in book["Texts"].iter_rows(min_row=2, values_only=True)
        if line[2]
    ]
    assert lines[:3] == [(None, f"Item {number}"), *((None, notice) for notice in notices)]
    assert (None, "About keep.") in lines
    assert ("User", "I cannot go on.") in lines


def test_texts_elsewhere_lead_back_to_their_rows(tmp_path: Path) -> None:
    """From the sheet of texts one had to find the item's row again, in one of several sheets."""
    items = [made.item(n, crisis=n in (0, 3)) for n in range(6)]
    care = {"session_items": 3, "crisis_share": 0.5}
    round = made.opened(tmp_path, "expert", items, care=care)
    book = load_workbook(made.workbook_path(round))
    texts = book["Texts"]
    links = [cell for (cell,) in texts.iter_rows(min_col=3, max_col=3) if cell.hyperlink]
    assert len(links) == 2
    for cell in links:
        number = texts.cell(cell.row, 1).value
        sheet, row = made.session_of(book, number)
        assert cell.value == f"Back to item {number}"
        assert cell.hyperlink.location == f"'{sheet.title}'!A{row}"
    # The line is part of the texts that are checked when the file comes back.
    made.fill(made.workbook_path(round), {1: shown_answers("expert", "en")})
    assert made.collect(round).mistakes == ()


def test_items_have_titles_in_their_own_language(tmp_path: Path) -> None:
    """A Chinese item in the workbook of somebody who reads English first had English titles."""
    context = {"memories": "她养了一只猫。", "hobbies": "画画。"}
    items = [
        made.item(1),
        made.item(2, "zh", context=context),
        made.item(3, "zh", crisis=True, context=context),
    ]
    round = made.opened(tmp_path, "expert", items, care={"crisis_share": 0.5})
    book = load_workbook(made.workbook_path(round))
    numbers = made.places(round)
    sheet, row = made.session_of(book, numbers["zh-item-2"])
    cells = dict(zip(made.keys_of(sheet), (cell.value for cell in sheet[row]), strict=False))
    assert cells["text"].startswith("陪伴者记得的事\n她养了一只猫。")
    assert "用户：番茄" in cells["text"]
    assert cells["reply"].startswith(("备选回复", "待评回复"))
    lines = [cell.value for (cell,) in book["Texts"].iter_rows(min_col=3, max_col=3)]
    assert "陪伴者记得的事" in lines
    assert interface_text("crisis_notice", "zh") in lines
    assert "What the companion remembers" not in lines


def test_long_texts_are_on_a_separate_sheet(tmp_path: Path) -> None:
    texts = [f"{n}: " + "walk by the river " * (60 if n == 7 else 6) for n in range(40)]
    said = [{"role": ("user", "companion")[n % 2], "content": text} for n, text in enumerate(texts)]
    said[11]["content"] = "很长的一句话，" * 9_000
    round = made.opened(tmp_path, "crowd", [made.item(1, prompt=said), made.item(2)])
    assert row_of(round, "en-item-1")["text"].value.startswith("The text of item")
    assert row_of(round, "en-item-2")["text"].value.startswith("User: ")
    written: list[str] = []
    for speaker, cell in book_of(round)["Texts"].iter_rows(min_row=5, min_col=2, max_col=3):
        if speaker.value:
            written.append("")
        if cell.value and len(written) <= 40:
            written[-1] += cell.value
            assert len(cell.value) <= 600  # what the highest row that Excel displays can hold
    assert [one.split() for one in written[:39]] == [one["content"].split() for one in said[:39]]


@pytest.fixture
def crowd(tmp_path: Path) -> RoundFolder:
    """A round with four items in two sessions, all annotated."""
    items = [made.item(n) for n in range(4)]
    care = {"session_items": 2, "crisis_share": 0.5}
    round = made.opened(tmp_path, "crowd", items, care=care)
    made.fill(made.workbook_path(round), dict.fromkeys(range(1, 5), CROWD))
    return round


def test_conditional_questions(tmp_path: Path) -> None:
    round = made.opened(tmp_path, "safety", [made.item(1)])
    path = made.workbook_path(round)
    made.fill(path, {1: {"perception": 5, "violation": "no", "violations:privacy": "yes"}})
    mistake = made.only(round, 0)
    assert mistake.startswith(made.where(path, 1, "violations:privacy"))
    assert "only if violation is yes" in mistake
    # As on servers: the answer that something could harm counts, and the note says what to ask for.
    made.fill(path, {1: {"violation": "yes", "violations:privacy": None}})
    status = round_status(round.path)
    assert (status.completed, status.mistakes) == (1, ())
    place = made.where(path, 1, "violations:harmful_advice")
    assert (
        status.notes[-1]
        == f"{place}: violations is empty: the row counts without it, but ask for it"
    )


def test_half_an_answer_is_no_mistake_and_the_earlier_answer_counts(tmp_path: Path) -> None:
    """A row in the middle was a mistake, and the round could not be closed although all items were answered."""
    round = made.opened(tmp_path, "crowd", [made.item(n) for n in range(3)])
    path = made.workbook_path(round)
    made.fill(path, {1: CROWD, 2: {"keep": "Keep"}})
    status = round_status(round.path)
    assert (status.completed, status.mistakes) == (1, ())
    assert [row.started for row in status.progress] == [1, 1]
    (begun,) = [note for note in status.notes if "this row is begun" in note]
    assert begun.startswith(made.where(path, 2, "keep"))
    assert f"{made.where(path, 2, 'subtask')} (subtask)" in begun
    # Answered, then begun anew: the earlier answer counts, and nothing hinders closing.
    made.fill(path, {1: CROWD, 2: CROWD, 3: CROWD})
    round_status(round.path)
    made.fill(path, {2: CROWD | {"keep": "Drop", "quality": None}})
    status = round_status(round.path)
    assert (status.completed, status.new, status.mistakes) == (3, 0, ())
    assert [row.started for row in status.progress] == [1, 1]
    _, settled = close_round(round.path)
    assert {one.label for one in settled if one.question == "keep"} == {"keep"}


def put(**cells: Any) -> Callable[[Any], None]:
    def change(sheet: Any) -> None:
        for cell, value in cells.items():
            sheet[cell].value = value

    return change


@pytest.mark.parametrize(
    ("change", "message", "left"),
    [
        (
            lambda sheet: sheet.delete_rows(3),
            "spreadsheets/anna.xlsx: the row of item 1 is missing",
            12,
        ),
        (
            put(A4=99, E4=None, F4=None, G4=None, H4=None),
            "row 4: this spreadsheet has no item 99",
            12,
        ),
        (put(C4="Something else"), "Session 1, row 4: the text of item 2 was changed", 12),
        (put(K3="I meant Drop"), "Session 1, K3: 'I meant Drop' is outside the table", 16),
        (put(F1="mine"), "Session 1: the column 'keep' is missing in row 1", 8),
    ],
)
def test_a_changed_table_is_wrong(
    crowd: RoundFolder, change: Callable[[Any], None], message: str, left: int
) -> None:
    with made.edited(made.workbook_path(crowd)) as book:
        change(book["Session 1"])
    pulled = made.collect(crowd)
    assert len(pulled.annotations) == left
    assert any(message in mistake for mistake in pulled.mistakes)


def test_moved_rows_are_read_and_mixed_rows_are_mistakes(crowd: RoundFolder) -> None:
    before = made.values(made.collect(crowd))
    with made.edited(made.workbook_path(crowd)) as book:
        sheet = book["Session 1"]
        sheet.move_range("A3:H3", rows=2)
        sheet.insert_cols(4)
        sheet.insert_rows(4)
        book["Session 2"].title = "mine"
        book.create_sheet("Sums")["A1"] = "=1+1"
        # Cells far outside the table are not read.
        sheet["XFD1048576"] = "x"
        sheet.merge_cells("A900:C901")
    assert (made.values(made.collect(crowd)), made.collect(crowd).mistakes) == (before, ())
    with made.edited(made.workbook_path(crowd)) as book:
        # Without the numbers of the items.
        book["mine"].move_range("B3:I3", rows=2)
        book["mine"].move_range("B4:I5", rows=-1)
    pulled = made.collect(crowd)
    assert (len(pulled.annotations), len(pulled.mistakes)) == (8, 2)
    with made.edited(made.workbook_path(crowd)) as book:
        book["mine"]["A4"].value = book["mine"]["A3"].value
        book["mine"]["F4"].value = "Drop"
    assert any("occurs twice" in mistake for mistake in made.collect(crowd).mistakes)


@pytest.mark.parametrize("at", [1, 2, 4])
@pytest.mark.parametrize("text", ["", "my notes"])
def test_a_row_inserted_into_a_sheet(crowd: RoundFolder, at: int, text: str) -> None:
    """Above the hidden keys it made the whole sheet unread, between keys and headings it made them a row."""
    with made.edited(made.workbook_path(crowd)) as book:
        book["Session 1"].insert_rows(at)
        book["Session 1"].cell(at, 4).value = text
    pulled = made.collect(crowd)
    assert len(pulled.annotations) == 16
    expected = f"spreadsheets/anna.xlsx: Session 1, D{at}: 'my notes' is outside the table; move or delete it"
    assert list(pulled.mistakes) == ([expected] if text else [])


def test_broken_files_do_not_affect_others(tmp_path: Path) -> None:
    round = made.opened(tmp_path, "crowd", [made.item(1)], annotators="anna,en;bert,en")
    made.fill(made.workbook_path(round, "bert"), {1: CROWD})
    whole = made.workbook_path(round).read_bytes()
    session = whole.index(b"xl/worksheets/sheet2.xml") + 40
    for raw, message in (
        (whole[: len(whole) // 2], "not a complete workbook"),
        (whole[:session] + bytes(200) + whole[session + 200 :], "not a complete workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), "password"),
        (b"PK\x05\x06" + bytes(18), "cannot be read as a workbook (KeyError)"),
    ):
        made.workbook_path(round).write_bytes(raw)
        mistake = made.only(round, 4)
        assert mistake.startswith("spreadsheets/anna.xlsx: ")
        assert message in mistake


def test_a_strict_workbook_is_named_as_what_it_is(tmp_path: Path) -> None:
    """The file was refused as no spreadsheet of the round."""
    items = [made.item(1)]
    round = made.opened(tmp_path, "crowd", items, annotators="anna,en;bert,en")
    strict = made.workbook_path(round)
    transitional = made.workbook_path(round, "bert")
    answers = {1: CROWD}
    made.fill(strict, answers)
    made.fill(transitional, answers)
    made.save_strict(strict)
    mistake = made.only(round, 4)
    assert mistake.startswith("spreadsheets/anna.xlsx: the file is a Strict Open XML Spreadsheet")
    assert 'choose File > Save As and the type "Excel Workbook (*.xlsx)"' in mistake


def refused(path: Path) -> str:
    """The message on a file; it must need less than 60 MiB."""
    tracemalloc.start()
    try:
        with pytest.raises(RoundError) as error:
            xlsx_reading.read_xlsx(path, "a.xlsx", ["row"], [])
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()
    return str(error.value)


def zipped(path: Path, packing: int = zipfile.ZIP_DEFLATED, /, **parts: bytes) -> Path:
    with zipfile.ZipFile(path, "w", packing) as file:
        for name, raw in parts.items():
            file.writestr(name, raw)
    return path


def test_zip_bombs_are_rejected_before_parsing(tmp_path: Path) -> None:
    half = b" " * (codes.MAX_UNPACKED // 2)
    bomb = zipped(tmp_path / "a.xlsx", a=half, b=half + b" ")
    assert bomb.stat().st_size < 1 << 20
    assert "unpacks to more than 64 MiB" in refused(bomb)
    cells = zipped(tmp_path / "b.xlsx", a=b"<c/>" * (xlsx_reading.MAX_TAGS + 1))
    lzma = zipped(tmp_path / "d.xlsx", zipfile.ZIP_LZMA, a=b"<c/>")
    assert "packed in a way that spreadsheets do not use" in refused(lzma)
    assert "more cells than any spreadsheet" in refused(cells)
    with bomb.open("ab") as file:
        file.truncate(500 << 20)
    assert f"the maximum is {xlsx_reading.MAX_FILE >> 20}" in refused(bomb)


def test_an_edited_line_on_the_sheet_of_texts_is_found(tmp_path: Path) -> None:
    """The checksum covered the pointer in the row alone, so that an answer counted for another text."""
    items = [
        made.item(n, crisis=n == 1, prompt=f"A first line.\nAnother one, {n}.") for n in range(5)
    ]
    round = made.opened(tmp_path, "crowd", items)
    made.fill(made.workbook_path(round), dict.fromkeys(range(1, 6), CROWD))
    assert len(made.collect(round).annotations) == 20
    with made.edited(made.workbook_path(round)) as book:
        book["Texts"].insert_rows(1)
        book["Texts"].title = "mine"
    assert (len(made.collect(round).annotations), made.collect(round).mistakes) == (20, ())
    with made.edited(made.workbook_path(round)) as book:
        (line,) = (row[2] for row in book["mine"].iter_rows() if row[2].value == "Another one, 1.")
        line.value = "Another one, 2."
    assert f"the text of item {made.places(round)['en-item-1']} was changed (edited" in made.only(
        round, 16
    )


ANY = st.text(st.characters(), max_size=200)
LINES = st.text(st.sampled_from("ab 番茄=@\n\t_xX0"), max_size=300)


@given(ANY | LINES)
def test_cell_texts_are_no_formulas_and_have_no_control_characters(text: str) -> None:
    shown = cell_text(text)
    assert not shown.lstrip().startswith(tuple("=+-@＝＋－＠"))
    assert all(sign == "\n" or unicodedata.category(sign) not in ("Cc", "Cs") for sign in shown)
    assert "\ufffe" not in shown
    assert cell_text(shown) == shown


@given(st.lists(ANY | LINES, min_size=1, max_size=8))
def test_cells_keep_their_texts(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("cells") / "a.xlsx"
    book = Workbook()
    add_styles(book)
    for row, text in enumerate(texts, 1):
        write_cell(book.active, row, 1, text, "text")
    book.save(path)
    sheet = load_workbook(path).active
    for row, text in enumerate(texts, 1):
        cell = sheet.cell(row, 1)
        assert cell.data_type not in ("f", "e")
        assert (cell.value or "").replace("_x005F_", "_").strip() == cell_text(text).strip()


def test_choices_as_keyboards_type_them_and_no_two_have_the_same_form() -> None:
    for name, typed, stored in table("rounds", "typed_choices"):
        (question,) = (one for one in QUESTIONS["crowd"] if one.name == name)
        assert xlsx_reading.read_choice(question, Item("x", "en"), typed, "en") == stored, typed
    ties = questions_for("adjudication", [["yes", "no", *KEEP_LABELS], SUBTASK.labels])
    for question in [*ties, *(question for asked in QUESTIONS.values() for question in asked)]:
        forms = xlsx_reading.choice_forms(question, ())
        assert [typed for typed, found in forms.items() if len(found) > 1] == []


def test_a_workbook_without_rows_has_no_sheet_of_completion(tmp_path: Path) -> None:
    """Its sum added up itself (`SUM(B4:B3)` in B4), which LibreOffice shows as Err:522."""
    items = [made.item(n) for n in range(4)]
    round = made.opened(tmp_path, "expert", items, completion="C1X2Y3", care={"session_items": 3})
    state = read_state(round)
    (spreadsheet,) = made.spreadsheets(round)
    path = tmp_path / "empty.xlsx"
    write_workbook(state, spreadsheet, path, {})
    book = load_workbook(path)
    assert book.sheetnames[:3] == ["Guidelines", "Session 1", "Session 2"]
    assert "When you are done" not in book.sheetnames
    # A session without rows does not move the sheet before a later session.
    write_workbook(state, spreadsheet, path, {4: {}})
    book = load_workbook(path)
    assert book.sheetnames[:4] == ["Guidelines", "Session 1", "Session 2", "When you are done"]
    assert [book["When you are done"][cell].value for cell in ("C4", "B5", "C5")] == [
        1,
        "=SUM(B4:B4)",
        "=SUM(C4:C4)",
    ]


def test_a_workbook_shows_the_completion_code_on_a_sheet_of_its_own(tmp_path: Path) -> None:
    """The code stood in the guidelines, so that whoever read only these had it; LibreOffice: tests/live/libreoffice."""
    code = "C1X2Y3"
    round = made.opened(
        tmp_path,
        "expert",
        [made.item(n) for n in range(4)],
        completion=code,
        care={"session_items": 3},
    )
    book = book_of(round)
    assert book.sheetnames[:4] == ["Guidelines", "Session 1", "Session 2", "When you are done"]
    shown = [
        str(cell.value)
        for sheet in book.worksheets[:4]
        for row in sheet.iter_rows()
        for cell in row
    ]
    assert not any(code in text for text in shown)
    sheet = book["When you are done"]
    letters = {key: chr(ord("A") + at) for at, key in enumerate(made.keys_of(book["Session 1"]))}
    counted = sheet["B4"].value
    assert all(
        f"'Session 1'!${letters[key]}$3:${letters[key]}$4<>\"\"" in counted
        for key in ("skip", "keep", "accuracy")
    )
    assert letters["comment"] + "$3" not in counted  # comments are optional
    assert sheet["B4"].protection.hidden
    assert sheet.protection.sheet
    assert sheet["B7"].value == "=IF(B6>=C6,'codes'!$E$1,\"not yet: some items are open\")"
    assert book["codes"]["E1"].value == code
    # Nothing of the sheet is an answer, and without the setting there is none.
    made.fill(made.workbook_path(round), {1: {"skip": "yes"}})
    assert (made.collect(round).mistakes, len(made.collect(round).annotations)) == ((), 1)
    assert (
        "When you are done"
        not in book_of(made.opened(tmp_path / "b", "expert", [made.item(1)])).sheetnames
    )
