"""Reopening: what is requested again, what is pending, and late annotations."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from kills import interrupted_at
from rounds_made import NAMES, answer, begin, decisions, events, expert, people, progress_of, split

from h2htalk.errors import RoundError
from h2htalk.rounds.lifecycle import close_round, reopen_round, round_status
from h2htalk.rounds.round_folder import RoundFolder


def tied(folder: Path, panel: int = 3) -> Path:
    """An open round with all annotations, and one tied item."""
    path = begin(folder, overlap=2, people=panel, count=2)
    answer(path, split("drop", "keep", only="en-item-1"))
    return path


def test_closing_waits_for_the_annotators_of_reopened_ties(tmp_path: Path) -> None:
    path = tied(tmp_path)
    round_status(path)
    reopen_round(path)
    status = round_status(path)
    assert (status.missing, status.ties, status.completed, status.assignments, status.items_done) == (
        {"en-item-1": 1}, 0, 4, 5, 1,
    )  # fmt: skip
    with pytest.raises(RoundError, match="1 assignment is missing for 1 of 2 items"):
        close_round(path)
    close_round(path, force=True)
    event = events(path, "closed")[-1]
    assert {key: event[key] for key in ("incomplete", "missing", "mistakes", "annotations")} == {
        "incomplete": True, "missing": 1, "mistakes": 0, "annotations": 16,
    }  # fmt: skip


def test_message_if_nothing_is_handed_out(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3, count=3)
    _, messages = reopen_round(path)
    assert "nothing new to hand out: 6 assignments are still pending" in messages[0]
    answer(path, lambda *_: expert())
    round_status(path)
    with pytest.raises(RoundError, match="every item already has enough annotators"):
        reopen_round(path)
    _, messages = reopen_round(path, without=["annalena"])
    assert "the list of annotators was updated" in messages
    assert len(events(path, "annotators")) == 1
    assert "annalena" not in progress_of(round_status(path))


def test_reopening_renames_the_results(tmp_path: Path) -> None:
    path = tied(tmp_path)
    close_round(path)
    kept = (path / "decisions.jsonl").read_bytes()
    _, messages = reopen_round(path)
    assert "decisions.before-2.jsonl" in messages[-1]
    assert not [
        name
        for name in ("decisions.jsonl", "agreement.json", "annotator_statistics.csv", "private/payment.csv")
        if (path / name).exists()
    ]
    assert (path / "private" / "payment.before-2.csv").stat().st_mode & 0o077 == 0
    assert (path / "decisions.before-2.jsonl").read_bytes() == kept
    close_round(path, force=True)
    reopen_round(path)
    names = {p.name for p in path.glob("*before*")}
    assert names == {
        f"{stem}.before-{n}.{end}"
        for stem, end in (("decisions", "jsonl"), ("agreement", "json"), ("annotator_statistics", "csv"))
        for n in (2, 3)
    }


def test_changed_lists_of_annotators_need_reopening(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3)
    with pytest.raises(RoundError, match=r"changed after .*\(daraigh\).*round reopen .* --annotators .*people.csv"):
        begin(tmp_path, overlap=2, people=4)
    with pytest.raises(RoundError, match=r"\(chen_wei\).*--without chen_wei"):
        begin(tmp_path, overlap=2, people=2)
    reopen_round(path, annotators=people(tmp_path / "people.csv", *NAMES[:4]))
    begin(tmp_path, overlap=2, people=4)
    begin(tmp_path, overlap=2, people=4)
    assert len(RoundFolder(path).annotators()) == 4


@pytest.mark.parametrize(
    ("late", "told_of", "then"),
    [
        ("keep", "every item already has enough annotators", "every item already has enough annotators"),
        ("drop", "no eligible annotator is left for 2 items", "no eligible annotator is left"),
    ],
)
def test_annotations_after_closing_count_after_reopening(tmp_path: Path, late: str, told_of: str, then: str) -> None:
    """They were counted at the next status, after the items had been handed out again."""
    path = begin(tmp_path, overlap=2, people=2, count=2)
    answer(path, lambda *_: expert(), only=("annalena",))
    close_round(path, force=True)
    stored = (path / "annotations.jsonl").read_bytes()
    answer(path, lambda *_: expert(late), only=("bogumil",))
    close_round(path)
    assert (path / "annotations.jsonl").read_bytes() == stored
    status, messages = reopen_round(path)
    assert "annotations of 2 items that came after closing count now" in messages[-1]
    assert told_of in messages[0]
    assert (status.state, status.missing, len(RoundFolder(path).assignment_sets())) == ("open", {}, 1)
    assert close_round(path)[0].completed == 4
    with pytest.raises(RoundError, match=then):
        reopen_round(path)


# Writes: four renamed files, the event, the event of annotators, annotators, assignment sets, and a
# spreadsheet.
@pytest.mark.slow
@pytest.mark.parametrize("write", [0, 4, 5, 6, 8])
@pytest.mark.parametrize("closing", [False, True])
def test_reopening_interrupted_at_any_write_can_be_repeated(tmp_path: Path, write: int, closing: bool) -> None:
    """New spreadsheets were published while the round was still closed, so they were never read."""
    more = people(tmp_path / "more.csv", "daraigh")
    path = tied(tmp_path)
    close_round(path)
    assert interrupted_at(write, partial(reopen_round, path, without=["annalena"], annotators=more))
    round = RoundFolder(path)
    if closing and len(round.assignment_sets()) == 1:
        close_round(path)
        assert len(decisions(path)) == 8
        return
    if closing:
        with pytest.raises(RoundError, match="1 assignment is missing for 1 of 2 items"):
            close_round(path)
    reopen_round(path, without=["annalena"], annotators=more)
    assert (round.state, len(round.assignment_sets()), round.assignment_sets()[1].requested) == (
        "open",
        2,
        {"en-item-1": 1},
    )
    assert [annotator.name for annotator in round.annotators() if annotator.active] == [
        "bogumil",
        "chen_wei",
        "daraigh",
    ]
    assert events(path, "annotators")
    assert not (path / "decisions.jsonl").exists()
    answer(path, lambda *_: expert())
    assert round_status(path).missing == {}
    close_round(path)
    assert decisions(path)["en-item-1", "keep"]["votes"] == 3
