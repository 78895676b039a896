"""Conflicts on the server are refused with the difference, or noted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from argilla_double import ArgillaDouble
from argilla_made import DATASET, SAYS, named, opened, spec_in

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla import client
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.settings import ArgillaSettings

CHINESE = DATASET.replace("en", "zh")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one["questions"][1]["settings"]["options"].pop(), "questions: keep was changed"),
        (lambda one: one["questions"][1].update(title="Drop?", description=""), "questions: keep was changed"),
        (lambda one: one["questions"].pop(1), "questions: keep is missing"),
        (lambda one: one["fields"][0]["settings"].update(template="x"), "fields: item was changed"),
        (lambda one: one.update(allow_extra_metadata=True), "metadata of any name was changed"),
        (lambda one: one.update(guidelines="Be quick."), "guidelines was changed"),
        (lambda one: one["distribution"].update(min_submitted=5), "annotators per item was changed"),
        (lambda one: one.update(facts={"h2htalk": {"round": "0"}}), "belongs to another round"),
        (lambda one: one.update(facts=None), "belongs to somebody else"),
        (lambda one: next(iter(one["records"].values()))["fields"].update(item={"data": "{}"}), "another text"),
    ],
)  # fmt: skip
def test_a_dataset_with_other_settings_is_refused(
    server: ArgillaDouble, tmp_path: Path, change: Any, message: str
) -> None:
    round = opened(tmp_path)
    change(server.dataset(DATASET))
    with pytest.raises(RoundError) as refused:
        open_round(spec_in(tmp_path), round.path)
    assert message in str(refused.value)
    assert DATASET in str(refused.value)


def test_another_round_of_that_name_is_refused_without_changes(server: ArgillaDouble, tmp_path: Path) -> None:
    """Its annotators were added to the first round's workspaces before the conflict was noticed."""
    opened(tmp_path / "one")
    spec = spec_in(tmp_path / "two")
    Path(spec.annotators).write_text("name,languages,crisis\neve,en zh,yes\nfay,en zh,yes\n")
    server.requests.clear()
    with pytest.raises(RoundError, match="belongs to another round"):
        open_round(spec, tmp_path / "two" / "round")
    assert {method for method, _ in server.requests} == {"GET"}
    assert not {"eve", "fay"} & {user["username"] for user in server.users.values()}
    opened(tmp_path / "two" / "more", argilla=ArgillaSettings(workspace="two"))


def test_changed_texts_are_noted(server: ArgillaDouble, tmp_path: Path) -> None:
    """The texts of two choices were swapped, and `status` did not note it."""
    round = opened(tmp_path)
    assert round_status(round.path).notes == ()
    keep, drop = server.dataset(DATASET)["questions"][1]["settings"]["options"]
    keep["text"], drop["text"] = drop["text"], keep["text"]
    server.dataset(CHINESE)["metadata"].append({"name": "mm", "title": "mm", "settings": {"type": "terms"}})
    one, other = round_status(round.path).notes
    assert f"{DATASET}: changed on the server: questions: keep was changed" in one
    assert f"{CHINESE}: changed on the server: metadata: mm was added" in other


def test_an_admin_s_key_must_see_all_workspaces(server: ArgillaDouble, tmp_path: Path) -> None:
    """`close` decided without the annotations of the other workspace."""
    round = opened(tmp_path)
    server.role, server.unseen = "admin", {"round-zh"}
    for look in (round_status, lambda path: close_round(path, force=True)):
        with pytest.raises(RoundError, match="your key does not see the workspaces round-zh of this round"):
            look(round.path)
    assert round.state == "open"
    server.unseen = set()
    assert round_status(round.path).notes == ()


def test_deleted_accounts_are_noted(server: ArgillaDouble, tmp_path: Path) -> None:
    """Argilla deletes a user's responses with the account."""
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "cem", **SAYS)
    round_status(round.path)
    del server.users[server.user_id("cem")]
    status = round_status(round.path)
    assert status.completed == 1
    (message,) = status.notes
    assert "cem: the account was deleted" in message
    open_round(round.spec(), round.path)
    assert round_status(round.path).notes == ()
    # They do not get the items that they annotated again.
    said = server.dataset(DATASET)["records"][named(round, "a")]["responses"]
    assert said[server.user_id("cem")]["status"] == "discarded"


def test_renamed_datasets_still_count_and_copies_do_not(server: ArgillaDouble, tmp_path: Path) -> None:
    """A dataset was status by its name: its answers were lost, and its items published again."""
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    renamed = server.dataset(DATASET)
    renamed["name"] = "nice name"
    server.datasets["copy"] = {**renamed, "id": "copy", "name": "a copy", "records": {}, "inserted_at": "2031"}
    status = round_status(round.path)
    assert (status.completed, status.notes) == (1, ())
    open_round(round.spec(), round.path)
    assert {one["name"] for one in server.datasets.values()} == {"nice name", "a copy", CHINESE}
    # Discards in advance are stored under the dataset's first name.
    assert round_status(round.path).skipped == 0


class Clock:
    """Counts the seconds that a command waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waited = 0.0
        monkeypatch.setattr(client, "time", self)

    def monotonic(self) -> float:
        return self.waited

    def sleep(self, seconds: float) -> None:
        self.waited += seconds


# Requests 1 and 2 ask for the version and the key's owner.
@pytest.mark.parametrize("at", [2, 4, 12])
def test_a_server_that_has_answered_may_restart(
    server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """From the second answer on, a command waits for a restart: 20 seconds here."""
    round, clock = opened(tmp_path), Clock(monkeypatch)
    asked = len(server.requests)

    def restarting(number: int, method: str, path: str) -> None:
        if number >= asked + at and clock.waited < 20:
            raise ConnectionError

    server.before = restarting
    assert round_status(round.path).state == "open"
    assert 20 <= clock.waited <= 30
