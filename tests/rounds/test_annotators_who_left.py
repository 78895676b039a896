"""People who leave a round: what they had said counts, what they send later waits until they return."""

from __future__ import annotations

from pathlib import Path

import pytest
from rounds_made import NAMES, answer, begin, decisions, expert, kill_at, people, progress_of
from spreadsheet_rounds import csv_rows, write_csv_rows

from h2htalk.rounds.closing import close_round
from h2htalk.rounds.reopening import reopen_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import round_status

OTHERS = ("annalena", "chen_wei", "daraigh")


def left(folder: Path) -> Path:
    """A round of four people, two an item, that bogumil left after one answer; the others have answered."""
    path = begin(folder, overlap=2, count=4)
    first = next(
        assignment.item
        for assignment in RoundFolder(path).assignment_sets()[0].assignments
        if assignment.annotator == ids(path)["bogumil"]
    )
    answer(path, lambda name, _: expert() if name == first else {"keep": ""}, only=("bogumil",))
    reopen_round(path, without=["bogumil"])
    answer(path, lambda *_: expert(), only=OTHERS)
    return path


def ids(path: Path) -> dict[str, str]:
    return {annotator.name: annotator.id for annotator in RoundFolder(path).annotators()}


def waiting(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "annotators who left" in note]


def test_what_somebody_sends_after_they_left_is_neither_counted_nor_paid(tmp_path: Path) -> None:
    """Who had been replaced was counted beside their replacement."""
    path = left(tmp_path)
    answer(path, lambda *_: expert("drop"), only=("bogumil",))
    found = round_status(path)
    (told,) = waiting(found.notes)
    assert "1 item by annotators who left (bogumil)" in told
    assert "round reopen" in told
    assert waiting(round_status(path).notes) == [told]
    close_round(path)
    assert {(r["votes"], r["label"]) for (_, name), r in decisions(path).items() if name == "keep"} == {
        (2, "keep")
    }
    assert "bogumil,1,0," in (path / "private" / "payment.csv").read_text()


@pytest.mark.parametrize("closed", [False, True])
def test_it_counts_once_they_return(tmp_path: Path, closed: bool) -> None:
    path = left(tmp_path)
    answer(path, lambda *_: expert("drop"), only=("bogumil",))
    if closed:
        close_round(path)
    found, told = reopen_round(path, annotators=people(tmp_path / "back.csv", "bogumil"))
    assert ("after closing" if closed else "annotations of 1 item by returning annotators") in told[-1]
    assert progress_of(found)["bogumil"] == (2, 0)
    assert not waiting(round_status(path).notes)
    close_round(path)
    assert sorted(r["votes"] for (_, name), r in decisions(path).items() if name == "keep") == [2, 2, 2, 3]


def test_what_they_had_sent_when_they_left_counts_though_nobody_had_looked(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3, count=3)
    answer(path, lambda *_: expert(), only=("bogumil",))
    before = len(
        [s for s in RoundFolder(path).assignment_sets()[0].assignments if s.annotator == ids(path)["bogumil"]]
    )
    found, _ = reopen_round(path, without=["bogumil"])
    assert found.completed == before > 0
    assert not waiting(round_status(path).notes)


def test_what_somebody_changes_after_they_left_changes_nothing(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3, count=3)
    answer(path, lambda *_: expert())
    reopen_round(path, without=["bogumil"])
    file = path / "spreadsheets" / "bogumil.csv"
    write_csv_rows(file, [row | {"keep": "drop"} for row in csv_rows(file)])
    assert waiting(round_status(path).notes)
    close_round(path)
    assert {r["label"] for (_, name), r in decisions(path).items() if name == "keep"} == {"keep"}


def test_the_table_adds_up_when_somebody_has_left(tmp_path: Path) -> None:
    """The answers of those who left were told in the sum and in no row."""
    path = left(tmp_path)
    found = round_status(path)
    assert progress_of(found)["bogumil (left)"] == (1, 0)
    assert sum(done for done, _ in progress_of(found).values()) == found.completed == 8
    reopen_round(path, without=["annalena"], annotators=people(tmp_path / "more.csv", NAMES[5]))
    assert sum(done for done, _ in progress_of(round_status(path)).values()) == 8
    assert "chen_wei (left)" not in progress_of(round_status(path))


# Four files put aside, the event, late answers, the event of annotators, annotators.
@pytest.mark.parametrize("write", range(8))
def test_what_came_late_from_who_leaves_now_outlives_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """Written down as having left before their late answers were stored, they would have waited for ever."""
    path = begin(tmp_path, overlap=2, people=2, count=2)
    answer(path, lambda *_: expert(), only=("annalena",))
    close_round(path, force=True)
    answer(path, lambda *_: expert(), only=("bogumil",))
    with monkeypatch.context() as patch:
        kill_at(patch, write)
        with pytest.raises(KeyboardInterrupt):
            reopen_round(path, without=["bogumil"])
    reopen_round(path, without=["bogumil"])
    close_round(path)
    assert {r["votes"] for (_, name), r in decisions(path).items() if name == "keep"} == {2}
    assert not [
        annotator
        for annotator in RoundFolder(path).annotators()
        if annotator.active and annotator.name == "bogumil"
    ]


# Before the event, before the late answers, and before what follows.
@pytest.mark.slow
@pytest.mark.parametrize("write", [3, 4, 5])
@pytest.mark.parametrize("more", [False, True])
def test_a_killed_opening_of_a_closed_round_counts_nothing_of_who_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: int, more: bool
) -> None:
    """The repeated call took the late answers that it had stored for a file that was edited, and brought in all."""
    path = left(tmp_path)
    close_round(path)
    typed_over(path, "bogumil", expert("drop"))
    typed_over(path, "annalena", {"accuracy": "2"})
    with monkeypatch.context() as patch:
        kill_at(patch, write)
        with pytest.raises(KeyboardInterrupt):
            reopen_round(path)
    if more:
        typed_over(path, "annalena", {"accuracy": "3"})
    found, told = reopen_round(path)
    assert (found.state, progress_of(found)["bogumil (left)"]) == ("open", (1, 0))
    assert "not what it was" not in " ".join(told)
    close_round(path)
    assert {(r["votes"], r["label"]) for (_, name), r in decisions(path).items() if name == "keep"} == {
        (2, "keep")
    }
    assert "bogumil,1,0," in (path / "private" / "payment.csv").read_text()


def typed_over(path: Path, name: str, typed: dict[str, str]) -> None:
    file = path / "spreadsheets" / f"{name}.csv"
    write_csv_rows(file, [row | typed for row in csv_rows(file)])
