"""Life of a round with spreadsheets: open, annotate, collect, close, reopen, adjudicate."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from kills import interrupted_at
from rounds_made import NAMES, answer, begin, decisions, expert, files_of, people, progress_of, split

from h2htalk.errors import RoundError
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
    assert records["en-item-1", "accuracy"] | {"interval": None} == {
        "item": "en-item-1", "question": "accuracy", "label": 4.0, "rule": "mean", "support": 3, "votes": 3,
        "dawid_skene": None, "posterior": None, "tied": [], "interval": None,
    }  # fmt: skip
    agreement = json.loads((path / "agreement.json").read_text())
    assert agreement["keep"]["alpha"] == 1.0
    assert (path / "private" / "payment.csv").read_text().splitlines()[
        0
    ] == "annotator,items completed,items skipped,minutes"


def test_names_are_in_private_files_only(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=3)
    answer(path, lambda *_: expert())
    close_round(path)
    shown = {name: text for name, text in files_of(path).items() if not name.startswith(("private", "spreadsheets"))}
    assert {
        "annotations.jsonl",
        "decisions.jsonl",
        "annotator_statistics.csv",
        "assignment_sets.jsonl",
    } <= set(shown)
    for name, text in shown.items():
        assert not [annotator for annotator in NAMES[:4] if annotator.encode() in text], name
        assert str(tmp_path).encode() not in text, name
    private = path / "private"
    assert {p.name for p in private.iterdir()} >= {
        "salt",
        "annotators.jsonl",
        "source_paths.json",
        "payment.csv",
    }
    assert private.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in private.iterdir()} == {0o600}


def test_repeated_opening_and_status_change_nothing(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2)
    answer(path, lambda *_: expert())
    round_status(path)
    before = files_of(path)
    begin(tmp_path, overlap=2)
    assert round_status(path).new == 0
    assert files_of(path) == before


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


def test_closing_is_refused_with_mistakes(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=4)
    wrong = ("en-item-1", "annalena")
    answer(path, lambda *assignment: expert("perhaps" if assignment == wrong else "keep"))
    with pytest.raises(RoundError, match=r"1 mistake, the first: spreadsheets/annalena.xlsx: Session 1, \w\d"):
        close_round(path)
    (message,) = round_status(path).mistakes
    assert "perhaps" in message
    closed, _ = close_round(path, force=True)
    assert closed.mistakes == (message,)
    at = closed.notes.index("closed with 1 mistake:")
    assert closed.notes[at + 1] == message
    event = RoundFolder(path).events()[-1]
    assert (event["mistakes"], event["missing"], event["incomplete"]) == (1, 1, True)


def test_skipped_items_are_given_to_others_and_paid(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=3, people=5)
    skipped: set[tuple[str, str]] = set()

    def skips_first(name: str, annotator: str) -> dict[str, str]:
        if name == "en-item-0" and not skipped:
            skipped.add((name, annotator))
            return {"skip": "yes"}
        return expert()

    answer(path, skips_first)
    status = round_status(path)
    assert (status.skipped, status.missing) == (1, {"en-item-0": 1})
    reopen_round(path)
    assignment_set = RoundFolder(path).assignment_sets()[1]
    assert assignment_set.requested == {"en-item-0": 1}
    first = RoundFolder(path).assignment_sets()[0].assignments
    before = {one.annotator for one in first if one.item == "en-item-0"}
    assert not before & {one.annotator for one in assignment_set.assignments}
    answer(path, lambda *_: expert())
    assert round_status(path).missing == {}
    close_round(path)
    paid = (path / "private" / "payment.csv").read_text().splitlines()[1:]
    assert sum(int(row.split(",")[1]) + int(row.split(",")[2]) for row in paid) == 13


def test_ties_get_one_more_annotator_then_an_adjudication(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3, count=2)
    answer(path, split("drop", "keep", only="en-item-1"))
    close_round(path, force=True)
    tie = decisions(path)["en-item-1", "keep"]
    assert (tie["label"], tie["rule"], tie["tied"]) == (None, "tie", ["drop", "keep"])
    # One more annotator is requested.
    reopen_round(path)
    assert RoundFolder(path).assignment_sets()[1].requested == {"en-item-1": 1}
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
    order: dict[str, list[str]] = {}

    def typed(name: str, annotator: str) -> dict[str, str]:
        seen = order.setdefault(name, [])
        if annotator not in seen:
            seen.append(annotator)
        split = name == "en-item-1" and seen.index(annotator) == 0
        return {"subtask": "dialogue_base", "keep": "drop" if split else "keep", "quality": "3"}

    answer(path, typed)
    status = round_status(path)
    assert (status.missing, status.unassigned) == ({"en-item-1": 2}, 1)
    while round_status(path).missing:
        reopen_round(path)
        answer(path, typed)
    closed, _ = close_round(path)
    assert closed.by_item == {"en-item-0": 3, "en-item-1": 5, "en-item-2": 3}


@pytest.mark.parametrize("write", [0, 3, 6, 9, 12])
def test_opening_interrupted_at_any_write_can_be_repeated(tmp_path: Path, write: int) -> None:
    whole = begin(tmp_path / "whole", overlap=2, people=3)
    assert interrupted_at(write, partial(begin, tmp_path / "torn", overlap=2, people=3))
    path = begin(tmp_path / "torn", overlap=2, people=3)
    assert files_of(path).keys() == files_of(whole).keys()
    assert RoundFolder(path).state == "open"
    answer(path, lambda *_: expert())
    assert close_round(path)[0].mistakes == ()
