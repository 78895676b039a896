"""Rounds that another process changes while they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from rounds_made import answer, begin, expert, people
from spreadsheet_rounds import csv_rows, write_csv_rows

from h2htalk.rounds.closing import close_round
from h2htalk.rounds.reopening import reopen_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import list_rounds, round_status


def before_the_lock(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Another process acts once, just before a call takes its lock."""
    real, due = RoundFolder.locked, [other]

    def locked(folder: RoundFolder) -> AbstractContextManager[None]:
        if due:
            due.pop()()
        return real(folder)

    monkeypatch.setattr(RoundFolder, "locked", locked)


def test_a_round_that_is_closed_while_a_look_waits_gets_no_answers_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look had read that the round was open, brought answers in after its closing, and closing again refused."""
    path = begin(tmp_path, count=2, overlap=2)
    answer(path, lambda *_: expert())
    round_status(path)

    def closed_and_changed() -> None:
        close_round(path)
        file = path / "spreadsheets" / "annalena.csv"
        write_csv_rows(file, [row | {"keep": "drop"} for row in csv_rows(file)])

    before_the_lock(monkeypatch, closed_and_changed)
    found = round_status(path)
    assert (found.state, found.new) == ("closed", 0)
    close_round(path)


@pytest.mark.parametrize("read", ["assignment_sets", "annotators", "annotation_lines"])
@pytest.mark.parametrize("time", range(2))
def test_a_list_reads_a_round_that_another_process_opens_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str, time: int
) -> None:
    """A list has no lock: it read the annotators, then an assignment set of somebody who was not yet among them."""
    path = begin(tmp_path, count=3, people=2, overlap=2)
    answer(path, lambda *_: expert(), only=("annalena",))
    round_status(path)
    more = people(tmp_path / "more.csv", "chen_wei")
    real, calls = getattr(RoundFolder, read), [0]

    def reads(folder: RoundFolder) -> object:
        calls[0] += 1
        if calls[0] == time + 1:
            reopen_round(path, without=["bogumil"], annotators=more)
            answer(path, lambda *_: expert(), only=("chen_wei",))
            round_status(path)
        return real(folder)

    monkeypatch.setattr(RoundFolder, read, reads)
    assert [one.state for one in list_rounds(tmp_path)] == ["open"]
    assert calls[0] > time
