"""The outcome of a closed round, and adjudications, which decide the ties that their annotators saw."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rounds_made import adjudicated, answer, begin, crowd, decisions, events, people, split
from spreadsheet_rounds import rows_of, write_rows

from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.lifecycle import close_round, reopen_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Three items by two annotators: the first is kept, the second tied, the third dropped."""
    path = begin(tmp_path, count=3, people=2, overlap=2)
    typed = {"en-item-0": split("keep"), "en-item-1": split("keep", "drop"), "en-item-2": split("drop")}
    answer(path, lambda item, annotator: typed[item](item, annotator))
    close_round(path)
    return path


def test_the_outcome_of_closed_rounds_alone(closed: Path, tmp_path: Path) -> None:
    outcome = read_outcome(closed)
    assert (outcome.name, outcome.path, outcome.spec.kind) == ("round", closed, "expert")
    rules = {key: one["rule"] for key, one in decisions(closed).items()}
    assert {key: one.rule for key, one in outcome.decisions.items()} == rules
    assert [outcome.decisions[f"en-item-{n}", "keep"].label for n in range(3)] == ["keep", None, "drop"]
    assert outcome.decisions["en-item-0", "accuracy"].interval == (1.6708, 4.7764)
    assert outcome.annotations == RoundFolder(closed).annotations()
    assert outcome.agreement.keys() == {"accuracy", "consistency", "domain_compliance", "keep"}
    assert outcome.sources == {}
    # Rounds without an outcome.
    copy = shutil.copytree(closed, tmp_path / "copy")
    shutil.rmtree(copy / "private")
    with pytest.raises(RoundError, match="has no folder `private`"):
        read_outcome(copy)
    (closed / "decisions.jsonl").unlink()
    with pytest.raises(DataError, match=r"decisions\.jsonl"):
        read_outcome(closed)
    close_round(closed)
    assert len(read_outcome(closed).decisions) == 12
    reopen_round(closed, without=["annalena"], annotators=people(tmp_path / "more.csv", "chen_wei"))
    with pytest.raises(RoundError, match=rf"decisions are not final; run `h2htalk round close {closed}`"):
        read_outcome(closed)


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
    assert "adjudication ties: 0 of 1 decision applied, 1 skipped (no longer tied" in closed.notes[0]
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
    (first,) = [item.removesuffix("#keep") for item, label in labels(ties, "label").items() if label is None]
    closed, _ = close_round(path, adjudication=ties)
    assert "adjudication ties: 1 of 2 decisions applied; 1 tie remains" in closed.notes
    assert [item for item, label in labels(path).items() if label is None] == [first]
    assert [event["applied"] for event in events(path, "adjudicated")] == [2, 1]
    # A decision of another adjudication stays.
    close_round(path, adjudication=adjudicated(path, tmp_path / "second", lambda *_: {"label": "drop"}))
    closed, _ = close_round(path, adjudication=ties)
    assert "adjudication ties: 1 of 2 decisions applied; 0 ties remain" in closed.notes
    assert labels(path)[first] == "drop"


def test_adjudications_of_another_round_are_refused(tmp_path: Path) -> None:
    one, other = tied(tmp_path / "one", count=2), tied(tmp_path / "other", count=3)
    ties = adjudicated(other, tmp_path / "ties", lambda *_: {"label": "drop"})
    before = decisions(one)
    with pytest.raises(RoundError, match="ties of another round"):
        close_round(one, adjudication=ties)
    assert decisions(one) == before
    assert not (one / "adjudications.jsonl").exists()
