"""Life of a round with spreadsheets: open, annotate, close, reopen, adjudicate, outcome; overlaps and pilots."""

from __future__ import annotations

import json
import shutil
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import write_jsonl
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.annotators import read_annotators
from h2htalk.rounds.item_sources import ItemSource, read_items
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import list_rounds, status_lines
from support.command_line import h2htalk_here
from support.kills import interrupted_at
from support.rounds import (
    NAMES,
    adjudicated,
    answer,
    begin,
    crowd,
    decisions,
    events,
    expert,
    files_of,
    people,
    progress_of,
    split,
)
from support.spreadsheet_rounds import item, rows_of, spreadsheets, write_rows


def test_open_annotate_and_close(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=3)
    assert [(s.state, s.completed, s.assignments, s.items) for s in list_rounds(tmp_path)] == [
        ("open", 0, 12, 4)
    ]
    answer(path, lambda name, _: expert("drop" if name == "en-item-2" else "keep"))
    status = round_status(path)
    assert (status.new, status.completed, status.items_done, status.mistakes) == (60, 12, 4, ())
    assert sum(done for done, _ in progress_of(status).values()) == 12
    closed, settled = close_round(path)
    assert closed.state == "closed"
    records = decisions(path)
    assert len(records) == len(settled) == 20
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
    shown = {
        name: text
        for name, text in files_of(path).items()
        if not name.startswith(("private", "spreadsheets"))
    }
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
    assert {r["rule"] for r in decisions(path).values()} <= {
        "majority",
        "mean",
        "any_yes",
        "no annotations",
    }


def test_ties_get_one_more_annotator_then_an_adjudication(tmp_path: Path) -> None:
    path = tied_round(tmp_path)
    close_round(path, force=True)
    tie = decisions(path)["en-item-1", "keep"]
    assert (tie["label"], tie["rule"], tie["tied"]) == (None, "tie", ["drop", "keep"])
    # One more annotator is requested; the results are renamed, and nothing is overwritten.
    kept = (path / "decisions.jsonl").read_bytes()
    _, messages = reopen_round(path)
    assert "decisions.before-2.jsonl" in messages[-1]
    results = (
        "decisions.jsonl",
        "agreement.json",
        "annotator_statistics.csv",
        "private/payment.csv",
    )
    assert not any((path / name).exists() for name in results)
    assert (path / "private" / "payment.before-2.csv").stat().st_mode & 0o077 == 0
    close_round(path, force=True)
    reopen_round(path)
    assert (path / "decisions.before-2.jsonl").read_bytes() == kept
    assert (path / "decisions.before-3.jsonl").exists()
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
    with pytest.raises(
        RoundError, match="ties: this round is not closed, so its decisions are not final"
    ):
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
    path = begin(
        tmp_path,
        "crowd",
        count=3,
        people=6,
        overlap=6,
        adaptive={"on": True, "minimum": 3, "lead": 3},
    )
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
    [
        ("adjudication", {"response": " \n"}),
        ("safety", {"response": "", "labels": ["keep", "drop"]}),
    ],
)
def test_responses_to_judge_are_required(tmp_path: Path, kind: str, fields: dict[str, Any]) -> None:
    """A blank response was accepted, and labels excused a safety round from responses."""
    write_jsonl(tmp_path / "items.jsonl", [item(1, **fields)])
    spec = make_spec(kind, str(tmp_path / "items.jsonl"), {})
    with pytest.raises(RoundError, match="en-item-1 has no response"):
        open_round(spec, tmp_path / "round")
    assert not (tmp_path / "round").exists()


def test_a_round_that_is_closed_before_status_locks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`status` had read that the round was open, and stored annotations after its closing."""
    path = begin(tmp_path, count=2, overlap=2)
    answer(path, lambda *_: expert())
    round_status(path)
    real = RoundFolder.locked
    due = [True]

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
    first, second = (
        make_spec("expert", str(tmp_path / f"{n}.jsonl"), annotators)
        for n in (0, 0 if same else 10)
    )
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


def test_changed_lists_of_annotators_need_reopening(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3)
    with pytest.raises(
        RoundError, match=r"changed after .*\(daraigh\).*round reopen .* --annotators .*people.csv"
    ):
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
    assert "2 items have enough answers and a tie that nobody is left to break" in messages[0]
    assert (status.state, status.missing, len(RoundFolder(path).assignment_sets())) == (
        "open",
        {},
        1,
    )
    assert close_round(path)[0].completed == 4
    with pytest.raises(
        RoundError, match="nothing was changed: 2 items have enough answers and a tie"
    ):
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
    first = next(
        one.item
        for one in RoundFolder(path).assignment_sets()[0].assignments
        if one.annotator == bogumil
    )
    answer(path, lambda name, _: expert() if name == first else {"keep": ""}, only=("bogumil",))
    reopen_round(path, without=["bogumil"])
    answer(path, lambda *_: expert(), only=("annalena", "chen_wei", "daraigh"))
    return path


def votes_to_keep(path: Path) -> set[tuple[int, str]]:
    """Votes and labels of the decisions on `keep`."""
    return {(r["votes"], r["label"]) for (_, name), r in decisions(path).items() if name == "keep"}


def waiting(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "annotators who left" in note]


@pytest.mark.parametrize("closed", [False, True])
def test_annotations_after_leaving_neither_count_nor_are_paid_unless_they_return(
    tmp_path: Path, closed: bool
) -> None:
    """The annotations of an annotator and of their replacement were both counted."""
    path = left(tmp_path)
    answer(path, lambda *_: expert("drop"), only=("bogumil",))
    if closed:
        (message,) = waiting(round_status(path).notes)
        assert (
            "1 item by annotators who left (bogumil)" in message,
            "round reopen" in message,
        ) == (True, True)
        assert waiting(round_status(path).notes) == [message]
        close_round(path)
        assert votes_to_keep(path) == {(2, "keep")}
        assert "bogumil,1,0," in (path / "private" / "payment.csv").read_text()
    status, messages = reopen_round(path, annotators=people(tmp_path / "back.csv", "bogumil"))
    assert (
        "after closing" if closed else "annotations of 1 item by returning annotators"
    ) in messages[-1]
    assert progress_of(status)["bogumil"] == (2, 0)
    assert not waiting(round_status(path).notes)
    close_round(path)
    assert sorted(r["votes"] for (_, name), r in decisions(path).items() if name == "keep") == [
        2,
        2,
        2,
        3,
    ]


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


def test_the_outcome_of_closed_rounds_alone(tmp_path: Path) -> None:
    """Three items by two annotators: the first is kept, the second tied, the third dropped."""
    ended = begin(tmp_path, count=3, people=2, overlap=2)
    typed = {
        "en-item-0": split("keep"),
        "en-item-1": split("keep", "drop"),
        "en-item-2": split("drop"),
    }
    answer(ended, lambda item, annotator: typed[item](item, annotator))
    close_round(ended)
    outcome = read_outcome(ended)
    assert (outcome.name, outcome.path, outcome.spec.kind) == ("round", ended, "expert")
    rules = {key: one["rule"] for key, one in decisions(ended).items()}
    assert {key: one.rule for key, one in outcome.decisions.items()} == rules
    assert [outcome.decisions[f"en-item-{n}", "keep"].label for n in range(3)] == [
        "keep",
        None,
        "drop",
    ]
    assert outcome.decisions["en-item-0", "accuracy"].interval == (1.6708, 4.7764)
    assert outcome.annotations == RoundFolder(ended).annotations()
    assert outcome.agreement.keys() == {"accuracy", "consistency", "domain_compliance", "keep"}
    assert outcome.sources == {}
    # Rounds without an outcome.
    copy = shutil.copytree(ended, tmp_path / "copy")
    shutil.rmtree(copy / "private")
    with pytest.raises(RoundError, match="has no folder `private`"):
        read_outcome(copy)
    (ended / "decisions.jsonl").unlink()
    with pytest.raises(DataError, match=r"decisions\.jsonl"):
        read_outcome(ended)
    close_round(ended)
    assert len(read_outcome(ended).decisions) == 15
    reopen_round(ended, without=["annalena"], annotators=people(tmp_path / "more.csv", "chen_wei"))
    with pytest.raises(
        RoundError, match=rf"decisions are not final; run `h2htalk round close {ended}`"
    ):
        read_outcome(ended)


A, B, C = list(SUBTASKS)[:3]


def tied(folder: Path, count: int = 1, panel: int = 2) -> Path:
    """A closed round in which two annotators disagree on every item."""
    path = begin(folder, count=count, people=panel, overlap=2)
    answer(path, split("keep", "drop"))
    close_round(path)
    return path


def labels(path: Path, question: str = "keep") -> dict[str, str | None]:
    """Item -> decided label."""
    return {item: one["label"] for (item, name), one in decisions(path).items() if name == question}


def test_adjudicators_see_votes_and_comments_and_no_names(tmp_path: Path) -> None:
    """The sheet showed neither, so that an adjudicator judged a tie without knowing what it was about."""
    path = begin(tmp_path, count=1, people=2, overlap=2)
    typist = split("keep", "drop")
    remarks = {"annalena": "The joke is unkind.", "bogumil": "A friendly reply."}
    answer(path, lambda item, name: typist(item, name) | {"comment": remarks[name]})
    close_round(path)
    adjudicators = people(tmp_path / "judges.csv", "chen_wei")
    open_round(
        make_spec("adjudication", str(path), {"annotators": str(adjudicators)}), tmp_path / "ties"
    )
    (tie,) = RoundFolder(tmp_path / "ties").items()
    assert tie.note.split("\n")[1:] == [
        "Votes so far: Drop 1; Keep 1",
        "What the people who voted remarked:",
        "– A friendly reply.",
        "– The joke is unkind.",
    ]
    (row,) = rows_of(next((tmp_path / "ties" / "spreadsheets").glob("*.xlsx")))
    assert "– The joke is unkind." in row["text"]
    assert "annalena" not in str(row)
    assert "You see how many chose what, and no names." in RoundFolder(
        tmp_path / "ties"
    ).guidelines("en")


def test_a_decision_between_two_labels_does_not_decide_a_tie_of_three(tmp_path: Path) -> None:
    """A choice between two labels decided a tie with a third, which the adjudicator had never seen."""
    path = begin(tmp_path, "crowd", 1, people=6, overlap=2)
    answer(path, split(A, B, as_typed=lambda label: crowd(subtask=label)))
    close_round(path, force=True)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": A})
    close_round(path, adjudication=ties)
    assert decisions(path)["en-item-0", "subtask"]["rule"] == "adjudication"
    reopen_round(path)
    answer(path, lambda *_: crowd(subtask=C))
    # The tie has its further annotator, so that closing does not name `round reopen`.
    status = round_status(path)
    assert (status.ties, status.missing) == (0, {})
    closed, _ = close_round(path)
    assert not [note for note in closed.notes if "h2htalk round reopen" in note]
    assert decisions(path)["en-item-0", "subtask"]["tied"] == sorted((A, B, C))
    assert "1 earlier adjudication is not applied: later annotations" in closed.notes[0]
    closed, _ = close_round(path, adjudication=ties)
    assert (
        "adjudication ties: 0 of 1 decision applied, 1 skipped (no longer tied" in closed.notes[0]
    )
    again = adjudicated(path, tmp_path / "again", lambda *_: {"label": C})
    closed, _ = close_round(path, adjudication=again)
    assert labels(path, "subtask") == {"en-item-0": C}
    assert not [note for note in closed.notes if "earlier adjudication" in note]


def test_an_adjudication_of_an_adjudication(tmp_path: Path) -> None:
    """Two adjudicators disagreed and a third decided, but the round with the tie did not get the decision."""
    path = tied(tmp_path)
    choices = split("keep", "drop", as_typed=lambda label: {"label": label})
    first = adjudicated(path, tmp_path / "first", choices, 2)
    closed, _ = close_round(path, adjudication=first)
    assert "adjudication first: 0 of 1 decision applied; 1 tie remains" in closed.notes
    assert not (path / "adjudications.jsonl").exists()
    second = adjudicated(first, tmp_path / "second", lambda *_: {"label": "drop"})
    close_round(first, adjudication=second)
    closed, _ = close_round(path, adjudication=first)
    assert "adjudication first: 1 of 1 decision applied; 0 ties remain" in closed.notes
    assert labels(path) == {"en-item-0": "drop"}


def test_withdrawn_decisions_do_not_count(tmp_path: Path) -> None:
    """A decision that the adjudicator had withdrawn stayed."""
    path = tied(tmp_path, count=2)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": "keep"})
    close_round(path, adjudication=ties)
    (file,) = (ties / "spreadsheets").glob("*.xlsx")
    rows = rows_of(file)
    write_rows(file, [rows[0] | {"label": "", "skip": "yes"}, *rows[1:]])
    reopen_round(ties)
    close_round(ties, force=True)
    (first,) = [
        item.removesuffix("#keep") for item, label in labels(ties, "label").items() if label is None
    ]
    closed, _ = close_round(path, adjudication=ties)
    assert "adjudication ties: 1 of 2 decisions applied; 1 tie remains" in closed.notes
    assert [item for item, label in labels(path).items() if label is None] == [first]
    assert [event["applied"] for event in events(path, "adjudicated")] == [2, 1]
    # A decision of another adjudication stays.
    close_round(
        path, adjudication=adjudicated(path, tmp_path / "second", lambda *_: {"label": "drop"})
    )
    closed, _ = close_round(path, adjudication=ties)
    assert "adjudication ties: 1 of 2 decisions applied; 0 ties remain" in closed.notes
    assert labels(path)[first] == "drop"


def test_adjudications_of_another_round_are_refused(tmp_path: Path) -> None:
    one = tied(tmp_path / "one", count=2)
    other = tied(tmp_path / "other", count=3)
    ties = adjudicated(other, tmp_path / "ties", lambda *_: {"label": "drop"})
    before = decisions(one)
    with pytest.raises(RoundError, match="ties of another round"):
        close_round(one, adjudication=ties)
    assert decisions(one) == before
    assert not (one / "adjudications.jsonl").exists()


def test_a_skip_does_not_prevent_closing_if_everybody_annotates(tmp_path: Path) -> None:
    """One skip blocked closing, because there was nobody else to ask."""
    path = begin(tmp_path, overlap=4, people=4)
    answer(path, lambda *pair: {"skip": "yes"} if pair == ("en-item-1", "bogumil") else expert())
    status = round_status(path)
    assert (status.missing, status.exhausted, status.items_done) == ({}, {"en-item-1": 1}, 3)
    assert "1 item cannot reach the overlap: no further eligible annotator is left" in list(
        status_lines(status)
    )
    closed, _ = close_round(path)
    assert "1 item has fewer annotations than the overlap of 4: 3 (1 item)" in closed.notes
    event = events(path, "closed")[-1]
    assert (event["incomplete"], event["missing"], event["below_overlap"]) == (False, 0, {"3": 1})
    assert [decisions(path)[f"en-item-{n}", "keep"]["votes"] for n in range(4)] == [4, 3, 4, 4]


def with_crises(folder: Path, annotators: int, decline: int, **given: Any) -> Path:
    """A round of ten items, two about a crisis, that some annotators decline."""
    folder.mkdir()
    write_jsonl(folder / "items.jsonl", [item(n, crisis=n < 2) for n in range(10)])
    lines = [f"v{n:02},en,{'no' if n < decline else 'yes'}" for n in range(annotators)]
    (folder / "people.csv").write_text("\n".join(["name,languages,crisis", *lines]) + "\n")
    options = {
        "annotators": str(folder / "people.csv"),
        "care": {"crisis_share": 0.5},
        "planted": False,
        **given,
    }
    _, messages = open_round(
        make_spec("crowd", str(folder / "items.jsonl"), options), folder / "round"
    )
    (folder / "messages").write_text("\n".join(messages))
    return folder / "round"


def test_annotators_who_decline_crises_do_not_forbid_an_overlap_of_all(tmp_path: Path) -> None:
    path = with_crises(tmp_path / "r", 20, 2, overlap=20)
    message = "2 items have fewer eligible annotators than the overlap of 20: 18 (2 items)"
    assert (tmp_path / "r" / "messages").read_text().splitlines()[-1] == message
    assert events(path, "opened")[0]["below_overlap"] == {"18": 2}
    (first,) = RoundFolder(path).assignment_sets()
    assert [first.requested[f"en-item-{n}"] for n in range(3)] == [18, 18, 20]
    assert len(first.assignments) == 2 * 18 + 8 * 20
    status = round_status(path)
    assert (sum(status.missing.values()), status.unassigned) == (196, 0)
    answer(path, lambda *_: crowd(), only=tuple(f"v{n:02}" for n in range(20)))
    done = h2htalk_here("round", "close", path)
    assert "2 items have fewer annotations than the overlap of 20: 18 (2 items)" in done.stdout
    assert done.returncode == 0
    # An item for nobody is refused.
    with pytest.raises(
        RoundError, match=r"no annotator is eligible for 2 items.*about a crisis \(yes under crisis"
    ):
        with_crises(tmp_path / "none", 3, 3, overlap=2)


# With the columns of Prolific, by which participants are paid.
PEOPLE = """name,languages,crisis,{}
annalena,en,yes,5f0a,CODE1
bogumil,zh en,no,6e1b,
chen_wei,zh,yes,,
"""


def test_pilot_gives_all_items_to_all_and_lists_who_passed(tmp_path: Path) -> None:
    """With the default overlap, a pilot of few annotators was refused, or gave each only some items."""
    items = [item(n, spoken, gold={"keep": "keep"}) for spoken in ("en", "zh") for n in range(6)]
    write_jsonl(tmp_path / "gold.jsonl", [items[0] | {"crisis": True}, *items[1:]])
    listed = tmp_path / "people.csv"
    listed.write_text(
        PEOPLE.format("Participant id,Completion code") + "daraigh,en,yes,,\n", encoding="utf-8"
    )
    path = tmp_path / "pilot"
    open_round(
        make_spec(
            "crowd", str(tmp_path / "gold.jsonl"), {"annotators": str(listed), "hourly": 9.0}
        ),
        path,
    )
    assert not any(
        "gold" in str(row) for one in (path / "spreadsheets").iterdir() for row in rows_of(one)
    )
    assignments = {
        spreadsheet.stem: len(spreadsheet.assignments)
        for spreadsheet in spreadsheets(RoundFolder(path))
    }
    assert assignments == {"annalena": 6, "bogumil": 11, "chen_wei": 6, "daraigh": 6}
    assert sum(round_status(path).missing.values()) == 29
    skip = {"skip": "yes"}
    wrong = crowd("drop")
    answer(
        path,
        lambda *at: (
            skip if at == ("en-item-0", "annalena") else wrong if "daraigh" in at else crowd()
        ),
    )
    status = round_status(path)
    assert (status.missing, status.completed, status.skipped) == ({}, 28, 1)
    # Gold was read at closing only, when nobody could be told any more.
    each = "annalena 5 of 5, bogumil 11 of 11, chen_wei 6 of 6, daraigh 0 of 6"
    assert f"gold items: 22 of 28 answers right, 6 wrong ({each})" in status.notes
    closed, _ = close_round(path)
    assert "3 of 4 annotators passed the gold items: " in closed.notes[0]
    passed = (path / "private" / "qualified.csv").read_text(encoding="utf-8")
    assert passed == PEOPLE.format("participant_id,completion_code")
    assert len(read_annotators(path / "private" / "qualified.csv", b"salt")) == 3
    payment = (path / "private" / "payment.csv").read_text().splitlines()
    assert payment[:2] == [
        "annotator,items completed,items skipped,minutes,participant id,completion code,"
        "owed,reward,listed earlier,listed now,left to pay",
        "annalena,5,1,6.0,5f0a,CODE1,0.90,0.00,0.00,0.90,0.00",
    ]
    assert (path / "private" / "prolific_bonus.csv").read_text() == "5f0a,0.90\n6e1b,1.65\n"
    assert (path / "private" / "prolific_bonus.csv").stat().st_mode & 0o077 == 0
