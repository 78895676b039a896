"""Annotators who leave a round: their annotations count, later ones only if they return."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from kills import interrupted_at
from rounds_made import answer, begin, decisions, expert, people, progress_of

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


# Writes: four renamed files, the event, late annotations, the event of annotators, annotators.
@pytest.mark.parametrize("write", [0, 4, 5, 7])
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
