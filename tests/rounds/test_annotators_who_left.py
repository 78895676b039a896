"""Annotators who leave a round: their annotations count, later ones only if they return."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from kills import interrupted_at
from rounds_made import NAMES, answer, begin, decisions, expert, people, progress_of
from spreadsheet_rounds import rows_of, write_rows

from h2htalk.rounds.lifecycle import close_round, reopen_round, round_status
from h2htalk.rounds.round_folder import RoundFolder

OTHERS = ("annalena", "chen_wei", "daraigh")


def left(folder: Path) -> Path:
    """A round of four annotators, two per item; bogumil left after one item, the others have completed theirs."""
    path = begin(folder, overlap=2, count=4)
    bogumil = next(one.id for one in RoundFolder(path).annotators() if one.name == "bogumil")
    first = next(one.item for one in RoundFolder(path).assignment_sets()[0].assignments if one.annotator == bogumil)
    answer(path, lambda name, _: expert() if name == first else {"keep": ""}, only=("bogumil",))
    reopen_round(path, without=["bogumil"])
    answer(path, lambda *_: expert(), only=OTHERS)
    return path


def kept(path: Path) -> set[tuple[int, str]]:
    """Votes and labels of the decisions on `keep`."""
    return {(r["votes"], r["label"]) for (_, name), r in decisions(path).items() if name == "keep"}


def waiting(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "annotators who left" in note]


def test_annotations_after_leaving_are_neither_counted_nor_paid(tmp_path: Path) -> None:
    """The annotations of an annotator and of their replacement were both counted."""
    path = left(tmp_path)
    answer(path, lambda *_: expert("drop"), only=("bogumil",))
    status = round_status(path)
    (message,) = waiting(status.notes)
    assert "1 item by annotators who left (bogumil)" in message
    assert "round reopen" in message
    assert waiting(round_status(path).notes) == [message]
    close_round(path)
    assert kept(path) == {(2, "keep")}
    assert "bogumil,1,0," in (path / "private" / "payment.csv").read_text()


@pytest.mark.parametrize("closed", [False, True])
def test_annotations_after_leaving_count_if_they_return(tmp_path: Path, closed: bool) -> None:
    path = left(tmp_path)
    answer(path, lambda *_: expert("drop"), only=("bogumil",))
    if closed:
        close_round(path)
    status, messages = reopen_round(path, annotators=people(tmp_path / "back.csv", "bogumil"))
    assert ("after closing" if closed else "annotations of 1 item by returning annotators") in messages[-1]
    assert progress_of(status)["bogumil"] == (2, 0)
    assert not waiting(round_status(path).notes)
    close_round(path)
    assert sorted(r["votes"] for (_, name), r in decisions(path).items() if name == "keep") == [2, 2, 2, 3]


def test_annotations_before_leaving_count_and_later_changes_do_not(tmp_path: Path) -> None:
    """Also without an earlier `status`."""
    path = begin(tmp_path, overlap=2, people=3, count=3)
    answer(path, lambda *_: expert())
    assert reopen_round(path, without=["bogumil"])[0].completed == 6
    assert not waiting(round_status(path).notes)
    typed_over(path, "bogumil", {"keep": "drop"})
    assert waiting(round_status(path).notes)
    close_round(path)
    assert kept(path) == {(2, "keep")}


def test_progress_includes_annotators_who_left(tmp_path: Path) -> None:
    """Their annotations were in the total but in no row."""
    path = left(tmp_path)
    status = round_status(path)
    assert progress_of(status)["bogumil (left)"] == (1, 0)
    assert sum(done for done, _ in progress_of(status).values()) == status.completed == 8
    reopen_round(path, without=["annalena"], annotators=people(tmp_path / "more.csv", NAMES[5]))
    assert sum(done for done, _ in progress_of(round_status(path)).values()) == 8
    assert "chen_wei (left)" not in progress_of(round_status(path))


# Writes: four renamed files, the event, late annotations, the event of annotators, annotators.
@pytest.mark.parametrize("write", range(8))
def test_an_interrupted_leaving_keeps_late_annotations(tmp_path: Path, write: int) -> None:
    """Recorded as inactive before their late annotations were stored, these would never have counted."""
    path = begin(tmp_path, overlap=2, people=2, count=2)
    answer(path, lambda *_: expert(), only=("annalena",))
    close_round(path, force=True)
    answer(path, lambda *_: expert(), only=("bogumil",))
    assert interrupted_at(write, partial(reopen_round, path, without=["bogumil"]))
    reopen_round(path, without=["bogumil"])
    close_round(path)
    assert {votes for votes, _ in kept(path)} == {2}
    assert "bogumil" not in {one.name for one in RoundFolder(path).annotators() if one.active}


# Before the event, before the late annotations, and before the next write.
@pytest.mark.slow
@pytest.mark.parametrize("write", [3, 4, 5])
@pytest.mark.parametrize("more", [False, True])
def test_an_interrupted_reopening_does_not_count_annotators_who_left(tmp_path: Path, write: int, more: bool) -> None:
    """The repeated call took the late annotations it had stored for an edited file, and collected everything."""
    path = left(tmp_path)
    close_round(path)
    typed_over(path, "bogumil", expert("drop"))
    typed_over(path, "annalena", {"accuracy": "2"})
    assert interrupted_at(write, partial(reopen_round, path))
    if more:
        typed_over(path, "annalena", {"accuracy": "3"})
    status, _ = reopen_round(path)
    assert (status.state, progress_of(status)["bogumil (left)"]) == ("open", (1, 0))
    close_round(path)
    assert kept(path) == {(2, "keep")}
    assert "bogumil,1,0," in (path / "private" / "payment.csv").read_text()


def typed_over(path: Path, name: str, typed: dict[str, str]) -> None:
    file = path / "spreadsheets" / f"{name}.xlsx"
    write_rows(file, [row | typed for row in rows_of(file)])
