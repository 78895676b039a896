"""`round delete`: what a round made on its platform goes, also after a kill; what others made stays and is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_access import SAFE, answered_by_all, safety_round

from h2htalk.errors import RoundError
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_deletion import delete_round
from h2htalk.rounds.round_folder import RoundFolder
from support.command_line import h2htalk_here
from support.doubles.argilla_double import (
    DATASET,
    SAYS,
    ArgillaDouble,
    interrupt_after,
    named,
    opened,
    spec_in,
)
from support.doubles.label_studio_double import LabelStudioDouble, Person
from support.kills import killed_at
from support.rounds import answer, begin, expert


def closed(folder: Path, server: ArgillaDouble) -> RoundFolder:
    round = opened(folder)
    answered_by_all(server, round)
    close_round(round.path)
    return round


def test_an_open_round_is_refused_unless_told(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    with pytest.raises(
        RoundError, match="this round is open, and its annotators would lose what they work on"
    ):
        delete_round(round.path)
    assert server.datasets
    removal = delete_round(round.path, force=True)
    assert "4 new annotations collected before" in removal.removed
    assert server.datasets == {}
    assert {key[0] for key in round.annotations()} == {"a"}


def test_nothing_of_a_closed_round_is_left_on_argilla(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    """Datasets, workspaces and accounts stayed for good."""
    round = closed(tmp_path, server)
    decisions = (round.path / "decisions.jsonl").read_bytes()
    removal = delete_round(round.path)
    assert (server.datasets, server.workspaces) == ({}, {})
    assert [one["username"] for one in server.users.values()] == ["argilla"]
    assert "2 datasets, 3 accounts, 2 workspaces deleted" in removal.removed[0]
    assert (removal.left, removal.unfinished) == ((), False)
    # The records of accounts and of what the round created stayed, too.
    assert [one.name for one in round.private.glob("argilla_*") if one.suffix != ".lock"] == []
    # The folder goes on: status, closing again, the outcome.
    assert round_status(round.path).state == "closed"
    close_round(round.path)
    assert (round.path / "decisions.jsonl").read_bytes() == decisions
    assert len(read_outcome(round.path).annotations) == 32
    assert [event["event"] for event in round.events()].count("deleted") == 1
    again = delete_round(round.path)
    assert "0 datasets, 0 accounts, 0 workspaces deleted" in again.removed[0]
    assert [event["event"] for event in round.events()].count("deleted") == 1


@pytest.mark.parametrize("stop", range(1, 8))
def test_a_deletion_that_is_killed_between_requests_is_repeated(
    server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """After any of its seven requests: two datasets, three accounts, two workspaces."""
    round = closed(tmp_path, server)
    with monkeypatch.context() as patch:
        interrupt_after(patch, stop)
        with pytest.raises(KeyboardInterrupt):
            delete_round(round.path)
    assert delete_round(round.path).left == ()
    assert (server.datasets, server.workspaces, len(server.users)) == ({}, {}, 1)


def test_what_others_made_or_use_stays_and_is_named(server: ArgillaDouble, tmp_path: Path) -> None:
    """Argilla deletes all answers of an account with it, also those in a round that has ended its access."""
    server.add_user("ann")
    first = closed(tmp_path / "first", server)
    open_round(spec_in(tmp_path / "second"), tmp_path / "second" / "other")
    second = RoundFolder(tmp_path / "second" / "other")
    server.respond("other-set1-en-01", named(second, "a"), "cem", **SAYS)
    close_round(second.path, force=True)
    copied = server.dataset(DATASET)
    server.datasets["copy"] = {**copied, "id": "copy", "name": "a copy", "facts": {}}
    removal = delete_round(first.path)
    left = "\n".join(removal.left)
    assert (
        "dataset a copy in round-en: was not made by this round and holds copies of 3 items" in left
    )
    assert "workspace round-en: holds datasets of others" in left
    # Both have a discard in advance or an answer there.
    assert "account cem: also used in other-set1-en-01; delete it" in left
    assert "account ben: also used in other-set1-en-01; delete it" in left
    assert "account ann" not in left  # it existed before the round
    assert {one["username"] for one in server.users.values()} == {"argilla", "ann", "ben", "cem"}
    assert sorted(one["name"] for one in server.workspaces.values()) == [
        "other-en",
        "other-zh",
        "round-en",
    ]
    # The passwords of accounts that stay are kept.
    assert "ben," in (first.private / "argilla_logins.csv").read_text()
    # So is what the next deletion has to know: whose accounts these are.
    created = json.loads((first.private / "argilla_created.json").read_text())
    ids = {one.id: one.name for one in first.annotators()}
    assert [ids[one] for one in created["annotators"]] in (["ben", "cem"], ["cem", "ben"])
    assert created["workspaces"] == ["round-en"]
    assert json.loads((first.private / "argilla_accounts.json").read_text()).keys() == {
        *created["annotators"]
    }
    delete_round(second.path)
    assert not any("account" in line for line in delete_round(first.path).left)
    assert {one["username"] for one in server.users.values()} == {"argilla", "ann"}
    del server.datasets["copy"]
    delete_round(first.path)
    assert [*first.private.glob("argilla_*.json")] == []


def test_an_admin_s_key_deletes_datasets_and_names_the_rest(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    round = closed(tmp_path, server)
    server.role = "admin"
    removal = delete_round(round.path)
    assert removal.unfinished
    assert removal.left == (
        "accounts and workspaces (round-en, round-zh): only an owner's key deletes them",
    )
    server.role = "owner"
    assert delete_round(round.path).left == ()
    assert len(server.users) == 1


def test_nothing_of_a_round_is_left_on_label_studio(
    label_studio: LabelStudioDouble, tmp_path: Path
) -> None:
    round = safety_round(tmp_path)
    other = safety_round(tmp_path, "other")
    for text in ("apples", "bread"):
        for name in ("ann", "ben"):
            Person(label_studio, other, name).answer(text, SAFE)
    close_round(round.path, force=True)
    removal = delete_round(round.path)
    assert "1 project and 2 accounts deleted" in removal.removed[0]
    assert (removal.left, removal.unfinished) == ((), False)
    assert [one["title"] for one in label_studio.projects.values()] == ["other-set1-en-01"]
    assert len(label_studio.users) == 3
    assert [*round.private.glob("label_studio_*")] == []
    assert round_status(other.path).completed == 4
    assert round_status(round.path).state == "closed"


@pytest.mark.parametrize("stop", range(1, 4))
def test_a_deletion_on_label_studio_is_repeated(
    label_studio: LabelStudioDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """After any of its three requests: a project, two accounts that were removed from the organization before."""
    round = safety_round(tmp_path)
    close_round(round.path, force=True)
    with monkeypatch.context() as patch:
        interrupt_after(patch, stop)
        with pytest.raises(KeyboardInterrupt):
            delete_round(round.path)
    assert delete_round(round.path).left == ()
    assert (label_studio.projects, len(label_studio.users)) == ({}, 1)


def test_a_key_that_may_not_delete_accounts_leaves_it_unfinished(
    label_studio: LabelStudioDouble, tmp_path: Path
) -> None:
    round = safety_round(tmp_path)
    close_round(round.path, force=True)
    label_studio.owns = False
    removal = delete_round(round.path)
    assert removal.unfinished
    assert removal.left == (
        "0 projects and 2 accounts: only the key of the organization's owner deletes them",
    )


def test_spreadsheets_go_and_sent_copies_are_named(tmp_path: Path) -> None:
    path = begin(tmp_path, people=2)
    answer(path, lambda *_: expert())
    close_round(path)
    (path / "spreadsheets" / "notes.txt").write_text("mine")
    for step in range(1, 40):
        if not killed_at(step, lambda: delete_round(path)):
            break
    removal = delete_round(path)
    assert [one.name for one in (path / "spreadsheets").iterdir()] == ["notes.txt"]
    assert "notes.txt: not a spreadsheet of this round" in removal.left[0]
    assert (
        removal.left[1]
        == "spreadsheets were sent to annalena, bogumil: ask them to delete their copies"
    )
    assert round_status(path).state == "closed"


def test_the_command_asks_first(tmp_path: Path) -> None:
    path = begin(tmp_path, people=2)
    refused = h2htalk_here("round", "delete", path)
    assert refused.returncode == 2
    assert "deletes the spreadsheets in its folder, with all answers there" in refused.stderr
    assert "--yes" in refused.stderr
    assert "with --force" in h2htalk_here("round", "delete", path, "--yes").stderr
    done = h2htalk_here("round", "delete", path, "--yes", "--force")
    assert (done.returncode, list((path / "spreadsheets").glob("*"))) == (0, [])
    assert "left: spreadsheets were sent to" in done.stdout
