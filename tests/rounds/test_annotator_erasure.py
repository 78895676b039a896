"""An annotator who withdraws consent: nothing of them is left, also after a kill, and everything else goes on."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from test_access import SAFE, answered_by_all, safety_round

from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.annotator_erasure import erase_annotator
from h2htalk.rounds.lifecycle import (
    close_round,
    open_round,
    remove_annotator,
    reopen_round,
    round_status,
)
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.platforms import Removal
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import list_rounds
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.doubles.argilla_double import DATASET, ArgillaDouble, interrupt_after
from support.doubles.argilla_double import opened as opened_on_argilla
from support.doubles.label_studio_double import LabelStudioDouble, Person, write_people
from support.kills import killed_at
from support.rounds import (
    NAMES,
    adjudicated,
    answer,
    begin,
    decisions,
    events,
    expert,
    files_of,
    progress_of,
    split,
)
from support.spreadsheet_rounds import save_strict, workbook_path

GONE = "bogumil"
COMMENT = "The kettle in this one sings off key."


def typed(item: str, annotator: str) -> Mapping[str, str]:
    """Everybody keeps all; bogumil drops the second item and comments."""
    dropped = annotator == GONE and item == "en-item-1"
    comment = COMMENT if annotator == GONE else f"A remark by somebody else on {item}."
    return expert("drop" if dropped else "keep", "2" if annotator == GONE else "5") | {
        "comment": comment
    }


def closed_round(folder: Path, people: int = 3, **more: object) -> Path:
    path = begin(folder, people=people, overlap=people, **more)
    answer(path, typed)
    close_round(path)
    return path


def erased(path: Path, name: str = GONE) -> Removal:
    return erase_annotator(path, name, keep_payments=False)


def id_of(path: Path, name: str = GONE) -> str:
    return next(one.id for one in RoundFolder(path).annotators() if one.name == name)


def traces(path: Path, ids: str, *more: str) -> list[str]:
    return sorted({file for text in (GONE, COMMENT, ids, *more) for file in files_with(path, text)})


def paid(path: Path) -> dict[str, tuple[str, str]]:
    with (path / "private" / "payment.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["annotator"]: (row["items completed"], row["items skipped"])
            for row in csv.DictReader(file)
        }


def test_nothing_is_left_of_them_and_decisions_stay(tmp_path: Path) -> None:
    """Nobody could be erased: `remove-annotator` keeps answers, comments, times and the name."""
    path = closed_round(tmp_path)
    before = files_of(path)
    ids = id_of(path)
    money = paid(path)
    assert len(traces(path, ids)) >= 6
    removal = erased(path)
    assert traces(path, ids) == []
    assert not any(GONE in file.name for file in path.rglob("*"))
    after = files_of(path)
    for name in ("decisions.jsonl", "agreement.json", "items.jsonl", "guidelines/en.md"):
        assert after[name] == before[name]
    assert paid(path) == {
        "erased-1" if name == GONE else name: done for name, done in money.items()
    }
    assert f"{GONE} was erased from {path}" in removal.removed[-1]
    assert any(f"spreadsheets were sent to {GONE}" in line for line in removal.left)
    assert any("your list of annotators names bogumil" in line for line in removal.left)
    (event,) = events(path, "annotator erased")
    assert event["number"] == 1


def test_a_comment_in_the_same_words_is_no_trace(tmp_path: Path) -> None:
    """The manager was asked to remove the comment from annotations.jsonl, where it was another annotator's."""
    path = begin(tmp_path, people=2, overlap=2)
    answer(path, lambda *_: expert() | {"comment": COMMENT})
    close_round(path)
    removal = erased(path)
    assert not any("still holds" in line for line in removal.left), removal.left
    stored = RoundFolder(path).annotations().values()
    comments = [annotation.value for annotation in stored if annotation.question == "comment"]
    assert comments == [COMMENT] * 4


def test_the_round_goes_on_after_an_erasure(tmp_path: Path) -> None:
    """Closing again writes the same decisions: their counts include votes that are nobody's any more."""
    path = closed_round(tmp_path)
    before = files_of(path)
    erased(path)
    status = round_status(path)
    assert (status.state, status.completed, status.missing, status.mistakes) == (
        "closed",
        12,
        {},
        (),
    )
    assert "bogumil" not in progress_of(status)
    close_round(path)
    assert (path / "decisions.jsonl").read_bytes() == before["decisions.jsonl"]
    assert (path / "agreement.json").read_bytes() == before["agreement.json"]
    assert paid(path)["erased-1"] == ("4", "0")
    outcome = read_outcome(path)
    assert {one.votes for one in outcome.decisions.values()} == {3}
    assert [one.state for one in list_rounds(path)] == ["closed"]
    # Somebody else's answers are removed: the counts lose these alone.
    remove_annotator(path, NAMES[0], why="a test")
    assert {one["votes"] for one in decisions(path).values()} == {2}
    assert decisions(path)["en-item-1", "keep"]["tied"] == ["drop", "keep"]
    # Items can still be erased, with the votes on them.
    assert erase(path, ErasedIds(frozenset({"en-item-1"}))).removed == 1
    assert files_with(path, "en-item-1") == ["private/erased.jsonl"]
    assert h2htalk_here("round", "status", path).returncode == 0
    assert h2htalk_here("show", path).returncode == 0


def test_an_adjudication_still_decides_their_tie(tmp_path: Path) -> None:
    path = begin(tmp_path, people=2)
    answer(path, split("keep", "drop", only="en-item-2"))
    close_round(path)
    name = NAMES[0]
    erase_annotator(path, name, keep_payments=False)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": "drop"})
    close_round(path, adjudication=ties)
    assert decisions(path)["en-item-2", "keep"]["rule"] == "adjudication"
    before = (path / "decisions.jsonl").read_bytes()
    close_round(path)
    assert (path / "decisions.jsonl").read_bytes() == before


def test_two_are_erased_and_the_model_s_figures_stay(tmp_path: Path) -> None:
    """With two erased annotators no model can be fitted to whose votes are whose; what it said of them stays."""
    path = closed_round(tmp_path, people=4, count=8)
    before = (path / "decisions.jsonl").read_bytes()
    erased(path)
    erase_annotator(path, NAMES[2], keep_payments=False)
    close_round(path)
    assert (path / "decisions.jsonl").read_bytes() == before
    assert paid(path)["erased-2"] == ("8", "0")
    assert files_with(path, NAMES[2]) == []


def test_the_only_annotator_can_be_erased(tmp_path: Path) -> None:
    path = closed_round(tmp_path, people=1)
    name = NAMES[0]
    ids = id_of(path, name)
    erase_annotator(path, name, keep_payments=False)
    assert traces(path, ids, name) == []
    close_round(path)
    assert len(read_outcome(path).decisions) == 20
    assert round_status(path).state == "closed"
    assert paid(path) == {"erased-1": ("4", "0")}


def test_a_removed_annotator_can_be_erased(tmp_path: Path) -> None:
    """The events of the removal keep their number, because archived results are numbered by them."""
    path = closed_round(tmp_path)
    remove_annotator(path, GONE, why="bogumil asked for it")
    ids = id_of(path)
    kept = (path / "decisions.jsonl").read_bytes()
    erased(path)
    assert traces(path, ids) == []
    close_round(path)
    assert (path / "decisions.jsonl").read_bytes() == kept
    assert {one["votes"] for one in decisions(path).values()} == {2}
    remove_annotator(path, NAMES[2], why="a test")
    assert (path / "decisions.before-3.jsonl").exists()


def test_an_open_round_asks_others_instead(tmp_path: Path) -> None:
    path = begin(tmp_path, people=3, overlap=2)
    answer(path, typed, only=NAMES[:2])
    ids, theirs = id_of(path), 0
    with pytest.raises(RoundError, match="--payments FILE"):
        erase_annotator(path, GONE)
    erased(path)
    assert traces(path, ids) == []
    folder = RoundFolder(path)
    assert folder.erased_votes() == ()
    theirs = folder.erased_annotators()[0].completed
    assert theirs > 0
    assert sum(n for n in round_status(path).missing.values()) >= theirs
    _, messages = reopen_round(path)
    assert any("handed out" in message for message in messages)
    answer(path, typed)
    close_round(path)
    assert {one["votes"] for one in decisions(path).values()} == {2}
    assert paid(path)["erased-1"] == (str(theirs), "0")


def test_a_spreadsheet_that_comes_back_is_deleted(tmp_path: Path) -> None:
    path = begin(tmp_path, people=3)
    answer(path, typed, only=NAMES[:2])
    sent = workbook_path(RoundFolder(path), GONE).read_bytes()
    erased(path)
    (path / "spreadsheets" / "answers of b.xlsx").write_bytes(sent)
    status = round_status(path)
    assert status.mistakes == ()
    assert any(
        "who was erased from the round: deleted without being read" in note for note in status.notes
    )
    assert traces(path, COMMENT) == []
    assert not (path / "spreadsheets" / "answers of b.xlsx").exists()


def test_a_spreadsheet_that_comes_back_to_a_closed_round_is_deleted(tmp_path: Path) -> None:
    """Only open rounds looked: in a closed one the answers and comments lay there again."""
    path = closed_round(tmp_path)
    of_another = workbook_path(RoundFolder(path), NAMES[0])
    sent = workbook_path(RoundFolder(path), GONE).read_bytes()
    erased(path)
    returned = path / "spreadsheets" / "answers of b.xlsx"
    returned.write_bytes(sent)
    status = round_status(path)
    assert any("deleted without being read" in note for note in status.notes), status.notes
    assert not returned.exists()
    assert of_another.exists()
    assert traces(path, COMMENT) == []
    assert not any("deleted" in note for note in round_status(path).notes)


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_spreadsheet_that_was_saved_as_another_type_is_deleted_too(
    tmp_path: Path, suffix: str, is_closed: bool
) -> None:
    """A *Strict Open XML Spreadsheet* of an erased annotator is not read, so it stayed there with the comments."""
    path = begin(tmp_path, people=3, overlap=3)
    answer(path, typed)
    if is_closed:
        close_round(path)
    returned = workbook_path(RoundFolder(path), GONE)
    save_strict(returned)
    sent = returned.read_bytes()
    returned.rename(returned.with_name("before.xlsx"))
    erased(path)
    assert traces(path, COMMENT) == []
    returned = path / "spreadsheets" / f"answers of b{suffix}"
    returned.write_bytes(sent)
    assert traces(path, COMMENT) != []
    status = round_status(path)
    assert any("deleted without being read" in note for note in status.notes), status.notes
    assert traces(path, COMMENT) == []


def test_the_payment_is_kept_outside_of_the_round_or_not_at_all(tmp_path: Path) -> None:
    path = closed_round(tmp_path, minutes=1.5)
    file = tmp_path / "books" / "payments.csv"
    before = files_of(path)
    with pytest.raises(
        RoundError, match="4 items completed and 0 skipped, and the law may want a record"
    ):
        erase_annotator(path, GONE)
    with pytest.raises(RoundError, match="lies in the round"):
        erase_annotator(path, GONE, payments=path / "payments.csv")
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises(RoundError, match="is no file of payments"):
        erase_annotator(path, GONE, payments=tmp_path / "other.csv")
    assert files_of(path) == before
    done = h2htalk_here("round", "erase-annotator", path, GONE, "--payments", file)
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.reader(file.read_text().splitlines()))
    assert rows[1][:-1] == ["round", GONE, "", "4", "0", "6", "", "", "", "", "", ""]
    assert file.stat().st_mode & 0o777 == 0o600
    erase_annotator(path, NAMES[0], payments=file)
    assert len(file.read_text().splitlines()) == 3


def test_what_prolific_knows_them_by_goes_too(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text(
        "name,languages,crisis,participant_id,completion_code\n"
        f"annalena,en,yes,5f00000000000000000000aa,C1\n{GONE},en,yes,5f00000000000000000000bb,C2SECRET\n"
    )
    path = begin(tmp_path / "r", people=2, hourly=9.0, annotators=str(people))
    answer(path, typed)
    close_round(path)
    participant, books = "5f00000000000000000000bb", tmp_path / "books.csv"
    assert len(files_with(path, participant)) >= 3
    erase_annotator(path, GONE, payments=books, sent="all")
    assert list(csv.reader(books.read_text().splitlines()))[1][2:9] == [
        participant,
        "4",
        "0",
        "4",
        "0.60",
        "0.00",
        "0.60",
    ]
    assert traces(path, participant, "C2SECRET") == []
    close_round(path)
    assert paid(path) == {"annalena": ("4", "0"), "erased-1": ("4", "0")}
    assert traces(path, participant, "C2SECRET") == []
    # What was listed stays, so that sums are right, and nobody is paid twice.
    assert (
        path / "private" / "prolific_bonus.csv"
    ).read_text() == "5f00000000000000000000aa,0.60\n"
    with (path / "private" / "payment.csv").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["annotator"] == "erased-1"]
    assert (row["owed"], row["listed earlier"], row["listed now"], row["participant id"]) == (
        "0.60",
        "0.00",
        "0.60",
        "",
    )


def participants_round(folder: Path, people: int = 3, **more: object) -> Path:
    """Everybody is p0, p1, ...; each item pays 0.15, and the study pays everybody 0.05 by itself."""
    folder.mkdir(parents=True)
    lines = [
        f"{name},en,yes,5f0000000000000000p{n},CODE{n}" for n, name in enumerate(NAMES[:people])
    ]
    listed = folder / "listed.csv"
    listed.write_text(
        "\n".join(["name,languages,crisis,participant_id,completion_code", *lines]) + "\n"
    )
    options = {
        "hourly": 9.0,
        "reward": 0.05,
        "currency": "GBP",
        "overlap": people,
        "annotators": str(listed),
    }
    return begin(folder, people=people, **(options | more))


def file_of(path: Path, name: str) -> list[str]:
    return (path / "private" / name).read_text(encoding="utf-8").splitlines()


def books_of(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)][-1]


def test_somebody_in_a_list_is_erased_only_once_it_is_known_whether_it_was_sent(
    tmp_path: Path,
) -> None:
    """The line left prolific_bonus.csv while the books said that the bonus was listed: nobody paid it."""
    path = participants_round(tmp_path / "r")
    answer(path, typed)
    close_round(path)
    before = files_of(path)
    for given in ({"payments": tmp_path / "books.csv"}, {"keep_payments": False}):
        with pytest.raises(
            RoundError,
            match=r"bogumil is in list 1 \(0\.55 GBP, made .*--sent all.*Nothing was erased",
        ):
            erase_annotator(path, GONE, **given)  # type: ignore[arg-type]
    for wrong in ("2", "yes", ",", "1 2"):
        with pytest.raises(RoundError, match="write all, none, or numbers of these lists: 1"):
            erase_annotator(path, GONE, payments=tmp_path / "books.csv", sent=wrong)
    assert files_of(path) == before
    done = h2htalk_here(
        "round",
        "erase-annotator",
        path,
        GONE,
        "--payments",
        tmp_path / "books.csv",
        "--sent",
        "none",
    )
    assert done.returncode == 0, done.stderr
    assert "0.55 GBP are left to pay to bogumil (participant 5f0000000000000000p1)" in done.stdout
    # The reward was taken off without a word, also of a submission that nobody had approved yet.
    assert (
        "pay it yourself (without the study's reward of 0.05 GBP: add it if the platform does not"
        in done.stdout
    )
    books = books_of(tmp_path / "books.csv")
    keys = ("owed", "reward", "listed as bonus", "lists", "left to pay", "currency")
    assert [books[key] for key in keys] == [
        "0.60",
        "0.05",
        "0.55",
        "1: 0.55 not sent",
        "0.55",
        "GBP",
    ]
    # Closing counts the lines of its file, and names what left it.
    closed, _ = close_round(path)
    assert len(file_of(path, "prolific_bonus.csv")) == 2
    assert any("bonuses of 2 participants, 1.10 GBP in all" in note for note in closed.notes)
    assert any(
        "list 1 also held 0.55 GBP of 1 annotator erased since" in note for note in closed.notes
    )


def test_lists_of_several_openings_are_told_apart(tmp_path: Path) -> None:
    path = participants_round(tmp_path / "r", people=2)
    answer(path, lambda name, who: typed(name, who) if name == "en-item-0" else {"keep": ""})
    close_round(path, force=True)
    answer(path, typed)
    reopen_round(path)
    close_round(path)
    with pytest.raises(
        RoundError, match=r"list 1 \(0\.15 GBP, .*\) and list 2 \(0\.40 GBP, .*--sent 1"
    ):
        erase_annotator(path, GONE, keep_payments=False)
    removal = erase_annotator(path, GONE, payments=tmp_path / "books.csv", sent="1")
    books = books_of(tmp_path / "books.csv")
    assert (books["lists"], books["left to pay"]) == ("1: 0.15 sent; 2: 0.40 not sent", "0.40")
    assert any("0.40 GBP are left to pay" in line for line in removal.removed)
    assert files_with(path, "5f0000000000000000p1") == []


def test_the_last_of_a_list_is_erased(tmp_path: Path) -> None:
    path = participants_round(tmp_path / "r", people=1)
    answer(path, typed)
    close_round(path)
    removal = erase_annotator(path, NAMES[0], payments=tmp_path / "books.csv", sent="all")
    assert not any("left to pay" in line for line in removal.removed)
    closed, _ = close_round(path)
    assert not (path / "private" / "prolific_bonus.csv").exists()
    assert any("list 1 has no line any more" in note for note in closed.notes)


def test_payment_csv_of_an_erased_participant_stays_as_it_is(tmp_path: Path) -> None:
    """Its next closing wrote a reward of 0.00 where 0.05 was taken off."""
    path = participants_round(tmp_path / "r")
    answer(path, typed)
    close_round(path)
    erase_annotator(path, GONE, payments=tmp_path / "books.csv", sent="all")
    before = sorted(file_of(path, "payment.csv"))
    assert "erased-1,4,0,4.0,,,0.60,0.05,0.00,0.55,0.00" in before
    close_round(path)
    assert sorted(file_of(path, "payment.csv")) == before
    # An erasure of an earlier version stored no reward: it is what was owed and not listed.
    stored = path / "private" / "erased_annotators.jsonl"
    stored.write_text(stored.read_text().replace(',"reward":"0.05"', ""))
    assert '"reward"' not in stored.read_text()
    close_round(path)
    assert sorted(file_of(path, "payment.csv")) == before


def test_what_is_owed_in_an_open_round_is_left_to_pay(tmp_path: Path) -> None:
    path = participants_round(tmp_path / "r")
    answer(path, typed)
    removal = erase_annotator(path, GONE, payments=tmp_path / "books.csv")
    assert books_of(tmp_path / "books.csv")["left to pay"] == "0.60"
    assert any("0.60 GBP are left to pay to bogumil" in line for line in removal.removed)


def test_a_file_of_payments_of_an_earlier_version_gets_the_new_columns(tmp_path: Path) -> None:
    books = tmp_path / "books.csv"
    heading = "round,annotator,participant id,items completed,items skipped,minutes,owed,reward,listed as bonus"
    books.write_text(
        f"{heading},currency,erased on\nold,zoe,p9,1,0,1,0.15,0.00,0.15,GBP,2026-01-02\n"
    )
    path = participants_round(tmp_path / "r")
    answer(path, typed)
    erase_annotator(path, GONE, payments=books)
    with books.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["annotator"], first["listed as bonus"], first["lists"], first["erased on"]) == (
        "zoe", "0.15", "", "2026-01-02",
    )  # fmt: skip
    assert second["annotator"] == GONE


@pytest.mark.parametrize("earlier_version", [False, True])
def test_participant_ids_that_were_replaced_go_too(tmp_path: Path, earlier_version: bool) -> None:
    """The first id of somebody stayed in payments.jsonl and in the files of the first closing."""
    path = participants_round(tmp_path / "r", people=2)
    answer(path, lambda name, who: typed(name, who) if name == "en-item-0" else {"keep": ""})
    close_round(path, force=True)
    answer(path, typed)
    again = tmp_path / "again.csv"
    # Their first id turns out to be that of somebody else, who joins.
    again.write_text("name,languages,crisis,participant_id\nbogumil,en,yes,5f0000000000000000b2\n")
    reopen_round(path, annotators=again, replace_ids=True)
    close_round(path)
    if earlier_version:
        (path / "private" / "submissions.jsonl").unlink()
    ids = id_of(path)
    for participant in ("5f0000000000000000p1", "5f0000000000000000b2"):
        assert len(files_with(path, participant)) >= 2
    removal = erase_annotator(path, GONE, payments=tmp_path / "books.csv", sent="all")
    assert traces(path, ids, "5f0000000000000000p1", "5f0000000000000000b2", "CODE1") == []
    assert not any("still holds the name, an id" in line for line in removal.left)
    assert [line.split(",")[0] for line in file_of(path, "prolific_bonus.before-2.csv")] == [
        "5f0000000000000000p0"
    ]


def test_an_id_that_is_another_s_now_stays_theirs(tmp_path: Path) -> None:
    """Two ids were swapped in the list: erasing one of the two takes the other's id from nobody."""
    path = participants_round(tmp_path / "r", people=2)
    answer(path, typed)
    close_round(path)
    swapped = tmp_path / "swapped.csv"
    swapped.write_text(
        "name,languages,crisis,participant_id\n"
        "annalena,en,yes,5f0000000000000000p1\nbogumil,en,yes,5f0000000000000000p0\n"
    )
    reopen_round(path, annotators=swapped, replace_ids=True)
    close_round(path)
    erase_annotator(path, GONE, payments=tmp_path / "books.csv", sent="all")
    (left,) = RoundFolder(path).annotators()
    assert left.participant_id == "5f0000000000000000p1"
    (first, *_) = [json.loads(line) for line in file_of(path, "payments.jsonl")]
    theirs = [
        payment["participant_id"]
        for payment in first["payments"]
        if payment["annotator"] == "erased-1"
    ]
    assert theirs == [""]


def test_kill_9_before_any_change_of_a_file(tmp_path: Path) -> None:
    """Each time the round is refused or whole, and the same command completes the erasure."""
    base = closed_round(tmp_path)
    ids = id_of(base)
    wanted = None
    step = 0
    while True:
        step += 1
        path = tmp_path / f"killed-{step}" / "round"
        shutil.copytree(base, path)
        killed = killed_at(step, lambda path=path: erased(path))  # type: ignore[misc]
        if killed and (path / "private" / "erasing_annotator.json").exists():
            with pytest.raises(DataError, match="the erasure of an annotator was interrupted here"):
                round_status(path)
        erased(path)
        assert traces(path, ids) == [], step
        left = {name: text for name, text in files_of(path).items() if name != "events.jsonl"}
        wanted = wanted or left
        assert left == wanted, step
        assert len(events(path, "annotator erased")) == 1
        assert len(RoundFolder(path).erased_annotators()) == 1
        if not killed:
            break
        shutil.rmtree(path.parent)
    assert step > 20
    close_round(path)
    assert (path / "decisions.jsonl").read_bytes() == (base / "decisions.jsonl").read_bytes()


def test_erasing_again_and_joining_again(tmp_path: Path) -> None:
    path = begin(tmp_path, people=3)
    answer(path, typed)
    erased(path)
    assert erased(path).removed == (f"{GONE} was erased from {path} before: nothing is left to do",)
    with pytest.raises(
        RoundError, match="unknown annotator nobody; choose from annalena, chen_wei"
    ):
        erased(path, "nobody")
    with pytest.raises(
        RoundError, match="bogumil was erased from this round and cannot join it again"
    ):
        reopen_round(path, annotators=tmp_path / "people.csv")
    # The list with which the round was opened may be given again, and changes nothing.
    open_round(RoundFolder(path).spec(), path)
    assert traces(path, COMMENT) == []


def test_an_erased_participant_cannot_join_under_another_name(tmp_path: Path) -> None:
    """Their votes were kept without a name, and the same person gave a second one to each item."""
    people = tmp_path / "people.csv"
    ids = {"annalena": "5f00000000000000000000aa", GONE: "5f00000000000000000000bb"}
    lines = ["name,languages,crisis,participant_id"]
    lines += [f"{name},en,yes,{participant}" for name, participant in ids.items()]
    people.write_text("\n".join(lines) + "\n")
    path = begin(tmp_path / "r", people=2, annotators=str(people))
    answer(path, typed)
    close_round(path)
    erased(path)
    assert traces(path, ids[GONE]) == []
    for participant in (ids[GONE], ids[GONE].upper()):
        people.write_text(f"{lines[0]}\nzoe,en,yes,{participant}\n")
        with pytest.raises(
            RoundError, match="zoe has the participant_id of somebody who was erased"
        ):
            reopen_round(path, annotators=people)
    people.write_text(f"{lines[0]}\nzoe,en,yes,5f00000000000000000000cc\n")
    reopen_round(path, annotators=people)


def test_copies_in_other_folders_are_named(tmp_path: Path) -> None:
    """Rounds that were opened from this one have annotators and ids of their own, and may show comments."""
    path = closed_round(tmp_path)
    open_round(RoundFolder(path).spec().from_dict({"kind": "expert", "items": str(path),
               "annotators": str(tmp_path / "people.csv"), "overlap": 3}, "test"), tmp_path / "next")  # fmt: skip
    (tmp_path / "next" / "notes.md").write_text(f"somebody wrote: {COMMENT}")
    left = erased(path).left
    assert any(
        line.startswith(f"{tmp_path / 'next'}: bogumil is an annotator of this round, too")
        for line in left
    )
    assert any("notes.md: holds an id or a comment of bogumil" in line for line in left)


# --- On servers -------------------------------------------------------------------------------------------------------


def test_their_responses_and_account_go_from_argilla(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened_on_argilla(tmp_path)
    answered_by_all(server, round)
    round_status(round.path)
    cem = server.user_id("cem")
    ids = id_of(round.path, "cem")
    copied = server.dataset(DATASET)
    server.datasets["copy"] = json.loads(json.dumps(copied)) | {
        "id": "copy",
        "name": "a copy",
        "facts": {},
    }
    removal = erase_annotator(round.path, "cem", keep_payments=False)
    held = [
        user
        for one in server.datasets.values()
        for record in one["records"].values()
        for user in record["responses"]
    ]
    assert cem not in held
    assert server.user_id("ann") in held
    assert "cem" not in {one["username"] for one in server.users.values()}
    assert "7 responses deleted, and the account cem" in removal.removed[0]
    for text in (ids, cem, "cem,"):
        assert files_with(round.path, text) == []
    status = round_status(round.path)
    assert (status.completed, status.mistakes) == (4, ())
    close_round(round.path, force=True)
    assert paid(round.path)["erased-1"] == ("4", "0")


def test_answers_in_a_closed_argilla_round_and_an_account_of_others(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    server.add_user("cem")
    round = opened_on_argilla(tmp_path)
    answered_by_all(server, round)
    close_round(round.path)
    before = (round.path / "decisions.jsonl").read_bytes()
    removal = erase_annotator(round.path, "cem", keep_payments=False)
    assert "4 responses deleted; " in removal.removed[0]
    assert any(
        "account cem" in line and "not recorded as created by this round" in line
        for line in removal.left
    )
    close_round(round.path)
    assert (round.path / "decisions.jsonl").read_bytes() == before
    assert {one.votes for one in read_outcome(round.path).decisions.values()} == {2}


@pytest.mark.parametrize("stop", range(1, 8))
def test_an_erasure_on_argilla_that_is_killed_is_repeated(
    server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """After any of its requests: four responses, two memberships, the account."""
    round = opened_on_argilla(tmp_path)
    answered_by_all(server, round)
    round_status(round.path)
    ids = id_of(round.path, "cem")
    with monkeypatch.context() as patch:
        interrupt_after(patch, stop)
        with pytest.raises(KeyboardInterrupt):
            erase_annotator(round.path, "cem", keep_payments=False)
    # Meanwhile the round is looked at; what is stored stays, to be paid.
    assert round_status(round.path).completed == 8
    erase_annotator(round.path, "cem", keep_payments=False)
    assert "cem" not in {one["username"] for one in server.users.values()}
    assert files_with(round.path, ids) == []
    assert RoundFolder(round.path).erased_annotators()[0].completed == 4


def test_a_server_that_does_not_answer(
    server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round = opened_on_argilla(tmp_path)
    answered_by_all(server, round)
    close_round(round.path)
    before = files_of(round.path)
    monkeypatch.setenv("ARGILLA_API_URL", "http://127.0.0.1:9")
    with pytest.raises(
        RoundError, match=r"does not answer.*The files of the round have not changed.*--skip-server"
    ):
        erase_annotator(round.path, "cem", keep_payments=False)
    assert files_of(round.path) == before
    removal = erase_annotator(round.path, "cem", keep_payments=False, skip_server=True)
    assert "the server was left out" in removal.left[0]
    assert RoundFolder(round.path).erased_annotators()[0].completed == 4


def test_an_admin_s_key_erases_answers_and_leaves_the_rest_unfinished(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    round = opened_on_argilla(tmp_path)
    answered_by_all(server, round)
    round_status(round.path)
    server.role = "admin"
    done = h2htalk_here("round", "erase-annotator", round.path, "cem", "--no-payments")
    assert done.returncode == 3
    assert "only an owner's key deletes it" in done.stdout
    assert "cem" in {one.name for one in round.annotators()}
    server.role = "owner"
    assert (
        h2htalk_here("round", "erase-annotator", round.path, "cem", "--no-payments").returncode == 0
    )
    assert "cem" not in {one["username"] for one in server.users.values()}


def test_their_answers_drafts_and_accounts_go_from_label_studio(
    label_studio: LabelStudioDouble, tmp_path: Path
) -> None:
    round = safety_round(tmp_path)
    people = {name: Person(label_studio, round, name) for name in ("ann", "ben")}
    for person in people.values():
        for text in ("apples", "bread"):
            person.answer(
                text,
                SAFE | {"comment": COMMENT if person is people["ben"] else "something else here"},
            )
    people["ben"].http.post(
        f"/api/tasks/{label_studio.task_of('bread')}/drafts", json={"result": []}
    )
    close_round(round.path)
    write_people(tmp_path / "more.csv", "ann,en,yes", "ben,en,yes", "cai,en,yes")
    before = (round.path / "decisions.jsonl").read_bytes()
    ids = id_of(round.path, "ben")
    removal = erase_annotator(round.path, "ben", keep_payments=False)
    assert "2 answers and 1 account deleted" in removal.removed[0]
    # The log of a real server names accounts.
    assert "delete exports and logs" in removal.removed[0]
    assert {one["completed_by"] for one in label_studio.annotations.values()} == {
        people["ann"].user
    }
    assert label_studio.drafts == {}
    assert people["ben"].user not in label_studio.users
    for text in (ids, COMMENT, "ben,"):
        assert files_with(round.path, text) == []
    close_round(round.path)
    assert (round.path / "decisions.jsonl").read_bytes() == before
    assert round_status(round.path).by_item == {"a": 2, "b": 2}
