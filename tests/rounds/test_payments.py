"""Payments: nobody is paid twice and nobody not at all, whatever is reopened, killed or repeated."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from h2htalk.data.files import write_jsonl
from h2htalk.errors import ConfigError, DataError, RoundError
from h2htalk.rounds.lifecycle import (
    close_round,
    open_round,
    remove_annotator,
    reopen_round,
    round_status,
)
from h2htalk.rounds.payments.amounts import amount_owed
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from support.kills import interrupted_at
from support.rounds import NAMES, answer, crowd
from support.spreadsheet_rounds import item

# Each item pays .15; the first has the id p0, and so on.
PAY = {"hourly": 9.0, "minutes": 1.0, "currency": "GBP", "planted": False}


def participants(path: Path, *names: str) -> Path:
    lines = [f"{name},en,yes,p{NAMES.index(name)},CODE" for name in names]
    path.write_text(
        "\n".join(["name,languages,crisis,participant_id,completion_code", *lines]) + "\n"
    )
    return path


def opened(folder: Path, count: int = 4, people: int = 2, **settings: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "items.jsonl", [item(n) for n in range(count)])
    listed = participants(folder / "people.csv", *NAMES[:people])
    options = {"annotators": str(listed), "overlap": people, **PAY, **settings}
    open_round(make_spec("crowd", str(folder / "items.jsonl"), options), folder / "round")
    return folder / "round"


def bonus(path: Path, name: str = "prolific_bonus.csv") -> dict[str, str]:
    file = path / "private" / name
    return dict(line.split(",") for line in file.read_text().splitlines()) if file.exists() else {}


def all_bonuses(path: Path) -> dict[str, Decimal]:
    """What a manager pays who sends each file once."""
    sums: dict[str, Decimal] = {}
    for file in (path / "private").glob("prolific_bonus*.csv"):
        for participant, amount in bonus(path, file.name).items():
            sums[participant] = sums.get(participant, Decimal(0)) + Decimal(amount)
    return sums


def pay_of(path: Path, name: str) -> dict[str, str]:
    heading, *rows = [
        line.split(",") for line in (path / "private" / "payment.csv").read_text().splitlines()
    ]
    return next(dict(zip(heading, row, strict=True)) for row in rows if row[0] == name)


def approved(path: Path) -> list[str]:
    """Participants whose submissions are listed for approval."""
    file = path / "private" / "prolific_done.csv"
    return (
        [line.split(",")[1] for line in file.read_text().splitlines()[1:]] if file.exists() else []
    )


def first_items(count: int, label: str = "keep") -> object:
    seen: dict[str, set[str]] = {}

    def typed(name: str, annotator: str) -> dict[str, str]:
        theirs = seen.setdefault(annotator, set())
        theirs.add(name)
        return crowd(label) if len(theirs) <= count else {"keep": ""}

    return typed


def test_a_list_after_a_reopening_holds_the_difference(tmp_path: Path) -> None:
    """The list of a reopened round held the full sum again: who sent both paid everybody twice."""
    path = opened(tmp_path)
    answer(path, first_items(2))  # type: ignore[arg-type]
    closed, _ = close_round(path, force=True)
    assert bonus(path) == {"p0": "0.30", "p1": "0.30"}
    assert any(
        "bonuses of 2 participants, 0.60 GBP in all" in note and "list 1" in note
        for note in closed.notes
    )
    answer(path, lambda *_: crowd(), only=(NAMES[0],))
    _, messages = reopen_round(path)
    assert "prolific_bonus.before-2.csv" in messages[-2]
    assert (bonus(path), bonus(path, "prolific_bonus.before-2.csv")) == (
        {},
        {"p0": "0.30", "p1": "0.30"},
    )
    closed, _ = close_round(path, force=True)
    assert bonus(path) == {"p0": "0.30"}
    assert any(
        "bonuses of 1 participant, 0.30 GBP in all" in note and "list 2" in note
        for note in closed.notes
    )
    theirs = pay_of(path, NAMES[0])
    assert [theirs[key] for key in ("owed", "reward", "listed earlier", "listed now")] == [
        "0.60",
        "0.00",
        "0.30",
        "0.30",
    ]
    assert all_bonuses(path) == {"p0": Decimal("0.60"), "p1": Decimal("0.30")}


def test_closing_again_lists_the_same(tmp_path: Path) -> None:
    path = opened(tmp_path)
    answer(path, lambda *_: crowd())
    close_round(path)
    before = {
        one.name: one.read_bytes() for one in (path / "private").iterdir() if one.suffix != ".lock"
    }
    close_round(path)
    remove_annotator(path, NAMES[0], why="the same answer to everything")
    assert bonus(path) == {"p0": "0.60", "p1": "0.60"}
    remove_annotator(path, NAMES[0], undo=True)
    close_round(path)
    after = {
        one.name: one.read_bytes() for one in (path / "private").iterdir() if one.suffix != ".lock"
    }
    assert {name: after[name] for name in before} == before
    assert all_bonuses(path) == {"p0": Decimal("0.60"), "p1": Decimal("0.60")}


def test_the_reward_of_the_study_is_taken_off_once(tmp_path: Path) -> None:
    """Participants got the reward of the study and, as a bonus, all that they were owed."""
    path = opened(tmp_path, reward=0.75)
    answer(path, lambda *_: crowd(), only=(NAMES[0],))
    closed, _ = close_round(path, force=True)
    assert bonus(path) == {}
    note = next(note for note in closed.notes if note.startswith("no bonus for"))
    assert (
        "1 participant: the study's reward of 0.75 GBP is not less than what is owed to them, at most 0.60 GBP"
        in note
    )
    assert any("prolific_bonus.csv was not written" in one for one in closed.notes)
    theirs = pay_of(path, NAMES[0])
    assert [theirs[key] for key in ("owed", "reward", "listed now", "left to pay")] == [
        "0.60",
        "0.75",
        "0.00",
        "0.00",
    ]
    assert pay_of(path, NAMES[1])["reward"] == "0.00"
    path = opened(tmp_path / "less", reward=0.45)
    answer(path, lambda *_: crowd())
    close_round(path)
    assert bonus(path) == {"p0": "0.15", "p1": "0.15"}
    assert approved(path) == ["p0", "p1"]


def test_no_reward_is_taken_off_whom_nobody_lists_for_approval(tmp_path: Path) -> None:
    """After a forced close the reward was taken off for a half-done participant, whom no list for approval names."""
    path = opened(tmp_path, reward=0.10)
    answer(path, first_items(2), only=(NAMES[0],))  # type: ignore[arg-type]
    closed, _ = close_round(path, force=True)
    assert (bonus(path), approved(path)) == ({"p0": "0.30"}, [])
    assert any(
        "the reward is not taken off for 1 participant who answered only a part" in note
        for note in closed.notes
    )
    # They go on: now they are listed, and the reward is taken off what is owed further.
    answer(path, lambda *_: crowd())
    reopen_round(path)
    close_round(path)
    assert (bonus(path), approved(path)) == ({"p0": "0.20", "p1": "0.50"}, ["p0", "p1"])


def test_what_is_paid_above_the_debt_is_said(tmp_path: Path) -> None:
    path = opened(tmp_path, reward=0.45)
    answer(path, first_items(2), only=(NAMES[0],))  # type: ignore[arg-type]
    close_round(path, force=True)
    answer(path, lambda *_: crowd())
    reopen_round(path)
    closed, _ = close_round(path)
    assert bonus(path) == {"p1": "0.15"}
    assert any(
        f"the lists pay 0.15 GBP more than is owed to {NAMES[0]}:" in note for note in closed.notes
    )


def test_a_reward_counts_once_somebody_was_listed_for_approval(tmp_path: Path) -> None:
    """Who was listed, approved, and then got more items is not undone: the reward was paid."""
    path = opened(tmp_path, people=3, overlap=2, reward=0.10)
    answer(path, lambda *_: crowd(), only=NAMES[:2])
    close_round(path, force=True)
    first = set(approved(path))
    assert first == {"p0", "p1"}
    before = all_bonuses(path)
    _, messages = reopen_round(path, without=(NAMES[2],))
    assert messages[0].startswith("handed out")
    close_round(path, force=True)
    assert set(approved(path)) == first
    assert all_bonuses(path) == before
    for name in NAMES[:2]:
        theirs = pay_of(path, name)
        assert Decimal(theirs["owed"]) == Decimal(theirs["reward"]) + Decimal(
            theirs["listed earlier"]
        )


# --- What Prolific says of submissions --------------------------------------------------------------------------------


def of_export(folder: Path, reward: float, *statuses: str, count: int = 4) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "items.jsonl", [item(n) for n in range(count)])
    listed = export(folder / "export.csv", *statuses)
    options = {"annotators": str(listed), "overlap": len(statuses), **PAY, "reward": reward}
    open_round(make_spec("crowd", str(folder / "items.jsonl"), options), folder / "round")
    return folder / "round"


def export(path: Path, *statuses: str) -> Path:
    """Participants p0, p1, ... with these statuses; none for an empty one."""
    rows = [f"60a,p{n},{status},600,CODE,English" for n, status in enumerate(statuses) if status]
    heading = "Submission id,Participant id,Status,Time taken,Completion code,Fluent languages"
    path.write_text("\n".join([heading, *rows]) + "\n")
    return path


EVERYBODY = ("p0", "p1", "p2")


@pytest.mark.parametrize("status", ["RETURNED", "TIMED-OUT", "REJECTED", "SCREENED OUT"])
def test_whose_submission_ended_gets_the_reward_as_a_bonus(tmp_path: Path, status: str) -> None:
    """A newer export said RETURNED, and the reward that Prolific did not pay stayed taken off, silently."""
    path = of_export(tmp_path, 0.45, "ACTIVE", "ACTIVE")
    answer(path, lambda *_: crowd(), only=EVERYBODY)
    close_round(path)
    assert (bonus(path), approved(path)) == ({"p0": "0.15", "p1": "0.15"}, ["p0", "p1"])
    closed, _ = close_round(path, submissions=export(tmp_path / "newer.csv", status, "APPROVED"))
    assert (bonus(path), approved(path)) == ({"p0": "0.45"}, ["p1"])
    assert any(
        "the reward is not taken off for 1 participant, to whom Prolific" in note
        for note in closed.notes
    )
    assert any(
        "1 earlier list of this closing is" in note and "before-2.csv" in note
        for note in closed.notes
    )
    close_round(path)
    assert all_bonuses(path) == {"p0": Decimal("0.60"), "p1": Decimal("0.15")}
    theirs = pay_of(path, "p0")
    assert [theirs[key] for key in ("submission", "owed", "reward", "listed earlier", "listed now", "left to pay")] == [
        status.casefold().replace("-", " "), "0.60", "0.00", "0.15", "0.45", "0.00",
    ]  # fmt: skip


def test_an_export_that_a_reopening_reads_counts_too(tmp_path: Path) -> None:
    """Two are half-done; then one returns, one is approved, a third joins."""
    path = of_export(tmp_path, 0.10, "ACTIVE", "ACTIVE", count=2)
    answer(path, first_items(1), only=EVERYBODY)  # type: ignore[arg-type]
    close_round(path, force=True)
    assert bonus(path) == {"p0": "0.15", "p1": "0.15"}
    newer = export(tmp_path / "newer.csv", "RETURNED", "APPROVED", "ACTIVE")
    _, messages = reopen_round(path, annotators=newer)
    assert (
        "what Prolific says of 3 submissions was stored: 1 active, 1 approved, 1 returned"
        in messages
    )
    answer(path, lambda *_: crowd(), only=("p1", "p2"))
    close_round(path, force=True)
    # p1: owed .30, the reward .10, listed .15.
    assert bonus(path)["p1"] == "0.05"
    assert "p0" not in {*bonus(path), *approved(path)}
    # All that are left have ended: the export is no list of annotators, but says who gets no reward.
    ended = export(tmp_path / "ended.csv", "RETURNED", "REJECTED", "RETURNED")
    _, messages = reopen_round(path, annotators=ended)
    assert any("was stored: 1 rejected, 1 returned" in message for message in messages)
    close_round(path, force=True)
    assert all_bonuses(path)["p1"] == Decimal("0.30")


def test_an_export_is_needed_for_statuses(tmp_path: Path) -> None:
    path = of_export(tmp_path, 0.10, "ACTIVE", "ACTIVE")
    answer(path, lambda *_: crowd(), only=EVERYBODY)
    with pytest.raises(RoundError, match="no export of Prolific's participants"):
        close_round(path, submissions=participants(tmp_path / "people.csv", *NAMES[:2]))


def test_rounds_that_an_earlier_version_closed_keep_its_rule(tmp_path: Path) -> None:
    """It took the reward off whom it did not list for approval: they may have been approved since."""
    path = opened(tmp_path, reward=0.10)
    answer(path, first_items(2), only=(NAMES[0],))  # type: ignore[arg-type]
    close_round(path, force=True)
    log = path / "events.jsonl"
    log.write_text(log.read_text().replace('"listed_for_approval"', '"other"'))
    stored = path / "private" / "payments.jsonl"
    stored.write_text(stored.read_text().replace('"bonus":"0.30"', '"bonus":"0.20"'))
    close_round(path)
    assert len(stored.read_text().splitlines()) == 1
    assert pay_of(path, NAMES[0])["reward"] == "0.10"


# --- Completion codes, ids, currencies, cents -------------------------------------------------------------------------


def test_who_is_known_by_a_completion_code_is_a_participant(tmp_path: Path) -> None:
    """Annotators with a code and no id were ignored: no reward, no code in payment.csv, no list for approval."""
    people = tmp_path / "people.csv"
    people.write_text(
        "name,languages,crisis,completion_code\nannalena,en,yes,CODE1\nbogumil,en,yes,CODE2\n"
    )
    path = opened(tmp_path / "r", reward=0.45, annotators=str(people))
    answer(path, lambda *_: crowd())
    closed, _ = close_round(path)
    assert bonus(path) == {}
    done = (path / "private" / "prolific_done.csv").read_text().splitlines()
    assert done == ["name,participant id,completion code", "annalena,,CODE1", "bogumil,,CODE2"]
    theirs = pay_of(path, "annalena")
    keys = ("participant id", "completion code", "owed", "reward", "listed now", "left to pay")
    assert [theirs[key] for key in keys] == ["", "CODE1", "0.60", "0.45", "0.00", "0.15"]
    assert any(
        "bonuses of 2 participants without a participant id, 0.30 GBP in all" in note
        for note in closed.notes
    )
    # Their ids: the next list holds what was in none.
    people.write_text(
        "name,languages,crisis,participant_id\nannalena,en,yes,p0\nbogumil,en,yes,p1\n"
    )
    reopen_round(path, annotators=people)
    close_round(path)
    assert (bonus(path), pay_of(path, "annalena")["completion code"]) == (
        {"p0": "0.15", "p1": "0.15"},
        "CODE1",
    )


def test_another_id_is_refused_by_a_list_and_listed_amounts_stay(tmp_path: Path) -> None:
    """A list with another id replaced the first silently, and a list without ids removed it: nobody was paid."""
    path = opened(tmp_path, count=2)
    answer(path, first_items(1))  # type: ignore[arg-type]
    close_round(path, force=True)
    answer(path, lambda *_: crowd())
    people = tmp_path / "people.csv"
    people.write_text("name,languages,crisis\nannalena,en,yes\nbogumil,en,yes\n")
    reopen_round(path, annotators=people)
    assert [one.participant_id for one in RoundFolder(path).annotators()] == ["p0", "p1"]
    people.write_text(
        "name,languages,crisis,participant_id\nannalena,en,yes,p0\nbogumil,en,yes,p7\n"
    )
    with pytest.raises(
        RoundError,
        match=r"bogumil is participant p1 in this round, and is to become p7.*--replace-id",
    ):
        reopen_round(path, annotators=people)
    _, messages = reopen_round(path, annotators=people, replace_ids=True)
    assert any(
        "p1 was replaced by p7; 0.15 GBP was listed before and counts as paid" in one
        for one in messages
    )
    close_round(path)
    assert bonus(path) == {"p0": "0.15", "p7": "0.15"}


def test_two_currencies_are_refused(tmp_path: Path) -> None:
    """Amounts of a list in pounds were subtracted from what is owed in dollars."""
    path = opened(tmp_path)
    answer(path, first_items(2))  # type: ignore[arg-type]
    close_round(path, force=True)
    settings = path / "round.json"
    settings.write_text(settings.read_text().replace('"GBP"', '"USD"'))
    with pytest.raises(DataError, match="are in GBP and USD, which cannot be subtracted"):
        close_round(path)
    assert len((path / "private" / "payments.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("items", "minutes", "hourly", "owed"),
    [
        (9, 1.0, 8.3, "1.25"),
        (15, 1.0, 0.02, "0.01"),
        (3, 0.1, 1.0, "0.01"),
        (0, 1.5, 9.0, "0.00"),
        (7, 1.5, 9.0, "1.58"),
    ],
)
def test_cents_are_rounded_once_and_half_up(
    items: int, minutes: float, hourly: float, owed: str
) -> None:
    """9 items at 8.30 an hour are 1.245; a sixtieth that was cut off and multiplied made 1.24 of it."""
    assert str(amount_owed(items, minutes, hourly)) == owed


# Writes of a closing: annotations, decisions, agreement, statistics, the list, its file, payment.csv, the event.
@pytest.mark.parametrize("write", range(9))
@pytest.mark.parametrize("more", [False, True])
def test_a_killed_closing_lists_nobody_twice_and_nobody_not_at_all(
    tmp_path: Path, write: int, more: bool
) -> None:
    path = opened(tmp_path)
    answer(path, first_items(2))  # type: ignore[arg-type]
    assert interrupted_at(write, partial(close_round, path, force=True)) == (write < 9)
    if more:
        answer(path, lambda *_: crowd())
    close_round(path, force=True)
    each = Decimal("0.60" if more else "0.30")
    assert all_bonuses(path) == {"p0": each, "p1": each}
    lines = [
        json.loads(line) for line in (path / "private" / "payments.jsonl").read_text().splitlines()
    ]
    stored = [payment["bonus"] for line in lines for payment in line["payments"]]
    assert sum(map(Decimal, stored)) == 2 * each


@pytest.mark.parametrize("write", range(8))
def test_a_killed_reopening_lists_nobody_twice(tmp_path: Path, write: int) -> None:
    path = opened(tmp_path)
    answer(path, first_items(2))  # type: ignore[arg-type]
    close_round(path, force=True)
    answer(path, lambda *_: crowd(), only=(NAMES[0],))
    interrupted_at(write, partial(reopen_round, path))
    close_round(path, force=True)
    if round_status(path).state == "closed" and bonus(path) == {"p0": "0.30", "p1": "0.30"}:
        assert all_bonuses(path) == {"p0": Decimal("0.30"), "p1": Decimal("0.30")}
        reopen_round(path)
        close_round(path, force=True)
    assert all_bonuses(path) == {"p0": Decimal("0.60"), "p1": Decimal("0.30")}


def test_lists_of_an_earlier_version_count(tmp_path: Path) -> None:
    """An earlier version stored no lists, and its file held the whole pay."""
    path = opened(tmp_path)
    answer(path, first_items(2))  # type: ignore[arg-type]
    close_round(path, force=True)
    (path / "private" / "payments.jsonl").unlink()
    with pytest.raises(
        DataError, match=r"1 list of payments were made, and 0 are stored; restore the file"
    ):
        close_round(path)
    log = path / "events.jsonl"
    log.write_text(
        log.read_text().replace(',"payment_lists":1', "").replace(', "payment_lists": 1', "")
    )
    close_round(path)
    assert bonus(path) == {"p0": "0.30", "p1": "0.30"}
    answer(path, lambda *_: crowd())
    reopen_round(path)
    close_round(path)
    assert bonus(path) == {"p0": "0.30", "p1": "0.30"}
    assert all_bonuses(path) == {"p0": Decimal("0.60"), "p1": Decimal("0.60")}


def test_files_of_payments_are_private_and_settings_are_checked(tmp_path: Path) -> None:
    path = opened(tmp_path)
    answer(path, lambda *_: crowd())
    close_round(path)
    for name in ("payments.jsonl", "prolific_bonus.csv", "payment.csv"):
        assert (path / "private" / name).stat().st_mode & 0o077 == 0
    assert RoundFolder(path).spec().currency == "GBP"
    for wrong in ({"currency": "pounds"}, {"reward": -1.0}, {"completion": "two words"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            opened(tmp_path / "wrong", **wrong)


# --- Submissions before everything is answered ------------------------------------------------------------------------


def checks(path: Path) -> dict[str, dict[str, str]]:
    heading, *rows = [
        line.split(",")
        for line in (path / "private" / "prolific_check.csv").read_text().splitlines()
    ]
    return {row[0]: dict(zip(heading, row, strict=True)) for row in rows}


def test_who_submits_with_the_code_before_being_done_is_named_before_anything_is_paid(
    tmp_path: Path,
) -> None:
    """The code stands where everybody can read it: nothing said who had entered it and answered half of the items."""
    path = opened(tmp_path, people=3, completion="CODE", reward=0.30)
    answer(path, first_items(2), only=(NAMES[0],))  # type: ignore[arg-type]
    answer(path, lambda *_: crowd(), only=(NAMES[1],))
    status = round_status(path)
    (note,) = [one for one in status.notes if "submitted with the code" in one]
    assert note.startswith(
        "2 participants submitted with the code, and not all their items are answered or skipped: "
        f"{NAMES[0]} (2 of 4 items answered), {NAMES[2]} (0 of 4 items answered); look at "
    )
    assert "before you approve or pay anything" in note
    rows = checks(path)
    assert [rows[name]["approve"] for name in NAMES[:3]] == ["no", "yes", "no"]
    keys = ("items", "answered", "skipped", "open", "completion code")
    assert [rows[NAMES[0]][key] for key in keys] == ["4", "2", "0", "2", "CODE"]
    assert (path / "private" / "prolific_check.csv").stat().st_mode & 0o077 == 0
    closed, _ = close_round(path, force=True)
    assert note in closed.notes
    assert (approved(path), bonus(path)) == (["p1"], {"p0": "0.30", "p1": "0.30"})
    # Once they are done, nothing is said.
    answer(path, lambda *_: crowd())
    reopen_round(path)
    assert not [one for one in round_status(path).notes if "submitted with the code" in one]
    assert {row["approve"] for row in checks(path).values()} == {"yes"}


@pytest.mark.parametrize("completion", ["C1X2Y3", "https://app.example.org/complete?cc=C1X2Y3&x=1"])
def test_another_code_than_that_of_the_round_is_named(tmp_path: Path, completion: str) -> None:
    path = opened(tmp_path, completion=completion)
    answer(path, lambda *_: crowd(), only=(NAMES[0],))
    notes = round_status(path).notes
    (note,) = [one for one in notes if "another code than that of `completion`" in one]
    assert (
        f"2 participants entered another code than that of `completion`: {NAMES[0]} (4 of 4 items answered)"
        in note
    )
    assert checks(path)[NAMES[0]]["completion code"] == "CODE (not that of the round)"
    # A link without a code cannot be compared with one.
    other = opened(tmp_path / "other", completion="https://app.example.org/thanks")
    assert not [one for one in round_status(other).notes if "another code" in one]


def test_another_code_is_not_called_the_code(tmp_path: Path) -> None:
    """Who had entered another code, and answered a part, was said to have "submitted with the code"."""
    path = opened(tmp_path, people=3, completion="C1X2Y3")
    answer(path, first_items(2), only=(NAMES[0],))  # type: ignore[arg-type]
    answer(path, lambda *_: crowd(), only=(NAMES[1],))
    notes = round_status(path).notes
    assert not [one for one in notes if "submitted with the code" in one]
    (note,) = [one for one in notes if "participants submitted, and not all" in one]
    assert (
        f": {NAMES[0]} (2 of 4 items answered), {NAMES[2]} (0 of 4 items answered); look at "
        in note
    )
    (other,) = [one for one in notes if "another code than that" in one]
    assert other.startswith("3 participants entered another code")
    # Nobody can say whether a code is that of a round without one, or of a link without one.
    for number, options in enumerate(({}, {"completion": "https://app.example.org/thanks"})):
        unknown = opened(tmp_path / str(number), **options)
        answer(unknown, first_items(2), only=(NAMES[0],))  # type: ignore[arg-type]
        notes = round_status(unknown).notes
        assert [one for one in notes if "2 participants submitted, and not all" in one]
        assert not [one for one in notes if "with the code" in one or "another code" in one]


def test_an_export_says_who_submitted(tmp_path: Path) -> None:
    """Codes that were entered after the list of annotators was made were read nowhere."""
    folder = tmp_path / "new"
    folder.mkdir()
    write_jsonl(folder / "items.jsonl", [item(n) for n in range(2)])
    (folder / "people.csv").write_text(
        "name,languages,crisis,participant_id\nannalena,en,yes,p0\nbogumil,en,yes,p1\nchen_wei,en,yes,p2\n"
    )
    options = {
        "annotators": str(folder / "people.csv"),
        "overlap": 3,
        "completion": "C1X2Y3",
        **PAY,
    }
    path = folder / "round"
    open_round(make_spec("crowd", str(folder / "items.jsonl"), options), path)
    assert not [one for one in round_status(path).notes if "submitted" in one]
    export = folder / "export.csv"
    export.write_text(
        "Participant id,Status,Completion code\np0,AWAITING REVIEW,C1X2Y3\np1,AWAITING REVIEW,\np2,ACTIVE,\n"
    )
    notes = round_status(path, submissions=export).notes
    assert any(
        "1 participant submitted with the code" in one and "annalena (0 of 2 items" in one
        for one in notes
    )
    assert any(
        "1 participant submitted, and not all" in one and "bogumil (0 of 2 items" in one
        for one in notes
    )
    assert not any("chen_wei" in one for one in notes)
    assert checks(path)["annalena"]["completion code"] == "C1X2Y3"
    # What an export said is stored, and stands in the list of payments.
    assert [one for one in round_status(path).notes if "submitted with the code" in one]
    export.write_text("Participant id,Status,Completion code\np0,RETURNED,C1X2Y3\n")
    assert not [one for one in round_status(path, submissions=export).notes if "annalena (" in one]
    with pytest.raises(RoundError, match="no export of Prolific's participants"):
        round_status(path, submissions=folder / "people.csv")
    close_round(path, force=True)
    assert pay_of(path, "annalena")["completion code"] == "C1X2Y3"
    with pytest.raises(RoundError, match="this round is closed; `h2htalk round close"):
        round_status(path, submissions=export)
