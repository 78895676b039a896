"""Life of a round with spreadsheets: open, annotate, collect, close, reopen, adjudicate."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kills import interrupted_at
from rounds_made import NAMES, answer, begin, crowd, decisions, events, expert, files_of, people, progress_of, split
from spreadsheet_rounds import item, rows_of, write_rows

from h2htalk.data.files import write_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.item_sources import ItemSource, read_items
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import list_rounds


def test_open_annotate_and_close(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=3)
    assert [(s.state, s.completed, s.assignments, s.items) for s in list_rounds(tmp_path)] == [("open", 0, 12, 4)]
    answer(path, lambda name, _: expert("drop" if name == "en-item-2" else "keep"))
    status = round_status(path)
    assert (status.new, status.completed, status.items_done, status.mistakes) == (48, 12, 4, ())
    assert sum(done for done, _ in progress_of(status).values()) == 12
    closed, settled = close_round(path)
    assert closed.state == "closed"
    records = decisions(path)
    assert len(records) == len(settled) == 16
    assert records["en-item-2", "keep"]["label"] == "drop"
    assert records["en-item-1", "accuracy"] == {
        "item": "en-item-1", "question": "accuracy", "label": 4.0, "rule": "mean", "support": 3, "votes": 3,
        "dawid_skene": None, "posterior": None, "tied": [], "interval": [2.1052, 4.6316],
    }  # fmt: skip
    agreement = json.loads((path / "agreement.json").read_text())
    assert agreement["keep"]["alpha"] == 1.0
    paid = (path / "private" / "payment.csv").read_text().splitlines()
    assert paid[0] == "annotator,items completed,items skipped,minutes"
    # Names are in private files only.
    shown = {name: text for name, text in files_of(path).items() if not name.startswith(("private", "spreadsheets"))}
    assert {"annotations.jsonl", "decisions.jsonl", "annotator_statistics.csv"} <= set(shown)
    for name, text in shown.items():
        assert not [annotator for annotator in NAMES[:4] if annotator.encode() in text], name
        assert str(tmp_path).encode() not in text, name
    private = path / "private"
    assert private.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in private.iterdir()} == {0o600}


def test_closing_needs_all_assignments_or_force(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, count=8)
    answer(path, lambda *_: expert(), only=NAMES[:3])
    with pytest.raises(RoundError, match=r"\d+ assignments are missing for \d of 8 items"):
        close_round(path)
    assert not (path / "decisions.jsonl").exists()
    closed, _ = close_round(path, force=True)
    missing = sum(closed.missing.values())
    assert f"closed without {missing} assignments of {len(closed.missing)} items" in closed.notes
    assert RoundFolder(path).events()[-1]["incomplete"] is True
    assert {r["rule"] for r in decisions(path).values()} <= {"majority", "mean", "no annotations"}


def test_ties_get_one_more_annotator_then_an_adjudication(tmp_path: Path) -> None:
    path = tied_round(tmp_path)
    close_round(path, force=True)
    tie = decisions(path)["en-item-1", "keep"]
    assert (tie["label"], tie["rule"], tie["tied"]) == (None, "tie", ["drop", "keep"])
    # One more annotator is requested.
    reopen_round(path)
    assert RoundFolder(path).assignment_sets()[1].requested == {"en-item-1": 1}
    with pytest.raises(RoundError, match="1 assignment is missing for 1 of 2 items"):
        close_round(path)
    # They do not annotate, so an adjudication decides.
    close_round(path, force=True)
    judge = str(people(tmp_path / "judge.csv", "judge"))
    spec = make_spec("adjudication", str(path), {"annotators": judge})
    open_round(spec, tmp_path / "ties")
    asked = RoundFolder(tmp_path / "ties").items()
    assert [(one.id, one.labels) for one in asked] == [("en-item-1#keep", ("drop", "keep"))]
    assert "kept or dropped" in asked[0].note
    answer(tmp_path / "ties", lambda *_: {"label": "drop"}, only=("judge",))
    with pytest.raises(RoundError, match="ties: this round is not closed, so its decisions are not final"):
        close_round(path, adjudication=tmp_path / "ties")
    close_round(tmp_path / "ties")
    close_round(path, adjudication=tmp_path / "ties")
    settled = decisions(path)["en-item-1", "keep"]
    assert (settled["label"], settled["rule"]) == ("drop", "adjudication")
    close_round(path)  # the adjudication is stored
    assert decisions(path)["en-item-1", "keep"] == settled
    with pytest.raises(RoundError, match="this round has no ties to adjudicate"):
        open_round(make_spec("adjudication", str(path), {}), tmp_path / "again")


def test_adaptive_rounds_request_annotators_for_unclear_items(tmp_path: Path) -> None:
    path = begin(tmp_path, "crowd", count=3, people=6, overlap=6, adaptive={"on": True, "minimum": 3, "lead": 3})
    assert set(RoundFolder(path).assignment_sets()[0].requested.values()) == {3}
    typed = split("drop", "keep", only="en-item-1", as_typed=crowd)
    answer(path, typed)
    status = round_status(path)
    assert (status.missing, status.unassigned) == ({"en-item-1": 2}, 1)
    while round_status(path).missing:
        reopen_round(path)
        answer(path, typed)
    closed, _ = close_round(path)
    assert closed.by_item == {"en-item-0": 3, "en-item-1": 5, "en-item-2": 3}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("adjudication", {"response": " \n"}), ("safety", {"response": "", "labels": ["keep", "drop"]})],
)
def test_responses_to_judge_are_required(tmp_path: Path, kind: str, fields: dict[str, Any]) -> None:
    """A blank response was accepted, and labels excused a safety round from responses."""
    write_jsonl(tmp_path / "items.jsonl", [item(1, **fields)])
    spec = make_spec(kind, str(tmp_path / "items.jsonl"), {})
    with pytest.raises(RoundError, match="en-item-1 has no response"):
        open_round(spec, tmp_path / "round")
    assert not (tmp_path / "round").exists()


def test_a_round_that_is_closed_before_status_locks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` had read that the round was open, and stored annotations after its closing."""
    path = begin(tmp_path, count=2, overlap=2)
    answer(path, lambda *_: expert())
    round_status(path)
    real, due = RoundFolder.locked, [True]

    def locked(folder: RoundFolder) -> AbstractContextManager[None]:
        if due and due.pop():
            close_round(path)
            file = path / "spreadsheets" / "annalena.xlsx"
            write_rows(file, [row | {"keep": "drop"} for row in rows_of(file)])
        return real(folder)

    monkeypatch.setattr(RoundFolder, "locked", locked)
    status = round_status(path)
    assert (status.state, status.new) == ("closed", 0)
    close_round(path)


@pytest.mark.parametrize("same", [False, True])
def test_concurrent_openings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool) -> None:
    """The second overwrote the items and annotators of the first, which it had not seen."""
    annotators = {"annotators": str(people(tmp_path / "people.csv", *NAMES[:3]))}
    for start in (0, 10):
        write_jsonl(tmp_path / f"{start}.jsonl", [item(n) for n in range(start, start + 3)])
    first, second = (make_spec("expert", str(tmp_path / f"{n}.jsonl"), annotators) for n in (0, 0 if same else 10))
    path = tmp_path / "round"
    there: dict[str, bytes] = {}

    def slow(name: str, *given: Any) -> ItemSource:
        items = read_items(name, *given)
        if not there:
            there["lock"] = b""
            open_round(first, path)
            there.update(files_of(path))
        return items

    monkeypatch.setattr("h2htalk.rounds.lifecycle.read_items", slow)
    if same:
        assert open_round(second, path)[0].state == "open"
    else:
        with pytest.raises(RoundError, match="opened with another items"):
            open_round(second, path)
    there.pop("lock")
    assert files_of(path) == there


def tied_round(folder: Path) -> Path:
    """An open round with all annotations, and one tied item."""
    path = begin(folder, overlap=2, people=3, count=2)
    answer(path, split("drop", "keep", only="en-item-1"))
    return path


def test_reopening_renames_the_results(tmp_path: Path) -> None:
    path = tied_round(tmp_path)
    close_round(path)
    kept = (path / "decisions.jsonl").read_bytes()
    _, messages = reopen_round(path)
    assert "decisions.before-2.jsonl" in messages[-1]
    results = ("decisions.jsonl", "agreement.json", "annotator_statistics.csv", "private/payment.csv")
    assert not any((path / name).exists() for name in results)
    assert (path / "private" / "payment.before-2.csv").stat().st_mode & 0o077 == 0
    close_round(path, force=True)
    reopen_round(path)
    assert (path / "decisions.before-2.jsonl").read_bytes() == kept
    assert (path / "decisions.before-3.jsonl").exists()


def test_changed_lists_of_annotators_need_reopening(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3)
    with pytest.raises(RoundError, match=r"changed after .*\(daraigh\).*round reopen .* --annotators .*people.csv"):
        begin(tmp_path, overlap=2, people=4)
    with pytest.raises(RoundError, match=r"\(chen_wei\).*--without NAME"):
        begin(tmp_path, overlap=2, people=2)
    reopen_round(path, annotators=people(tmp_path / "people.csv", *NAMES[:4]))
    begin(tmp_path, overlap=2, people=4)
    begin(tmp_path, overlap=2, people=4)
    assert len(RoundFolder(path).annotators()) == 4


def test_annotations_after_closing_count_after_reopening(tmp_path: Path) -> None:
    """They were counted at the next status, after the items had been handed out again."""
    path = begin(tmp_path, overlap=2, people=2, count=2)
    answer(path, lambda *_: expert(), only=("annalena",))
    close_round(path, force=True)
    stored = (path / "annotations.jsonl").read_bytes()
    answer(path, lambda *_: expert("drop"), only=("bogumil",))
    close_round(path)
    assert (path / "annotations.jsonl").read_bytes() == stored
    status, messages = reopen_round(path)
    assert "annotations of 2 items that came after closing" in messages[-1]
    assert "no eligible annotator is left for 2 items" in messages[0]
    assert (status.state, status.missing, len(RoundFolder(path).assignment_sets())) == ("open", {}, 1)
    assert close_round(path)[0].completed == 4
    with pytest.raises(RoundError, match="no eligible annotator is left"):
        reopen_round(path)


# Writes: four renamed files, the event, the event of annotators, annotators, assignment sets, and a
# spreadsheet.
@pytest.mark.slow
@pytest.mark.parametrize("write", [0, 4, 5, 6, 8])
def test_reopening_interrupted_at_any_write_can_be_repeated(tmp_path: Path, write: int) -> None:
    """New spreadsheets were published while the round was still closed, so they were never read."""
    more = people(tmp_path / "more.csv", "daraigh")
    path = tied_round(tmp_path)
    close_round(path)
    assert interrupted_at(write, partial(reopen_round, path, without=["annalena"], annotators=more))
    round = RoundFolder(path)
    reopen_round(path, without=["annalena"], annotators=more)
    assert round.state == "open"
    assert [one.requested for one in round.assignment_sets()[1:]] == [{"en-item-1": 1}]
    active = [annotator.name for annotator in round.annotators() if annotator.active]
    assert active == ["bogumil", "chen_wei", "daraigh"]
    assert events(path, "annotators")
    assert not (path / "decisions.jsonl").exists()
    answer(path, lambda *_: expert())
    assert round_status(path).missing == {}
    close_round(path)
    assert decisions(path)["en-item-1", "keep"]["votes"] == 3


def left(folder: Path) -> Path:
    """A round of four annotators, two per item; bogumil left after one item, the others have completed theirs."""
    path = begin(folder, overlap=2, count=4)
    bogumil = next(one.id for one in RoundFolder(path).annotators() if one.name == "bogumil")
    first = next(one.item for one in RoundFolder(path).assignment_sets()[0].assignments if one.annotator == bogumil)
    answer(path, lambda name, _: expert() if name == first else {"keep": ""}, only=("bogumil",))
    reopen_round(path, without=["bogumil"])
    answer(path, lambda *_: expert(), only=("annalena", "chen_wei", "daraigh"))
    return path


def votes_to_keep(path: Path) -> set[tuple[int, str]]:
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
    assert votes_to_keep(path) == {(2, "keep")}
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
    assert {votes for votes, _ in votes_to_keep(path)} == {2}
    assert "bogumil" not in {one.name for one in RoundFolder(path).annotators() if one.active}
