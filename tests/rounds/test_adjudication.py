"""Words of adjudications: they settle the ties that their people saw, and no others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rounds_made import adjudicated, answer, begin, crowd, decisions, events, expert, people, split
from spreadsheet_rounds import csv_rows, item, write_csv_rows

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.reopening import reopen_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import round_status

A, B, C = list(SUBTASKS)[:3]


def asked_of_three(folder: Path) -> Path:
    """A closed crowd round in which one item is tied between two subtasks; others could answer it yet."""
    path = begin(folder, "crowd", 1, people=6, overlap=2)
    answer(path, split(A, B, as_typed=lambda label: crowd(subtask=label)))
    close_round(path, force=True)
    return path


def tied_three_ways(path: Path) -> None:
    """One more answer, for a third label."""
    reopen_round(path)
    answer(path, lambda *_: crowd(subtask=C))


def tied(folder: Path, count: int = 1) -> Path:
    """A closed round of two annotators who disagree on every item."""
    path = begin(folder, count=count, people=2, overlap=2)
    answer(path, split("keep", "drop"))
    close_round(path)
    return path


def test_a_word_on_a_tie_of_two_labels_settles_no_tie_of_three(tmp_path: Path) -> None:
    """The adjudicator, asked to choose between two labels, decided a tie with a third that they had never seen."""
    path = asked_of_three(tmp_path)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": A})
    close_round(path, adjudication=ties)
    assert decisions(path)["en-item-0", "subtask"]["rule"] == "adjudication"
    tied_three_ways(path)
    closed, _ = close_round(path)
    assert decisions(path)["en-item-0", "subtask"]["tied"] == sorted((A, B, C))
    assert "1 earlier adjudication is not applied: later annotations" in closed.notes[0]
    closed, _ = close_round(path, adjudication=ties)
    assert "adjudication ties: 0 of 1 decision applied, 1 skipped (no longer tied" in closed.notes[0]
    again = adjudicated(path, tmp_path / "again", lambda *_: {"label": C})
    closed, _ = close_round(path, adjudication=again)
    assert decisions(path)["en-item-0", "subtask"]["label"] == C
    assert not [note for note in closed.notes if "earlier adjudication" in note]


@pytest.mark.parametrize("line", [{}, {"item": "a"}, {"item": []}])
def test_a_broken_file_of_words_is_named_with_its_line(tmp_path: Path, line: dict[str, Any]) -> None:
    path = tied(tmp_path)
    (path / "adjudications.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match=r"adjudications.jsonl:1: .*restore the original file"):
        close_round(path)


def test_the_word_of_an_adjudication_of_an_adjudication_arrives(tmp_path: Path) -> None:
    """Two adjudicators disagreed, a third settled it, and the round with the tie was not told."""
    path = tied(tmp_path)
    first = adjudicated(
        path, tmp_path / "first", split("keep", "drop", as_typed=lambda word: {"label": word}), 2
    )
    closed, _ = close_round(path, adjudication=first)
    assert "adjudication first: 0 of 1 decision applied; 1 tie remains" in closed.notes
    assert not (path / "adjudications.jsonl").exists()
    second = adjudicated(first, tmp_path / "second", lambda *_: {"label": "drop"})
    close_round(first, adjudication=second)
    closed, _ = close_round(path, adjudication=first)
    assert "adjudication first: 1 of 1 decision applied; 0 ties remain" in closed.notes
    assert decisions(path)["en-item-0", "keep"]["label"] == "drop"


def test_a_later_word_replaces_an_earlier_one_and_leaves_the_others(tmp_path: Path) -> None:
    path = tied(tmp_path, count=2)
    close_round(path, adjudication=adjudicated(path, tmp_path / "one", lambda *_: {"label": "keep"}))
    # The second adjudication is over one of these ties alone, as it was before the first gave its words.
    two = adjudicated_over_first_tie(path, tmp_path / "two")
    closed, _ = close_round(path, adjudication=two)
    assert "adjudication two: 1 of 1 decision applied; 0 ties remain" in closed.notes
    told = {item: record["label"] for (item, name), record in decisions(path).items() if name == "keep"}
    assert told == {"en-item-0": "drop", "en-item-1": "keep"}
    assert [event["by"] for event in events(path, "adjudicated")] == ["one", "two"]


def adjudicated_over_first_tie(path: Path, out: Path) -> Path:
    """An adjudication over one tie, which says `drop`."""
    words = path / "adjudications.jsonl"
    kept = [record for _, record in read_jsonl(words)]
    write_jsonl(words, kept[1:])
    close_round(path)
    adjudicated(path, out, lambda *_: {"label": "drop"})
    write_jsonl(words, kept)
    close_round(path)
    return out


def test_a_word_that_was_taken_back_decides_no_more(tmp_path: Path) -> None:
    """The adjudicator would rather not say any more, and what they had said stayed."""
    path = tied(tmp_path, count=2)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": "keep"})
    close_round(path, adjudication=ties)
    first = taken_back(ties)
    closed, _ = close_round(path, adjudication=ties)
    assert "adjudication ties: 1 of 2 decisions applied; 1 tie remains" in closed.notes
    assert {item for (item, _), one in decisions(path).items() if one["rule"] == "tie"} == {first}
    assert [event["applied"] for event in events(path, "adjudicated")] == [2, 1]


def test_what_another_adjudication_said_stays_where_the_first_says_nothing(tmp_path: Path) -> None:
    path = tied(tmp_path, count=2)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": "keep"})
    first = taken_back(ties)
    close_round(path, adjudication=ties)
    close_round(path, adjudication=adjudicated(path, tmp_path / "second", lambda *_: {"label": "drop"}))
    closed, _ = close_round(path, adjudication=ties)
    assert "adjudication ties: 1 of 2 decisions applied; 0 ties remain" in closed.notes
    assert decisions(path)[first, "keep"]["label"] == "drop"


def taken_back(ties: Path) -> str:
    """The adjudication closed again without the first word of its spreadsheet; the item that it was on."""
    (file,) = (ties / "spreadsheets").glob("*.csv")
    rows = csv_rows(file)
    write_csv_rows(file, [rows[0] | {"label": "", "skip": "yes"}, *rows[1:]])
    reopen_round(ties)
    close_round(ties, force=True)
    (tie,) = [item for (item, _), one in decisions(ties).items() if one["label"] is None]
    return tie.removesuffix("#keep")


def test_one_tie_that_is_broken_keeps_no_other_from_its_word(tmp_path: Path) -> None:
    """All words of an adjudication were refused for one item that another answer had settled."""
    path = begin(tmp_path, count=3, people=3, overlap=2)
    answer(path, split("keep", "drop"))
    close_round(path)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": "keep"})
    reopen_round(path)
    answer(path, lambda name, _: expert("drop") if name == "en-item-0" else {})
    close_round(path, force=True)
    closed, _ = close_round(path, adjudication=ties)
    assert (
        "adjudication ties: 2 of 3 decisions applied, 1 skipped (no longer tied between the same labels); "
        "0 ties remain" in closed.notes
    )
    keep = {
        item: (one["label"], one["rule"]) for (item, name), one in decisions(path).items() if name == "keep"
    }
    assert keep == {
        "en-item-0": ("drop", "one more annotation"),
        "en-item-1": ("keep", "adjudication"),
        "en-item-2": ("keep", "adjudication"),
    }
    assert not [note for note in closed.notes if "earlier adjudication" in note]


def test_nothing_is_tied_in_a_round_that_is_open(tmp_path: Path) -> None:
    """A closing that was killed leaves decisions in an open round."""
    path = tied(tmp_path)
    kept = (path / "decisions.jsonl").read_bytes()
    reopen_round(path, annotators=people(tmp_path / "more.csv", "daraigh"))
    (path / "decisions.jsonl").write_bytes(kept)
    with pytest.raises(RoundError, match="not closed, so its ties are not final"):
        open_round(make_spec("adjudication", str(path), {}), tmp_path / "ties")


def test_an_adjudicator_does_not_see_what_a_model_suggested(tmp_path: Path) -> None:
    suggested = [item(n, suggested={"keep": "drop", "comment": "I would drop it."}) for n in range(2)]
    write_jsonl(tmp_path / "items.jsonl", suggested)
    spec = make_spec(
        "expert",
        str(tmp_path / "items.jsonl"),
        {"annotators": str(people(tmp_path / "v.csv", "annalena", "bogumil"))},
    )
    open_round(replace(spec, overlap=2, suggest=True, format="csv"), tmp_path / "round")
    answer(tmp_path / "round", split("keep", "drop"))
    close_round(tmp_path / "round")
    ties = adjudicated(tmp_path / "round", tmp_path / "ties", lambda *_: {"label": "keep"})
    assert [one.suggested for one in RoundFolder(ties).items()] == [{}, {}]


def test_a_tie_that_got_its_answer_more_is_not_told_to_be_reopened_again(tmp_path: Path) -> None:
    path = asked_of_three(tmp_path)
    tied_three_ways(path)
    found = round_status(path)
    assert (found.ties, found.missing) == (0, {})
    assert not [note for note in close_round(path)[0].notes if "round reopen" in note]


def test_the_decisions_over_another_round_s_ties_are_refused(tmp_path: Path) -> None:
    one, other = tied(tmp_path / "one", count=2), tied(tmp_path / "other", count=3)
    ties = adjudicated(other, tmp_path / "ties", lambda *_: {"label": "drop"})
    before = decisions(one)
    with pytest.raises(RoundError, match="ties of another round"):
        close_round(one, adjudication=ties)
    with pytest.raises(RoundError, match="does not adjudicate the ties of another round"):
        close_round(one, adjudication=other)
    assert decisions(one) == before
    assert not (one / "adjudications.jsonl").exists()


def test_an_adjudication_is_opened_again_without_its_source(tmp_path: Path) -> None:
    path = tied(tmp_path)
    spec = make_spec("adjudication", str(path), {"format": "csv"})
    open_round(spec, tmp_path / "ties")
    before = RoundFolder(tmp_path / "ties").items()
    reopen_round(path, annotators=people(tmp_path / "more.csv", "daraigh"))
    assert open_round(spec, tmp_path / "ties")[0].state == "open"
    assert RoundFolder(tmp_path / "ties").items() == before


def test_an_adjudication_of_many_crises_opens_with_each_announced_alone(tmp_path: Path) -> None:
    """Nobody can choose what is tied: 13 crises of 51 ties were refused."""
    records = [
        {"id": f"t-{n}", "language": "en", "prompt": "hi", "labels": ["keep", "drop"], "crisis": n < 6}
        for n in range(10)
    ]
    write_jsonl(tmp_path / "ties.jsonl", records)
    open_round(make_spec("adjudication", str(tmp_path / "ties.jsonl"), {}), tmp_path / "round")
    hard = [
        s.session
        for s in RoundFolder(tmp_path / "round").assignment_sets()[0].assignments
        if int(s.item[2:]) < 6
    ]
    assert len(set(hard)) == len(hard)
