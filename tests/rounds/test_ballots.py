"""Ballots from opening to closing: what goes out, what comes back, and what never happens to answers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from ballot_rounds import fill, fill_csv, item, known, opened, places, pull, stems, values, workbook_path

from h2htalk.errors import MissingExtraError, RoundError
from h2htalk.rounds.ballots import Ballots
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.folder import RoundFolder, now
from h2htalk.rounds.questions import questions_for
from h2htalk.rounds.reopening import reopen_round
from h2htalk.rounds.round import open_round
from h2htalk.rounds.status import status
from h2htalk.rounds.texts import label_text, rating_text, word

CROWD = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}
STORED = {"subtask": "dialogue_base", "keep": "keep", "quality": 4}
LABELS = {"labels": ["keep", "drop"]}
ANSWERS: dict[str, dict[str, Any]] = {
    "crowd": {"subtask": "itinerary_basic", "keep": "drop", "quality": 2},
    "expert": {
        "accuracy": 5,
        "consistency": 1,
        "domain_compliance": 3,
        "keep": "keep",
        "comment": "好 =1\nwell",
    },
    "adjudication": {"rating": 0, "comment": "@home"},
    "safety": {"perception": 1, "violation": "yes", "violations": ("privacy", "other"), "comment": "x"},
}


def shown_answers(kind: str, language: Any) -> dict[str, Any]:
    """`ANSWERS` as a voter chooses them in a workbook."""
    typed: dict[str, Any] = {}
    for question in questions_for(kind, []):  # type: ignore[arg-type]
        value = ANSWERS[kind][question.name]
        if question.form == "rating":
            typed[question.name] = rating_text(question.name, value, language)
        elif question.form == "label":
            typed[question.name] = label_text(question.name, value, language)
        elif question.form == "labels":
            typed |= {f"{question.name}:{label}": word("yes", language) for label in value}
        else:
            typed[question.name] = value
    return typed


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", list(ANSWERS))
def test_what_is_chosen_in_a_workbook_comes_back_as_it_is_stored(
    tmp_path: Path, kind: str, language: str
) -> None:
    round = opened(tmp_path, kind, [item(n, language) for n in range(3)])
    number = places(round)[f"{language}-item-1"]
    fill(workbook_path(round), {number: shown_answers(kind, language)})
    pulled = pull(round)
    assert pulled.mistakes == ()
    assert values(pulled) == {(f"{language}-item-1", name): value for name, value in ANSWERS[kind].items()}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", list(ANSWERS))
def test_what_is_written_into_a_csv_comes_back_as_it_is_stored(
    tmp_path: Path, kind: str, language: str
) -> None:
    round = opened(tmp_path, kind, [item(n, language) for n in range(3)])
    typed = {
        name: "; ".join(value) if isinstance(value, tuple) else str(value)
        for name, value in ANSWERS[kind].items()
    }
    fill_csv(round.path / "ballots" / "anna.csv", {places(round)[f"{language}-item-2"]: typed})
    pulled = pull(round)
    assert pulled.mistakes == ()
    assert values(pulled) == {(f"{language}-item-2", name): value for name, value in ANSWERS[kind].items()}


def test_an_adjudication_between_labels_offers_each_item_its_own(tmp_path: Path) -> None:
    items = [item(1, **LABELS), item(2, labels=["dialogue_base", "=cmd", "a, b"])]
    round = opened(tmp_path, "adjudication", items)
    at = places(round)
    fill(workbook_path(round), {at["en-item-1"]: {"label": "Drop"}, at["en-item-2"]: {"label": "=cmd "}})
    # openpyxl takes what begins with = for a formula; as people choose it from the list, it is text.
    assert "formula" in pull(round).mistakes[0]
    fill(workbook_path(round), {at["en-item-2"]: {"label": "'=cmd"}})
    assert values(pull(round)) == {("en-item-1", "label"): "drop", ("en-item-2", "label"): "=cmd"}
    fill(workbook_path(round), {at["en-item-1"]: {"label": "Everyday reply"}})
    (mistake,) = pull(round).mistakes
    assert "choose from “Keep”, “Drop”" in mistake


def test_a_whole_round_through_ballots(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(n) for n in range(4)], voters="anna,en;bert,en;carl,en")
    for stem, kept in (("anna", "Keep"), ("bert", "Keep"), ("carl", "Drop")):
        fill(workbook_path(round, stem), {n: CROWD | {"keep": kept} for n in range(1, 5)})
    found = status(round.path)
    assert (found.answers, found.missing, found.mistakes, found.new) == (12, {}, (), 36)
    assert status(round.path).new == 0
    closed, settled = close_round(round.path)
    assert {one.label for one in settled if one.question == "keep"} == {"keep"}
    assert "not read" in closed.notes[-1]


def test_each_voter_has_an_order_of_their_own(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(n) for n in range(30)], voters="anna,en;bert,en")
    assert places(round, "anna").keys() == places(round, "bert").keys()
    assert places(round, "anna") != places(round, "bert")


# --- Publishing ---------------------------------------------------------------------------------------------------


def test_opening_twice_touches_no_ballot(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)])
    fill(workbook_path(round), {1: CROWD})
    before = {path.name: path.read_bytes() for path in (round.path / "ballots").iterdir()}
    _, told = open_round(round.spec(), round.path)
    assert {path.name: path.read_bytes() for path in (round.path / "ballots").iterdir()} == before
    assert "0 of them new" in told[0]


def test_what_was_killed_half_way_is_finished(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)], voters="anna,en;bert,en")
    (round.path / "ballots" / "bert.xlsx").unlink()
    csv_before = (round.path / "ballots" / "bert.csv").stat().st_mtime_ns
    assert "1 of them new" in Ballots().publish(round)[0]
    assert workbook_path(round, "bert").exists()
    assert (round.path / "ballots" / "bert.csv").stat().st_mtime_ns == csv_before


def test_what_a_killed_write_left_is_cleared_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round = opened(tmp_path, "crowd", [item(1)])
    folder = round.path / "ballots"
    workbook_path(round).unlink()
    (folder / ".theirs.part").write_text("a download")
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", lambda *_, **__: None)
        killed.setattr("h2htalk.rounds.ballots.os.replace", _die)
        with pytest.raises(KeyboardInterrupt):
            Ballots().publish(round)
    assert len(list(folder.glob(".*.part"))) == 2
    Ballots().publish(round)
    assert [path.name for path in folder.glob(".*.part")] == [".theirs.part"]
    assert workbook_path(round).exists()


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_ballot_under_another_case_counts_as_there(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)])
    workbook_path(round).rename(workbook_path(round, "ANNA"))
    assert "0 of them new" in Ballots().publish(round)[0]
    fill(workbook_path(round, "ANNA"), {1: CROWD})
    assert len(pull(round).answers) == 3


def test_a_second_wave_gets_ballots_of_its_own(tmp_path: Path) -> None:
    round = opened(
        tmp_path, "crowd", [item(n) for n in range(2)], voters="anna,en;bert,en;anna-2,en", overlap=1
    )
    first = stems(round)
    for stem in first:
        fill(
            workbook_path(round, stem), {n: {"skip": "Skip"} for n in range(1, len(places(round, stem)) + 1)}
        )
    reopen_round(round.path)
    later = set(stems(round)) - set(first)
    assert later
    # Nobody's file of the second wave takes the name of a voter of the first.
    assert all(stem.endswith("-2") or stem == "anna~2" for stem in later)
    stem = min(later)
    fill(workbook_path(round, stem), {1: CROWD})
    found = values(pull(round))
    assert {question for _, question in found} == {"skipped", *CROWD}


def test_a_file_of_the_second_wave_never_takes_the_name_of_one_of_the_first(tmp_path: Path) -> None:
    voters = "anna,en;anna-2,en"
    round = opened(tmp_path, "crowd", [item(n) for n in range(2)], voters=voters, overlap=1)
    number = len(known(round, "anna-2")[1].seats)
    fill(workbook_path(round, "anna-2"), {n: {"skip": "yes"} for n in range(1, number + 1)})
    reopen_round(round.path)
    assert stems(round) == ["anna", "anna-2", "anna~2"]
    assert workbook_path(round, "anna~2").exists()


def test_without_openpyxl_nothing_is_written_but_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"h2htalk\[rounds\]"):
        Ballots().check(RoundFolder(tmp_path))


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "ballots").write_text("x")
    with pytest.raises(RoundError, match="must be a folder"):
        Ballots().check(RoundFolder(tmp_path))


# --- Coming back --------------------------------------------------------------------------------------------------


def test_skipping_counts_and_its_comment_is_noted(tmp_path: Path) -> None:
    round = opened(tmp_path, "expert", [item(1), item(2)])
    fill(workbook_path(round), {1: {"skip": "Skip this item", "comment": "too close"}, 2: {"skip": "跳过"}})
    pulled = pull(round)
    assert set(values(pulled).values()) == {"yes"}
    assert {question for _, question in values(pulled)} == {"skipped"}
    assert pulled.mistakes == ()
    assert "not stored" in pulled.notes[0]


def test_a_skipped_item_that_is_answered_later_counts_as_answered(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)])
    fill(workbook_path(round), {1: {"skip": "yes"}})
    assert status(round.path).skipped == 1
    fill(workbook_path(round), {1: CROWD | {"skip": None}})
    found = status(round.path)
    assert (found.skipped, found.answers) == (0, 1)
    fill(workbook_path(round), {1: dict.fromkeys(CROWD) | {"skip": "yes"}})
    found = status(round.path)
    assert (found.skipped, found.answers) == (1, 0)


def test_the_time_of_an_answer_changes_with_it_alone(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    path = workbook_path(round)
    fill(path, {1: CROWD})
    os.utime(path, (1_700_000_000, 1_700_000_000))
    status(round.path)
    fill(path, {1: {"quality": 1}, 2: CROWD})
    os.utime(path, (1_700_009_999, 1_700_009_999))
    times = {(a.item, a.question): a.when for a in pull(round).answers}
    one = next(name for name, number in places(round).items() if number == 1)
    assert times.pop((one, "keep")) == times.pop((one, "subtask")) == "2023-11-14T22:13:20+00:00"
    assert set(times.values()) == {"2023-11-15T00:59:59+00:00"}


def test_a_file_of_the_future_is_of_now_and_that_is_said(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)])
    path = workbook_path(round)
    fill(path, {1: CROWD})
    os.utime(path, (4_000_000_000, 4_000_000_000))
    before = now()
    found = pull(round)
    assert {before <= a.when <= now() for a in found.answers} == {True}
    assert [note for note in found.notes if "in the future (2096-10-02 07:06 UTC)" in note]


def test_an_emptied_row_is_taken_back_and_said(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    fill(workbook_path(round), {1: CROWD, 2: CROWD})
    assert status(round.path).answers == 2
    fill(workbook_path(round), {1: dict.fromkeys(CROWD)})
    found = status(round.path)
    assert found.answers == 1
    assert "empty now" in found.notes[0]


def test_a_blank_copy_takes_nothing_back(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    blank = workbook_path(round).read_bytes()
    fill(workbook_path(round), {1: CROWD, 2: CROWD})
    assert status(round.path).answers == 2
    workbook_path(round).write_bytes(blank)
    found = status(round.path)
    assert found.answers == 2
    assert "anna: the ballot is empty now; its 2 stored answers still count" in found.notes[0]
    workbook_path(round).unlink()
    (round.path / "ballots" / "anna.csv").unlink()
    found = status(round.path)
    assert found.answers == 2
    assert "anna" in found.notes[0]


def test_half_filled_rows_are_counted_as_started(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1), item(2)])
    fill(workbook_path(round), {1: {"keep": "Keep"}})
    assert pull(round).started == {"anna": 1}


def test_mistakes_of_somebody_who_left_keep_no_round_open(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)], voters="anna,en;bert,en", overlap=1)
    (stem,) = stems(round)
    fill(workbook_path(round, stem), {1: {"keep": "maybe"}})
    assert len(pull(round).mistakes) == 1
    reopen_round(round.path, without=[stem])
    workbook_path(round, stem).replace(tmp_path / "away.xlsx")
    assert "0 of them new" in Ballots().publish(round)[0]
    (tmp_path / "away.xlsx").replace(workbook_path(round, stem))
    pulled = pull(round)
    assert pulled.mistakes == ()
    assert "maybe" in pulled.notes[0]


def test_workbook_and_csv_add_up_and_may_agree_but_not_contradict(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)])
    csv_path = round.path / "ballots" / "anna.csv"
    fill(workbook_path(round), {1: CROWD, 2: CROWD})
    fill_csv(csv_path, {2: {key: str(value) for key, value in STORED.items()}, 3: {"skip": "yes"}})
    pulled = pull(round)
    assert pulled.mistakes == ()
    assert len(pulled.answers) == 7
    fill_csv(csv_path, {2: {"quality": "5"}})
    pulled = pull(round)
    assert len(pulled.answers) == 4
    (mistake,) = pulled.mistakes
    assert "ballots/anna.xlsx: Sitting 1, " in mistake
    assert "ballots/anna.csv: row 3 (item 2)" in mistake
    assert "neither is read" in mistake
