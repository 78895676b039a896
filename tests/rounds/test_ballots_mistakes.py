"""Every mistake that people and programs make in a workbook, named by file, sheet and cell; none is read in silence."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ballot_rounds import (
    edited,
    fill,
    item,
    keys_of,
    known,
    opened,
    pull,
    sitting_of,
    values,
    where,
    workbook_path,
)
from openpyxl import load_workbook

from h2htalk.rounds.folder import RoundFolder

FULL = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}


@pytest.fixture
def crowd(tmp_path: Path) -> RoundFolder:
    """Four items, two sittings, all answered."""
    round = opened(tmp_path, "crowd", [item(n) for n in range(4)], care={"sitting": 2, "crisis_share": 0.5})
    fill(workbook_path(round), dict.fromkeys(range(1, 5), FULL))
    assert len(pull(round).answers) == 12
    return round


def only(round: RoundFolder, answers: int) -> str:
    """The one mistake, after checking how many answers are left."""
    pulled = pull(round)
    assert len(pulled.answers) == answers
    (mistake,) = pulled.mistakes
    return mistake


# --- What is typed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        (4, 4),
        (4.0, 4),
        ("4", 4),
        ("4.0", 4),
        ("４", 4),
        (" 4 ", 4),
        ("4: good", 4),
        ("4: GOOD  ", 4),
        ("4：较好", 4),
        # As a Chinese keyboard's colon stands, and a hurried hand's.
        ("4：good", 4),
        ("4 :good", 4),
    ],
)
def test_a_rating_counts_however_it_is_typed(crowd: RoundFolder, typed: Any, stored: int) -> None:
    fill(workbook_path(crowd), {1: {"quality": typed}})
    pulled = pull(crowd)
    assert pulled.mistakes == ()
    assert len(pulled.answers) == 12
    assert {value for (_, name), value in values(pulled).items() if name == "quality"} == {stored}


@pytest.mark.parametrize(
    "typed", ["drop", "DROP", "Drop", "drop \t", "删掉", "\u3000Drop\u00a0", "ＤＲＯＰ", "Ｄrop"]
)
def test_a_label_counts_in_any_case_in_either_language_and_as_its_code(
    crowd: RoundFolder, typed: str
) -> None:
    fill(workbook_path(crowd), {1: {"keep": typed}})
    pulled = pull(crowd)
    assert pulled.mistakes == ()
    assert (
        sorted(str(value) for (_, name), value in values(pulled).items() if name == "keep").count("drop") == 1
    )


@pytest.mark.parametrize("typed", [0, 6, 4.5, -4, True, "four", "4 or 5", "4 good", "#REF!", 1e300])
def test_what_is_no_step_of_a_rating_is_named_with_the_steps(crowd: RoundFolder, typed: Any) -> None:
    fill(workbook_path(crowd), {2: {"quality": typed}})
    mistake = only(crowd, 9)
    assert mistake.startswith(where(workbook_path(crowd), 2, "quality") + ": ")
    assert "“1: very poor”" in mistake
    assert "“5: very good”" in mistake


@pytest.mark.parametrize("typed", ["great", "kee p", "Everyday reply", 1, False])
def test_what_is_no_label_is_named_with_the_labels(crowd: RoundFolder, typed: Any) -> None:
    fill(workbook_path(crowd), {2: {"keep": typed}})
    mistake = only(crowd, 9)
    assert mistake.startswith(where(workbook_path(crowd), 2, "keep") + ": ")
    assert "choose from “Keep”, “Drop”" in mistake


def test_a_half_filled_row_says_what_is_missing(crowd: RoundFolder) -> None:
    fill(workbook_path(crowd), {3: {"keep": None, "quality": "  "}})
    mistake = only(crowd, 9)
    path = workbook_path(crowd)
    assert f"{where(path, 3, 'keep')} (keep), {where(path, 3, 'quality')} (quality)" in mistake


def test_a_pasted_formula_is_named_even_if_it_came_to_an_answer(crowd: RoundFolder) -> None:
    fill(workbook_path(crowd), {2: {"keep": "=F5"}})
    mistake = only(crowd, 9)
    assert mistake.startswith(where(workbook_path(crowd), 2, "keep") + ": holds a formula")


@pytest.mark.parametrize(
    "typed",
    ["Reply with the day’s plan in mind", "Reply  with the day`s plan\u00a0in mind", "None of\tthese"],
)
def test_what_a_phone_makes_of_a_label_is_that_label(crowd: RoundFolder, typed: str) -> None:
    """A curly apostrophe and two blanks were refused, which phones and pasting put in by themselves."""
    fill(workbook_path(crowd), {1: {"subtask": typed}})
    assert pull(crowd).mistakes == ()


def test_who_marks_skip_beside_answers_has_skipped(crowd: RoundFolder) -> None:
    fill(workbook_path(crowd), {2: {"skip": "yes"}})
    pulled = pull(crowd)
    assert pulled.mistakes == ()
    assert [value for (_, name), value in values(pulled).items() if name == "skipped"] == ["yes"]
    assert len(pulled.answers) == 10
    (note,) = pulled.notes
    assert note.startswith(where(workbook_path(crowd), 2, "skip") + ": skipped; what is answered beside it")
    assert where(workbook_path(crowd), 2, "subtask") in note
    fill(workbook_path(crowd), {2: {"skip": "no"}})
    assert "write yes, or leave it empty" in only(crowd, 9)


def test_a_third_question_is_asked_only_after_a_yes(tmp_path: Path) -> None:
    round = opened(tmp_path, "safety", [item(1)])
    path = workbook_path(round)
    fill(path, {1: {"perception": 5, "violation": "no", "violations:privacy": "yes"}})
    mistake = only(round, 0)
    assert mistake.startswith(where(path, 1, "violations:privacy"))
    assert "only where violation is yes" in mistake
    fill(path, {1: {"violation": "yes", "violations:privacy": "maybe"}})
    assert "maybe" in only(round, 0)
    fill(path, {1: {"violations:privacy": None}})
    first = where(path, 1, "violations:harmful_advice")
    assert f"half filled; still empty: {first} (violations)" in only(round, 0)
    fill(path, {1: {"violations:privacy": "yes"}})
    assert pull(round).mistakes == ()


def test_a_comment_that_is_a_book_is_refused(tmp_path: Path) -> None:
    round = opened(tmp_path, "expert", [item(1)])
    given = {"accuracy": 1, "consistency": 1, "domain_compliance": 1, "keep": "keep"}
    fill(workbook_path(round), {1: given | {"comment": "x" * 10_001}})
    assert "shorten it" in only(round, 0)


# --- What happened to the table -----------------------------------------------------------------------------------


def first_sitting(book: Any) -> Any:
    return book["Sitting 1"]


def merge(sheet: Any) -> None:
    sheet.merge_cells("F3:F4")


def insert_row(sheet: Any) -> None:
    sheet.insert_rows(4)


def delete_row(sheet: Any) -> None:
    sheet.delete_rows(3)


def swap_rows(sheet: Any) -> None:
    for column in range(1, sheet.max_column + 1):
        one, other = sheet.cell(3, column), sheet.cell(4, column)
        one.value, other.value = other.value, one.value


def swap_what_is_seen(sheet: Any) -> None:
    for column in range(3, sheet.max_column + 1):
        one, other = sheet.cell(3, column), sheet.cell(4, column)
        one.value, other.value = other.value, one.value


def twice(sheet: Any) -> None:
    sheet["A4"].value = sheet["A3"].value


def change_code(sheet: Any) -> None:
    sheet["A4"].value = "r000000000000-00000000"


def change_number(sheet: Any) -> None:
    sheet["B4"].value = 77


def change_text(sheet: Any) -> None:
    sheet["C4"].value = "Something else altogether"


def insert_column(sheet: Any) -> None:
    sheet.insert_cols(5)


def write_beside(sheet: Any) -> None:
    sheet["K3"].value = "I meant Drop"


def write_below(sheet: Any) -> None:
    sheet["E9"].value = "Keep"


@pytest.mark.parametrize(
    ("change", "cell", "told", "left"),
    [
        (merge, "F3:F4", "merged cells", 6),
        (insert_row, "row 4", "a row was put in here", 6),
        (delete_row, "row 3", "the row of item 1 is gone", 6),
        (swap_rows, "row 3", "sorted or moved (this is item 2)", 6),
        (twice, "row 4", "the row of item 1 stands here a second time", 6),
        (change_code, "row 4", "the row's code was changed", 6),
        (change_number, "row 4", "the item's number is '77', it was 2", 9),
        (change_text, "row 4", "the text of item 2 is not the one that went out", 9),
        (insert_column, "column E", "a column was put in", 6),
        (write_beside, "K3", "'I meant Drop' stands beside the table", 12),
        (write_below, "E9", "'Keep' stands beside the table", 12),
    ],
)
def test_a_changed_table_is_noticed(
    crowd: RoundFolder, change: Callable[[Any], None], cell: str, told: str, left: int
) -> None:
    with edited(workbook_path(crowd)) as book:
        change(first_sitting(book))
    mistake = only(crowd, left)
    assert mistake.startswith(f"ballots/anna.xlsx: Sitting 1, {cell}: ")
    assert told in mistake


def test_rows_sorted_without_their_hidden_codes_are_noticed(crowd: RoundFolder) -> None:
    with edited(workbook_path(crowd)) as book:
        swap_what_is_seen(first_sitting(book))
    pulled = pull(crowd)
    assert len(pulled.answers) == 6
    assert [mistake.partition(": the text")[0] for mistake in pulled.mistakes] == [
        "ballots/anna.xlsx: Sitting 1, row 3",
        "ballots/anna.xlsx: Sitting 1, row 4",
    ]


def test_answers_that_may_have_been_sorted_alone_are_told_of(crowd: RoundFolder) -> None:
    """Answers sorted without their rows, in a sheet whose protection was taken off, were read in silence."""
    with edited(workbook_path(crowd)) as book:
        book["Sitting 2"].protection.sheet = False
    pulled = pull(crowd)
    assert len(pulled.answers) == 12
    (note,) = pulled.notes
    assert note.startswith("ballots/anna.xlsx: Sitting 2: the sheet is not protected any more")
    fill(workbook_path(crowd), dict.fromkeys((3, 4), dict.fromkeys(FULL)))
    assert pull(crowd).notes == ()


def test_many_cells_beside_the_table_are_counted(crowd: RoundFolder) -> None:
    with edited(workbook_path(crowd)) as book:
        for row in range(20, 60):
            first_sitting(book).cell(row, 9).value = "x"
    mistakes = pull(crowd).mistakes
    assert len(mistakes) == 6
    assert "35 more cells" in mistakes[-1]


@pytest.mark.parametrize("name", ["Sitting 2", "ballot"])
def test_a_missing_or_renamed_sheet_is_named(crowd: RoundFolder, name: str) -> None:
    with edited(workbook_path(crowd)) as book:
        book[name].title = "mine"
    mistake = only(crowd, 6 if name == "Sitting 2" else 0)
    assert f"'{name}'" in mistake
    assert "missing or was renamed" in mistake
    with edited(workbook_path(crowd)) as book:
        del book["mine"]
    assert "missing or was renamed" in only(crowd, 6 if name == "Sitting 2" else 0)


def test_a_sheet_that_is_not_ours_is_noted(crowd: RoundFolder) -> None:
    with edited(workbook_path(crowd)) as book:
        book.create_sheet("Sums")["A1"] = "=1+1"
    pulled = pull(crowd)
    assert pulled.mistakes == ()
    assert "'Sums'" in pulled.notes[0]


# --- Whose it is --------------------------------------------------------------------------------------------------


def test_a_sheet_out_of_another_ballot_is_noticed(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)], voters="anna,en;bert,en")
    source = load_workbook(workbook_path(round, "bert"), rich_text=True)["Sitting 1"]
    with edited(workbook_path(round)) as book:
        for line in source.iter_rows():
            for cell in line:
                book["Sitting 1"][cell.coordinate].value = cell.value
    mistake = only(round, 0)
    assert "Sitting 1, row 3: this row is of another ballot, 'bert'" in mistake


def test_a_renamed_or_swapped_file_is_not_read(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)], voters="anna,en;bert,en")
    fill(workbook_path(round), {1: FULL})
    assert len(pull(round).answers) == 3
    shutil.copy(workbook_path(round), workbook_path(round, "mallory"))
    mistake = only(round, 3)
    assert mistake.startswith("ballots/mallory.xlsx: it holds the ballot 'anna'")
    workbook_path(round, "mallory").replace(workbook_path(round, "bert"))
    assert only(round, 3).startswith("ballots/bert.xlsx: it holds the ballot 'anna'")


@pytest.mark.parametrize("name", ["other", "round"])
def test_a_ballot_of_another_round_is_not_read(tmp_path: Path, name: str) -> None:
    round = opened(tmp_path / "one", "crowd", [item(1)])
    other = opened(tmp_path / "two", "crowd", [item(1)], name=name)
    fill(workbook_path(other), {1: FULL})
    shutil.copy(workbook_path(other), workbook_path(round))
    mistake = only(round, 0)
    assert ("another round, 'other'" if name == "other" else "somebody outside this round") in mistake


def test_a_changed_record_is_noticed(crowd: RoundFolder) -> None:
    with edited(workbook_path(crowd)) as book:
        book["ballot"]["A3"].value = book["ballot"]["A3"].value.replace('"wave": 1', '"wave":  1')
    assert "the hidden sheet 'ballot' was changed" in only(crowd, 0)
    with edited(workbook_path(crowd)) as book:
        book["ballot"]["A3"].value = "{"
    assert "the hidden sheet 'ballot' was changed" in only(crowd, 0)


def test_a_ballot_of_a_wave_that_did_not_go_out_is_not_read(crowd: RoundFolder) -> None:
    found, ballot = known(crowd)
    with edited(workbook_path(crowd)) as book:
        text = book["ballot"]["A3"].value.replace('"wave": 1', '"wave": 2')
        book["ballot"]["A3"].value, book["ballot"]["A2"].value = text, found.checksum(text)
    assert "a ballot of anna for wave 2, which did not go out" in only(crowd, 0)
    assert ballot.wave == 1


def test_adding_a_label_column_by_hand_is_noticed(tmp_path: Path) -> None:
    round = opened(tmp_path, "safety", [item(1)])
    with edited(workbook_path(round)) as book:
        sheet, _ = sitting_of(book, 1)
        assert len([key for key in keys_of(sheet) if key.startswith("violations:")]) == 10
        sheet.cell(1, sheet.max_column + 1).value = "violations:rude"
    assert "stands beside the table" in only(round, 0)
