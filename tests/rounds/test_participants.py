"""Participants of Prolific: its export as a list of annotators, who joins one by one, who is done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from h2htalk.data.files import write_jsonl
from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.annotators import Annotator, read_annotators
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.participants import add_annotator
from h2htalk.rounds.payments.submissions import read_submissions, submission_of
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from support.command_line import h2htalk_here
from support.doubles.argilla_double import DATASET, ArgillaDouble, named
from support.doubles.argilla_double import opened as opened_on_server
from support.rounds import answer, crowd
from support.spreadsheet_rounds import item

# Headings of Prolific's export, of 2024 and later, and of earlier years.
NEW = (
    "Submission id,Participant id,Status,Custom study tncs accepted at,Started at,Completed at,Reviewed at,"
    "Archived at,Time taken,Completion code,Total approvals,Fluent languages,Age,Sex,Language,Student status"
)
OLD = (
    "session_id,participant_id,status,started_datetime,completed_date_time,time_taken,age,num_approvals,"
    "num_rejections,prolific_score,reviewed_at_datetime,entered_code,First Language"
)


def new_row(
    participant: str,
    status: str,
    code: str = "C0DE",
    fluent: str = "English",
    first: str = "English",
) -> str:
    return (
        f"60a,{participant},{status},Not "
        f'Applicable,2026-11-02T10:00,,,,600,{code},31,"{fluent}",30,Female,{first},No'
    )


def export(path: Path, *rows: str, heading: str = NEW) -> Path:
    path.write_text("\n".join((heading, *rows)) + "\n", encoding="utf-8-sig")
    return path


def test_prolifics_export_is_a_list_of_annotators(tmp_path: Path) -> None:
    """The export had to be edited by hand: it has no name, and calls languages by their names."""
    notes: list[str] = []
    path = export(
        tmp_path / "export.csv",
        new_row("5f0a", "APPROVED"),
        new_row("6e1b", "AWAITING REVIEW", "NOCODE", "English, Mandarin", "Mandarin"),
        new_row("7c2d", "RETURNED", ""),
        new_row("8d3e", "TIMED-OUT", ""),
        new_row("8d3e", "ACTIVE", ""),
        new_row("9e4f", "REJECTED"),
    )
    annotators = read_annotators(path, b"salt", notes)
    assert [
        (one.name, one.languages, one.crisis, one.participant_id, one.completion_code)
        for one in annotators
    ] == [
        ("5f0a", ("en",), False, "5f0a", "C0DE"),
        ("6e1b", ("en", "zh"), False, "6e1b", "NOCODE"),
        ("8d3e", ("en",), False, "8d3e", ""),
    ]
    expected = (
        "3 participants of Prolific in the list; 2 others left out, whose submissions ended (1 "
        "rejected, 1 returned)"
    )
    assert notes == [expected]


def test_exports_of_earlier_years_and_with_added_columns(tmp_path: Path) -> None:
    row = "60a,5f0a,APPROVED,2021-03-01,2021-03-01,300,30,20,0,100,2021-03-02,ABC,English"
    (annotator,) = read_annotators(export(tmp_path / "old.csv", row, heading=OLD), b"salt")
    assert (annotator.languages, annotator.completion_code, annotator.crisis) == (
        ("en",),
        "ABC",
        False,
    )
    added = export(tmp_path / "added.csv", f"{row},zh en,yes", heading=f"{OLD},languages,crisis")
    (annotator,) = read_annotators(added, b"salt")
    assert (annotator.languages, annotator.crisis) == (("zh", "en"), True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((new_row("5f0a", "ODD"),), r"export\.csv:2: Status is 'ODD'; known are reserved, active"),
        (
            (new_row("5f0a", "APPROVED", fluent="", first="CONSENT_REVOKED"),),
            r"'CONSENT_REVOKED'; add a column languages",
        ),
        ((new_row("5f0a", "RETURNED"),), r"the list of annotators is empty"),
    ],
)
def test_exports_that_cannot_be_a_list(tmp_path: Path, rows: tuple[str, ...], message: str) -> None:
    with pytest.raises(RoundError, match=message):
        read_annotators(export(tmp_path / "export.csv", *rows), b"salt")


def test_a_participant_is_one_annotator(tmp_path: Path) -> None:
    """A participant under two names would have been paid, and counted, twice."""
    path = tmp_path / "people.csv"
    path.write_text(
        "name,languages,crisis,participant_id\nana,en,yes,5f0a\nbo,en,yes,5f0a\n", encoding="utf-8"
    )
    with pytest.raises(RoundError, match="participant_id '5f0a' occurs twice, as 'ana' and 'bo'"):
        read_annotators(path, b"salt")


@pytest.mark.parametrize("second", ["5f0a", "5F0A", "5f０a"])
def test_every_way_into_a_round_refuses_a_participant_under_two_names(
    server: ArgillaDouble, tmp_path: Path, second: str
) -> None:
    """An id that was typed in capitals under a second name gave two votes of three, and two lines of bonus."""
    heading = "name,languages,crisis,participant_id"
    ana, bo = "ana,en,yes,5f0a", f"bo,en,yes,{second}"
    items = tmp_path / "items.jsonl"
    write_jsonl(items, [item(n) for n in range(3)])
    two_names = export(tmp_path / "two_names.csv", ana, bo, heading=heading)
    opening = ("round", "open", "crowd", items, "--overlap", "1", "--annotators", two_names)
    done = h2htalk_here(*opening, "--out", tmp_path / "refused")
    message = (
        f"participant_id {quoted(second)} occurs twice, as 'ana' and 'bo'; a participant is one"
    )
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "refused").exists()
    alone = export(tmp_path / "alone.csv", ana, heading=heading)
    options = {"annotators": str(alone), "overlap": 1}
    open_round(make_spec("crowd", str(items), options), tmp_path / "round")
    later = export(tmp_path / "later.csv", bo, heading=heading)
    with pytest.raises(RoundError, match=re.escape(message)):
        reopen_round(tmp_path / "round", annotators=later)
    (annotator,) = RoundFolder(tmp_path / "round").annotators()
    assert annotator.name == "ana"
    on_server = opened_on_server(tmp_path / "server")
    add_annotator(on_server.path, "ana", {"participant_id": "5f0a"})
    with pytest.raises(RoundError, match=re.escape(message)):
        add_annotator(on_server.path, "bo", {"participant_id": second})


def test_a_name_that_is_another_s_id_is_the_same_participant(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    """Who was listed under the id as a name, without an id, joined again with the id under another name."""
    heading = "name,languages,crisis,participant_id"
    path = export(tmp_path / "people.csv", "bo,en,yes,5f0a", "5F0A,en,yes,", heading=heading)
    message = "participant_id '5f0a' occurs twice, as '5F0A' and 'bo'"
    with pytest.raises(RoundError, match=message):
        read_annotators(path, b"salt")
    on_server = opened_on_server(tmp_path / "server")
    add_annotator(on_server.path, "5F0A", {})
    with pytest.raises(RoundError, match=message):
        add_annotator(on_server.path, "bo", {"participant_id": "5f0a"})
    # The id that belongs to the name is no other participant's.
    add_annotator(on_server.path, "5F0A", {"participant_id": "5f0a"})
    with pytest.raises(RoundError, match=message):
        add_annotator(on_server.path, "bo", {"participant_id": "5f0a"})


def test_an_id_in_other_case_is_the_same_participant(server: ArgillaDouble, tmp_path: Path) -> None:
    """It was refused as another person's, with the advice to take another name, under which it would be paid twice."""
    round = opened_on_server(tmp_path)
    add_annotator(round.path, "ana", {"participant_id": "5F0A"})
    message = "the participant id of ana is 5F0A in this round, and 5f0a here; write it as before"
    with pytest.raises(RoundError, match=message):
        add_annotator(round.path, "ana", {"participant_id": "5f0a"})
    # The export writes the id otherwise than the list did, and names a participant of the round.
    path = export(tmp_path / "export.csv", new_row("5f0a", "APPROVED"))
    notes = round_status(round.path, submissions=path).notes
    assert "what Prolific says of 1 submission was stored: 1 approved" in notes
    assert not any("not in this round" in note for note in notes)
    add_annotator(round.path, "ana", {"participant_id": "5f0a"}, replace_id=True)
    # The submission is the same, so that the reward that Prolific has paid for it is taken off.
    submission = submission_of(read_submissions(round), annotator_of(round, "ana"))
    assert (submission.participant_id, submission.status) == ("5f0a", "approved")


@pytest.mark.parametrize("second", ["5f0\u0430", "\u0665f0a", "5f0\u00e1"])
def test_an_id_of_other_letters_is_refused(tmp_path: Path, second: str) -> None:
    """A letter of another alphabet looks the same and made another participant."""
    path = tmp_path / "people.csv"
    lines = ["name,languages,crisis,participant_id", "ana,en,yes,5f0a", f"bo,en,yes,{second}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(RoundError, match=r"participant_id is .*copy it from Prolific"):
        read_annotators(path, b"salt")


def test_a_round_of_an_export_says_who_is_done(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "items.jsonl", [item(n) for n in range(3)])
    active = [new_row(name, "ACTIVE") for name in ("5f0a", "6e1b")]
    people = export(tmp_path / "export.csv", *active, new_row("7", "RETURNED"))
    options = {"annotators": str(people), "overlap": 2, "completion": "C1X2Y3"}
    _, messages = open_round(
        make_spec("crowd", str(tmp_path / "items.jsonl"), options), tmp_path / "round"
    )
    assert messages[0].startswith("2 participants of Prolific in the list; 1 other left out")
    answer(
        tmp_path / "round",
        lambda *at: crowd() if "5f0a" in at else {"keep": ""},
        only=("5f0a", "6e1b"),
    )
    done = tmp_path / "round" / "private" / "prolific_done.csv"
    assert (
        f"1 of 2 participants of Prolific are done: {done} lists them for approval"
        in round_status(tmp_path / "round").notes
    )
    assert done.read_text() == "name,participant id,completion code\n5f0a,5f0a,C0DE\n"
    assert done.stat().st_mode & 0o077 == 0
    text = (tmp_path / "round" / "guidelines" / "en.md").read_text()
    # The code stands on a sheet of its own, which shows it when everything is answered.
    assert (
        "the sheet “When you are done” shows a code: enter it on the page that invited you" in text
    )
    assert "C1X2Y3" not in text
    # A list with later participants.
    export(people, *active, new_row("8d3e", "ACTIVE"))
    reopen_round(tmp_path / "round", annotators=people)
    assert [one.name for one in RoundFolder(tmp_path / "round").annotators()] == [
        "5f0a",
        "6e1b",
        "8d3e",
    ]


def annotator_of(round: RoundFolder, name: str) -> Annotator:
    return next(one for one in round.annotators() if one.name == name)


def test_an_annotator_joins_a_round_on_a_server(server: ArgillaDouble, tmp_path: Path) -> None:
    """Somebody who joined needed a list of all annotators and a reopening, which requested more annotations."""
    round = opened_on_server(tmp_path)
    sets = round.assignment_sets()
    done = h2htalk_here(
        "round", "add", round.path, "noor", "--id", "5f0a", "--code", "C0DE", "--crisis"
    )
    assert (done.returncode, "the list of annotators was updated" in done.stdout) == (0, True), (
        done.stderr
    )
    noor = annotator_of(round, "noor")
    assert (noor.participant_id, noor.completion_code, noor.crisis, noor.active) == (
        "5f0a",
        "C0DE",
        True,
        True,
    )
    assert "noor," in (round.private / "argilla_logins.csv").read_text()
    assert round.assignment_sets() == sets
    server.respond(
        DATASET,
        named(round, "a"),
        "noor",
        keep="keep",
        subtask="dialogue_base",
        quality=4,
        harmful="no",
    )
    assert round_status(round.path).new > 0
    # Again: nothing changes; another code alone keeps the rest.
    add_annotator(round.path, "noor", {})
    add_annotator(round.path, "noor", {"completion_code": "OTHER"})
    noor = annotator_of(round, "noor")
    assert (noor.participant_id, noor.completion_code, noor.crisis) == ("5f0a", "OTHER", True)
    with pytest.raises(RoundError, match="participant_id '5f0a' occurs twice"):
        add_annotator(round.path, "zoe", {"participant_id": "5f0a"})
    # Another id replaced the first silently, even after a bonus was listed for it.
    done = h2htalk_here("round", "add", round.path, "noor", "--id", "6e1b")
    assert done.returncode != 0
    assert "noor is participant 5f0a in this round, and is to become 6e1b" in done.stderr
    assert annotator_of(round, "noor").participant_id == "5f0a"
    done = h2htalk_here("round", "add", round.path, "noor", "--id", "6e1b", "--replace-id")
    assert (done.returncode, "0.00 was listed before and counts as paid" in done.stdout) == (
        0,
        True,
    ), done.stderr
    assert annotator_of(round, "noor").participant_id == "6e1b"
    close_round(round.path, force=True)
    with pytest.raises(RoundError, match="this round is closed; open it again"):
        add_annotator(round.path, "zoe", {})


def test_rounds_that_hand_out_by_name_name_the_list(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "items.jsonl", [item(1)])
    open_round(
        make_spec("crowd", str(tmp_path / "items.jsonl"), {"overlap": 1}), tmp_path / "round"
    )
    with pytest.raises(
        RoundError, match=r"handed out by name; add noor to the list .*round reopen"
    ):
        add_annotator(tmp_path / "round", "noor", {})
