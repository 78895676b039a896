"""Ballots from opening to closing: what goes out, what comes back, and what never happens to answers."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from ballot_rounds import fill, fill_csv, item, known, opened, places, pull, stems, values, workbook_path

from h2htalk.errors import MissingExtraError, RoundError
from h2htalk.rounds.ballots import Ballots
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.questions import questions_for
from h2htalk.rounds.reopening import reopen_round
from h2htalk.rounds.round import open_round
from h2htalk.rounds.spreadsheets.files import read_ballot_round
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


def test_what_a_killed_write_of_a_csv_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    """Only the workbooks' were: half ballots lay in the folder for good, and in every copy of it."""
    folder = opened(tmp_path, "crowd", [item(1)]).path / "ballots"
    torn = (".anna.csv.a1b2c3_d", ".anna.texts.txt.zzzzzzzz", ".guidelines-en.txt.abcdefgh", ".anna.csv.4711")
    others = (".anna.csv.swp", ".theirs.csv.a1b2c3_d", "._anna.csv", ".~lock.anna.csv#")
    for name in (*torn, *others):
        (folder / name).write_text("half", encoding="utf-8")
    Ballots().publish(RoundFolder(folder.parent))
    assert {path.name for path in folder.glob(".*")} == set(others)


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps who may read a file elsewhere")
def test_ballots_are_their_owners_alone(tmp_path: Path) -> None:
    """Everybody on the machine could read who answered what."""

    def modes() -> set[str]:
        folder = round.path / "ballots"
        return {oct(path.stat().st_mode & 0o777) for path in (folder, *folder.iterdir())}

    round = opened(tmp_path, "crowd", [item(1, crisis=True)])
    assert modes() == {"0o700", "0o600"}
    # A folder of before, and files as a mail program puts them there.
    for again in (lambda: Ballots().publish(round), lambda: pull(round)):
        (round.path / "ballots").chmod(0o755)
        workbook_path(round).chmod(0o644)
        again()
        assert modes() == {"0o700", "0o600"}


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps who may read a file elsewhere")
def test_a_ballot_that_is_somebody_elses_to_close_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round = opened(tmp_path, "crowd", [item(1)])
    workbook_path(round).chmod(0o644)
    monkeypatch.setattr(Path, "chmod", _refuse)
    pulled = pull(round)
    assert "anna.xlsx can be read by others on this machine" in pulled.notes[0]


def _refuse(*_: object) -> None:
    raise PermissionError


def test_a_round_that_was_never_open_misses_no_ballots(tmp_path: Path) -> None:
    """Where opening was refused, `status` asked for ballots back that nobody had been given."""
    round = opened(tmp_path, "crowd", [item(1)])
    (round.path / "events.jsonl").unlink()
    for path in (round.path / "ballots").iterdir():
        path.unlink()
    assert pull(round).notes == ()
    (round.path / "ballots").rmdir()
    assert pull(round).notes == ()
    round.note("opened")
    assert "put back what came in" in pull(round).notes[0]


@pytest.mark.parametrize("left", [0, 1])
def test_voters_of_a_wave_that_nobody_knows_are_told_of(tmp_path: Path, left: int) -> None:
    """It was a KeyError with somebody's hash, and a round that had lost its private folder got a new salt."""
    round = opened(tmp_path, "crowd", [item(1)], voters="anna,en;bert,en")
    known_voters = round.voters()[:left]
    shutil.rmtree(round.private)
    if left:
        round.write_voters(known_voters)
    with pytest.raises(
        RoundError, match=r"voters\.jsonl: [12] voters? of .*waves\.jsonl cannot be found there"
    ) as told:
        read_ballot_round(round)
    assert f"{2 - left} voter" in str(told.value)
    assert not (round.private / "salt").exists()


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
