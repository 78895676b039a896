"""Ballots that come back, again and again: what a changed, spoilt, emptied or skipped row makes of stored answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ballot_rounds import (
    edited,
    fill,
    fill_csv,
    item,
    keys_of,
    opened,
    places,
    pull,
    sitting_of,
    stems,
    values,
    workbook_path,
)
from openpyxl import Workbook

from h2htalk.rounds.ballots import Ballots
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.folder import RoundFolder, now
from h2htalk.rounds.reopening import reopen_round
from h2htalk.rounds.status import status

CROWD = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}
STORED = {"subtask": "dialogue_base", "keep": "keep", "quality": 4}


def test_skipping_counts_and_its_comment_is_noted(tmp_path: Path) -> None:
    round = opened(tmp_path, "expert", [item(1), item(2)])
    fill(workbook_path(round), {1: {"skip": "Skip this item", "comment": "too close"}, 2: {"skip": "跳过"}})
    pulled = pull(round)
    assert set(values(pulled).values()) == {"yes"}
    assert {question for _, question in values(pulled)} == {"skipped"}
    assert pulled.mistakes == ()
    assert "not stored" in pulled.notes[0]


def test_a_skipped_item_that_is_answered_later_counts_as_answered(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)])
    fill(workbook_path(round), {1: {"skip": "yes"}})
    assert status(round.path).skipped == 1
    fill(workbook_path(round), {1: CROWD | {"skip": None}})
    found = status(round.path)
    assert (found.skipped, found.answers) == (0, 1)
    fill(workbook_path(round), {1: dict.fromkeys(CROWD) | {"skip": "yes"}})
    found = status(round.path)
    assert (found.skipped, found.answers) == (1, 0)


def test_the_time_of_an_answer_changes_with_it_alone(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    path = workbook_path(round)
    fill(path, {1: CROWD})
    os.utime(path, (1_700_000_000, 1_700_000_000))
    status(round.path)
    fill(path, {1: {"quality": 1}, 2: CROWD})
    os.utime(path, (1_700_009_999, 1_700_009_999))
    times = {(a.item, a.question): a.when for a in pull(round).answers}
    one = next(name for name, number in places(round).items() if number == 1)
    assert times.pop((one, "keep")) == times.pop((one, "subtask")) == "2023-11-14T22:13:20+00:00"
    assert set(times.values()) == {"2023-11-15T00:59:59+00:00"}


def test_a_file_of_the_future_is_of_now_and_that_is_said(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)])
    path = workbook_path(round)
    fill(path, {1: CROWD})
    os.utime(path, (4_000_000_000, 4_000_000_000))
    before = now()
    found = pull(round)
    assert {before <= a.when <= now() for a in found.answers} == {True}
    assert [note for note in found.notes if "in the future (2096-10-02 07:06 UTC)" in note]


def test_an_emptied_row_is_taken_back_and_said(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    fill(workbook_path(round), {1: CROWD, 2: CROWD})
    assert status(round.path).answers == 2
    fill(workbook_path(round), {1: dict.fromkeys(CROWD)})
    found = status(round.path)
    assert found.answers == 1
    assert "empty now" in found.notes[0]


def test_a_blank_copy_takes_nothing_back(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    blank = workbook_path(round).read_bytes()
    fill(workbook_path(round), {1: CROWD, 2: CROWD})
    assert status(round.path).answers == 2
    workbook_path(round).write_bytes(blank)
    found = status(round.path)
    assert found.answers == 2
    assert "anna: the ballot is empty now; its 2 stored answers still count" in found.notes[0]
    workbook_path(round).unlink()
    (round.path / "ballots" / "anna.csv").unlink()
    found = status(round.path)
    assert found.answers == 2
    assert "anna" in found.notes[0]


def without_a_sheet(book: Workbook) -> None:
    del book["Sitting 1"]


def with_a_renamed_sheet(book: Workbook) -> None:
    book["Sitting 1"].title = "mine"


def with_an_edited_text(book: Workbook) -> None:
    sheet, row = sitting_of(book, 1)
    sheet.cell(row, keys_of(sheet).index("text") + 1).value = "My"


def with_merged_rows(book: Workbook) -> None:
    sheet, row = sitting_of(book, 1)
    sheet.merge_cells(f"F{row}:F{row + 1}")


def with_a_formula(book: Workbook) -> None:
    sheet, row = sitting_of(book, 1)
    sheet.cell(row, keys_of(sheet).index("keep") + 1).value = "=F5"


@pytest.mark.parametrize(
    ("change", "empty", "unread"),
    [
        (without_a_sheet, 4, 2),
        (with_a_renamed_sheet, 4, 2),
        (with_an_edited_text, 5, 1),
        (with_merged_rows, 4, 2),
        (with_a_formula, 5, 1),
    ],
)
def test_a_blank_copy_that_is_not_whole_takes_nothing_back(
    tmp_path: Path, change: Callable[[Workbook], None], empty: int, unread: int
) -> None:
    """A blank copy without one of its sheets took back what the others had held: nobody had filled in a row of it."""
    items = [item(n) for n in range(6)]
    round = opened(tmp_path, "crowd", items, care={"sitting": 2, "crisis_share": 0.5})
    path = workbook_path(round)
    blank = path.read_bytes()
    fill(path, dict.fromkeys(range(1, 7), CROWD))
    assert status(round.path).answers == 6
    path.write_bytes(blank)
    with edited(path) as book:
        change(book)
    found = status(round.path)
    assert (found.answers, found.new) == (6, 0)
    kept, spoilt = found.notes[-2:]
    assert kept.startswith("anna: no row that can be read is filled in now, so nothing is taken back")
    assert f"of {empty} items whose rows are empty" in kept
    assert spoilt.startswith(f"anna: {unread} item")
    # One row that somebody fills in, and the empty ones are meant; those that cannot be read still prove nothing.
    fill(path, {4: CROWD})
    found = status(round.path)
    assert found.answers == unread + 1


def test_a_csv_whose_rows_cannot_be_read_takes_nothing_back(tmp_path: Path) -> None:
    """One changed text in a blank CSV, and every other answer was taken back."""
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)])
    workbook_path(round).unlink()
    path = round.path / "ballots" / "anna.csv"
    blank = path.read_bytes()
    row = {key: str(value) for key, value in STORED.items()}
    fill_csv(path, dict.fromkeys(range(1, 4), row))
    assert status(round.path).answers == 3
    path.write_bytes(blank)
    fill_csv(path, {2: {"text": "My"}})
    found = status(round.path)
    assert (found.answers, found.new) == (3, 0)


def put_beside(round: RoundFolder) -> RoundFolder:
    """Six answers in `anna (1).xlsx`, read from there as `anna.xlsx` is blank."""
    path = workbook_path(round)
    blank = path.read_bytes()
    fill(path, dict.fromkeys(range(1, 7), CROWD))
    path.rename(workbook_path(round, "anna (1)"))
    path.write_bytes(blank)
    found = status(round.path)
    assert found.answers == 6
    assert "read as anna.xlsx" in found.notes[0]
    return round


def test_a_download_that_was_read_keeps_its_answers_when_the_ballot_is_begun(tmp_path: Path) -> None:
    """A row filled in in the blank original, and five answers that stood in the download were taken back."""
    round = put_beside(opened(tmp_path, "crowd", [item(n) for n in range(6)]))
    fill(workbook_path(round), {1: CROWD | {"quality": 1}})
    found = status(round.path)
    assert (found.answers, found.new) == (6, 1)
    assert "anna (1).xlsx: it holds the ballot 'anna'" in found.mistakes[0]
    (note,) = found.notes
    assert note.startswith(
        "anna: nothing is taken back beside ballots/anna (1).xlsx: a download that is not read"
    )
    assert "the answers of 5 items whose rows are empty now" in note
    # Without it the ballot alone says what its rows are.
    workbook_path(round, "anna (1)").unlink()
    assert status(round.path).answers == 1


def test_of_two_downloads_neither_takes_anything_back(tmp_path: Path) -> None:
    """A second download made the first one unread, and the note told how to take its answers back."""
    round = put_beside(opened(tmp_path, "crowd", [item(n) for n in range(6)]))
    workbook_path(round, "anna (2)").write_bytes(workbook_path(round).read_bytes())
    found = status(round.path)
    assert (found.answers, found.new) == (6, 0)
    assert "anna: nothing is taken back beside ballots/anna (1).xlsx, ballots/anna (2).xlsx" in found.notes[0]


def test_a_row_that_is_spoilt_later_says_that_its_earlier_answer_counts(tmp_path: Path) -> None:
    """It said "It counts once it is whole" while the old answer counted all along; an emptied row beside it was kept
    in silence, and so was the answer to an item that its voter had skipped since."""
    round = opened(tmp_path, "crowd", [item(n) for n in range(4)])
    path = workbook_path(round)
    fill(path, dict.fromkeys(range(1, 5), CROWD))
    assert status(round.path).answers == 4
    fill(path, {1: {"quality": "best"}, 2: {"keep": None}, 3: {"skip": "Skip"}, 4: dict.fromkeys(CROWD)})
    found = status(round.path)
    assert (found.answers, found.skipped) == (2, 1)
    assert "'best' is no answer" in found.mistakes[0]
    assert found.mistakes[1].endswith("What it said before still counts, until it is whole or empty")
    assert "anna: 2 items answered before cannot be counted" in found.notes[1]
    assert "(item 1, 2); the earlier answers still count, until" in found.notes[1]
    assert "anna: 1 of the items answered before are empty now" in found.notes[2]
    _, settled = close_round(round.path, early=True)
    numbers = places(round)
    assert {numbers[one.item] for one in settled if one.label is not None} == {1, 2}


def test_rows_that_are_all_spoilt_let_an_emptied_one_go(tmp_path: Path) -> None:
    """As long as no row was whole, one that was emptied kept its answer without a word."""
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    fill(workbook_path(round), {1: CROWD, 2: CROWD})
    assert status(round.path).answers == 2
    fill(workbook_path(round), {1: {"keep": "maybe"}, 2: dict.fromkeys(CROWD)})
    found = status(round.path)
    assert found.answers == 1
    assert "1 of the items answered before are empty now" in found.notes[1]


def test_a_file_that_cannot_be_read_any_more_leaves_its_answers_and_says_so(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    fill(workbook_path(round), {1: CROWD, 2: CROWD})
    assert status(round.path).answers == 2
    workbook_path(round).write_bytes(b"PK and no more")
    found = status(round.path)
    assert found.answers == 2
    assert "2 items answered before cannot be counted" in found.notes[0]


def test_half_filled_rows_are_counted_as_started(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    fill(workbook_path(round), {1: {"keep": "Keep"}})
    assert pull(round).started == {"anna": 1}


def test_mistakes_of_somebody_who_left_keep_no_round_open(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)], voters="anna,en;bert,en", overlap=1)
    (stem,) = stems(round)
    fill(workbook_path(round, stem), {1: {"keep": "maybe"}})
    assert len(pull(round).mistakes) == 1
    reopen_round(round.path, without=[stem])
    workbook_path(round, stem).replace(tmp_path / "away.xlsx")
    assert "0 of them new" in Ballots().publish(round)[0]
    (tmp_path / "away.xlsx").replace(workbook_path(round, stem))
    pulled = pull(round)
    assert pulled.mistakes == ()
    assert "maybe" in pulled.notes[0]


def test_workbook_and_csv_add_up_and_may_agree_but_not_contradict(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)])
    csv_path = round.path / "ballots" / "anna.csv"
    fill(workbook_path(round), {1: CROWD, 2: CROWD})
    fill_csv(csv_path, {2: {key: str(value) for key, value in STORED.items()}, 3: {"skip": "yes"}})
    pulled = pull(round)
    assert pulled.mistakes == ()
    assert len(pulled.answers) == 7
    fill_csv(csv_path, {2: {"quality": "5"}})
    pulled = pull(round)
    assert len(pulled.answers) == 4
    (mistake,) = pulled.mistakes
    assert "ballots/anna.xlsx: Sitting 1, " in mistake
    assert "ballots/anna.csv: row 3 (item 2)" in mistake
    assert "neither is read" in mistake
