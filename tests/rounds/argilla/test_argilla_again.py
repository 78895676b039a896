"""What a round on a server is like the second time: who returned, what changed, what was deleted, who is nobody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from argilla_double import ArgillaDouble
from argilla_made import DATASET, named, opened, spec_in

from h2htalk.rounds.argilla.discards import AdvanceDiscards
from h2htalk.rounds.argilla.platform import DISCARDS, ArgillaPlatform
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import round_status

SAYS = {"subtask": "none", "keep": "keep", "quality": 4}


def spared(server: ArgillaDouble, round: RoundFolder, item: str, dataset: str = DATASET) -> set[str]:
    """Names of those for whom an item is discarded."""
    said = server.dataset(dataset)["records"][named(round, item)]["responses"]
    return {server.users[user]["username"] for user, one in said.items() if one["status"] == "discarded"}


def change(round: RoundFolder, name: str, **facts: object) -> None:
    """Other wishes of an annotator, published."""
    changed = [
        replace(annotator, **facts) if annotator.name == name else annotator
        for annotator in round.annotators()
    ]
    round.write_annotators(changed)
    ArgillaPlatform().publish(round)


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_who_sees_what_others_said_is_no_annotator_whatever_the_list_says(
    server: ArgillaDouble, tmp_path: Path, role: str
) -> None:
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.users[server.user_id("ann")]["role"] = role
    found = round_status(round.path)
    assert (found.completed, found.mistakes) == (0, ())
    assert any("not counted: 1 response by 'ann'" in line for line in found.notes)


def test_another_account_under_a_annotators_name_is_not_the_annotator(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    round = opened(tmp_path)
    server.users[server.user_id("ann")]["username"] = "anna"
    server.add_user("ann")
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    found = round_status(round.path)
    assert found.completed == 0
    assert any("by 'ann'" in line for line in found.notes)


def test_who_left_and_returns_has_their_items_again(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "b"), "cem", status="discarded", comment="no")
    change(round, "ann", active=False)
    change(round, "cem", active=False)
    assert "ann" in spared(server, round, "a")
    change(round, "ann", active=True)
    change(round, "cem", active=True)
    assert spared(server, round, "a") == set()
    # A skip of their own stays.
    assert spared(server, round, "b") == {"ben", "cem"}
    assert {item for _, item, _ in AdvanceDiscards(round.private / DISCARDS).all()} == {"b"}


def test_who_wants_crises_after_all_gets_them(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    assert spared(server, round, "b") == {"ben"}
    change(round, "ben", crisis=True)
    assert spared(server, round, "b") == set()
    # A skip from now on is their own.
    server.respond(DATASET, named(round, "b"), "ben", status="discarded")
    assert round_status(round.path).skipped == 1


def test_a_dataset_made_again_goes_to_those_who_have_not_answered(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    round = opened(tmp_path)
    for name in ("ann", "cem"):
        server.respond(DATASET, named(round, "a"), name, **SAYS)
    server.respond(DATASET, named(round, "b"), "cem", **SAYS)
    assert round_status(round.path).completed == 3
    del server.datasets[server.dataset(DATASET)["id"]]
    assert ArgillaPlatform().collect(round).offered == {"a": 0, "b": 1, "c </script>": 2, "d": 2}
    open_round(spec_in(tmp_path), round.path)
    records = server.dataset(DATASET)["records"]
    assert records.keys() == {named(round, "b"), named(round, "c </script>")}
    assert spared(server, round, "b") == {"ben", "cem"}
    found = round_status(round.path)
    assert (found.completed, found.skipped) == (3, 0)


def test_an_item_of_a_later_assignment_set_is_met_there_alone(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    round_status(round.path)
    (first,) = round.assignment_sets()
    round.write_assignment_sets([first, AssignmentSet(2, {"a": 1}, (), (("a",),))])
    ArgillaPlatform().publish(round)
    assert spared(server, round, "a") == {"ben", "cem"}
    assert spared(server, round, "a", "round-set2-en-01") == {"ann"}
    assert round_status(round.path).skipped == 0
    server.respond("round-set2-en-01", named(round, "a"), "ben", **SAYS)
    found = round_status(round.path)
    assert (found.by_item["a"], found.skipped) == (2, 0)


def test_a_server_that_counts_a_strangers_vote_offers_an_item_no_more(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    round = opened(tmp_path)
    server.add_user("stranger")
    server.respond(DATASET, named(round, "a"), "stranger", **SAYS)
    server.respond(DATASET, named(round, "b"), "ann", **SAYS)
    assert ArgillaPlatform().collect(round).offered == {"a": 1, "b": 1, "c </script>": 2, "d": 2}
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    offered = ArgillaPlatform().collect(round).offered
    assert offered is not None
    assert offered["a"] == 0


def test_what_was_changed_on_the_server_is_told(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.dataset(DATASET)["distribution"]["min_submitted"] = 1
    server.dataset("round-set1-zh-01")["guidelines"] = "Be quick."
    one, other = round_status(round.path).notes
    assert f"{DATASET}: changed on the server: 1 annotators per item, not 2; restore" in one
    assert "round-set1-zh-01: changed on the server: other guidelines; restore" in other
