"""Changes of a published round: responses during publishing, returning annotators, changed and deleted data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from argilla_double import ArgillaDouble
from argilla_made import DATASET, SAYS, add_second_set, change, discarded_for, named, opened

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.platform import DISCARDS, ArgillaPlatform
from h2htalk.rounds.argilla.record_publishing import AdvanceDiscards
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.round_folder import RoundFolder, read_state

CHOSEN = (("c </script>", "ann"), ("c </script>", "cem"))


@pytest.fixture
def round(server: ArgillaDouble, tmp_path: Path) -> RoundFolder:
    return opened(tmp_path)


def response(server: ArgillaDouble, round: RoundFolder, item: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = server.dataset(DATASET)["records"][named(round, item)]["responses"]
    said: dict[str, Any] = found[server.user_id(name)]
    return said


class MeanWhile:
    """Do something once, before the first request of a kind."""

    def __init__(self, method: str, end: str, act: Any) -> None:
        self.method, self.end, self.act, self.done = method, end, act, False

    def __call__(self, number: int, method: str, path: str) -> None:
        if not self.done and method == self.method and self.end in path:
            self.done = True
            self.act()


@pytest.mark.parametrize("said", ["submitted", "draft"])
def test_a_response_during_publishing_is_not_overwritten(server: ArgillaDouble, round: RoundFolder, said: str) -> None:
    """A bulk update wrote discards over responses that were submitted after the records were read."""
    server.before = MeanWhile(
        "POST", "/responses", lambda: server.respond(DATASET, named(round, "a"), "ann", said, **SAYS)
    )
    change(round, "ann", languages=["zh"])
    assert response(server, round, "a", "ann")["status"] == said
    assert response(server, round, "b", "ann")["status"] == "discarded"
    status = round_status(round.path)
    assert (status.completed, status.skipped) == (said == "submitted", 0)
    # A later discard is their own.
    server.respond(DATASET, named(round, "a"), "ann", status="discarded")
    assert round_status(round.path).skipped == 1


def test_a_response_during_restoring_is_sent_again(server: ArgillaDouble, round: RoundFolder) -> None:
    """Deleting the discard deleted what the annotator had just made of it."""
    server.before = MeanWhile(
        "DELETE", "/responses/", lambda: server.become(DATASET, named(round, "b"), "ben", "submitted", **SAYS)
    )
    messages = change(round, "ben", crisis=True)
    assert f"{DATASET}: item b was answered while it was restored; the answer is kept" in messages
    assert response(server, round, "b", "ben")["values"] == {name: {"value": one} for name, one in SAYS.items()}
    status = round_status(round.path)
    assert (status.completed, status.skipped) == (1, 0)


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_responses_of_owners_and_admins_do_not_count(server: ArgillaDouble, round: RoundFolder, role: str) -> None:
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.users[server.user_id("ann")]["role"] = role
    status = round_status(round.path)
    assert (status.completed, status.mistakes) == (0, ())
    assert any("not counted: 1 response by 'ann'" in line for line in status.notes)


def test_returning_annotators_get_their_items_again(server: ArgillaDouble, round: RoundFolder) -> None:
    server.respond(DATASET, named(round, "b"), "cem", status="discarded", comment="no")
    change(round, "ann", active=False)
    change(round, "cem", active=False)
    assert "ann" in discarded_for(server, round, "a")
    change(round, "ann", active=True)
    change(round, "cem", active=True)
    assert discarded_for(server, round, "a") == set()
    # Their own skip stays.
    assert discarded_for(server, round, "b") == {"ben", "cem"}
    assert {item for _, item, _ in AdvanceDiscards(round.private / DISCARDS).all()} == {"b"}


def test_a_dataset_that_is_created_again_is_for_the_other_annotators(server: ArgillaDouble, round: RoundFolder) -> None:
    for name in ("ann", "cem"):
        server.respond(DATASET, named(round, "a"), name, **SAYS)
    server.respond(DATASET, named(round, "b"), "cem", **SAYS)
    assert round_status(round.path).completed == 3
    del server.datasets[server.dataset(DATASET)["id"]]
    assert ArgillaPlatform().collect(read_state(round)).offered == {"a": 0, "b": 1, "c </script>": 2, "d": 2}
    open_round(round.spec(), round.path)
    records = server.dataset(DATASET)["records"]
    assert records.keys() == {named(round, "b"), named(round, "c </script>")}
    assert discarded_for(server, round, "b") == {"ben", "cem"}
    status = round_status(round.path)
    assert (status.completed, status.skipped) == (3, 0)


def test_an_item_of_a_later_assignment_set_is_offered_there_only(server: ArgillaDouble, round: RoundFolder) -> None:
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    round_status(round.path)
    add_second_set(round)
    # Twelve items, ten of them in two sets, were reported as 22.
    message = ArgillaPlatform().publish(read_state(round))[-1]
    assert ("4 items in 3 datasets" in message, "1 new record" in message) == (True, True)
    assert discarded_for(server, round, "a") == {"ben", "cem"}
    assert discarded_for(server, round, "a", "round-set2-en-01") == {"ann"}
    assert round_status(round.path).skipped == 0
    server.respond("round-set2-en-01", named(round, "a"), "ben", **SAYS)
    # In the first set it is discarded for everybody, who may still answer it there, and then discard their answer.
    for said, counted in ({**SAYS}, (3, 0)), ({"status": "discarded"}, (2, 1)):
        server.respond(DATASET, named(round, "a"), "cem", **said)
        status = round_status(round.path)
        assert (status.by_item["a"], status.skipped) == counted


def test_an_edited_text_is_a_mistake(server: ArgillaDouble, round: RoundFolder) -> None:
    """Only `open` noticed it: annotations of another text were decided without a word."""
    for item, name in (("a", "ann"), ("a", "cem"), ("b", "ann"), ("b", "cem"), *CHOSEN):
        server.respond(DATASET, named(round, item), name, **SAYS)
    for name in ("ann", "cem"):
        server.respond("round-set1-zh-01", named(round, "d"), name, **SAYS)
    assert round_status(round.path).mistakes == ()
    records = server.dataset(DATASET)["records"]
    before = {item: dict(records[named(round, item)]["fields"]) for item in "ab"}
    for item in "ab":
        records[named(round, item)]["fields"]["item"] = {"data": '{"turns":[]}'}
    status = round_status(round.path)
    (mistake,) = status.mistakes
    assert mistake.startswith(f"{DATASET}: the text of 2 items was edited on the server (a, b)")
    assert status.completed == 8
    with pytest.raises(RoundError, match="1 mistake, the first: round-set1-en-01: the text of 2 items was edited"):
        close_round(round.path)
    assert round.state == "open"
    for item, fields in before.items():
        records[named(round, item)]["fields"] = fields
    assert round_status(round.path).mistakes == ()
    records[named(round, "a")]["fields"] = {}
    closed, _ = close_round(round.path, force=True)
    assert any("the text of 1 item was edited on the server (a)" in note for note in closed.notes)
    assert round.events()[-1]["mistakes"] == 1


def test_an_unpublished_assignment_set_is_published_by_the_same_command(
    server: ArgillaDouble, round: RoundFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Annotations of the first set were counted for the second: a third was written, the second never published."""
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.respond(DATASET, named(round, "a"), "cem", **{**SAYS, "keep": "drop"})
    with monkeypatch.context() as patch:
        patch.setattr(ArgillaPlatform, "publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reopen_round(round.path)
    assert any("set2-en-01: the dataset is missing" in note for note in round_status(round.path).notes)
    reopen_round(round.path)
    assert len(round.assignment_sets()) == 2
    assert DATASET.replace("set1", "set2") in {one["name"] for one in server.datasets.values()}
    assert not round_status(round.path).notes


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt
