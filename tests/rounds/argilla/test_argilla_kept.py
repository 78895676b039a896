"""What annotators say while a round is put out, or of what was put aside for them, is theirs to keep and to take
back.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argilla_double import ArgillaDouble
from argilla_made import DATASET, named, opened

from h2htalk.rounds.argilla.discards import AdvanceDiscards
from h2htalk.rounds.argilla.platform import DISCARDS, ArgillaPlatform
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import round_status

SAYS: dict[str, Any] = {"subtask": "none", "keep": "keep", "quality": 4}


@pytest.fixture
def round(server: ArgillaDouble, tmp_path: Path) -> RoundFolder:
    return opened(tmp_path)


def change(round: RoundFolder, name: str, **facts: object) -> list[str]:
    """Other wishes of an annotator, published."""
    changed = [
        replace(annotator, **facts) if annotator.name == name else annotator
        for annotator in round.annotators()
    ]
    round.write_annotators(changed)
    return ArgillaPlatform().publish(round)


def response(server: ArgillaDouble, round: RoundFolder, item: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = server.dataset(DATASET)["records"][named(round, item)]["responses"]
    said: dict[str, Any] = found[server.user_id(name)]
    return said


class MeanWhile:
    """Does something once, right before the first request of a kind."""

    def __init__(self, method: str, end: str, act: Any) -> None:
        self.method, self.end, self.act, self.done = method, end, act, False

    def __call__(self, number: int, method: str, path: str) -> None:
        if not self.done and method == self.method and self.end in path:
            self.done = True
            self.act()


def test_an_answer_to_what_was_put_aside_is_taken_back_by_discarding_it(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    """Every discard of somebody spared was taken for ours: an answer taken back stayed, and flipped a decision."""
    server.respond(DATASET, named(round, "b"), "ben", **SAYS)
    assert round_status(round.path).by_item["b"] == 1
    server.respond(DATASET, named(round, "b"), "ben", status="discarded")
    found = round_status(round.path)
    assert (found.by_item["b"], found.skipped) == (0, 1)


def test_of_an_item_that_moved_on_an_answer_is_taken_back_too(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    """An item of a later assignment set is discarded in the first for everybody, who may find and answer it there."""
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    round_status(round.path)
    (first,) = round.assignment_sets()
    round.write_assignment_sets([first, AssignmentSet(2, {"a": 1}, (), (("a",),))])
    ArgillaPlatform().publish(round)
    server.respond(DATASET, named(round, "a"), "cem", **SAYS)
    assert round_status(round.path).by_item["a"] == 2
    server.respond(DATASET, named(round, "a"), "cem", status="discarded")
    found = round_status(round.path)
    assert (found.by_item["a"], found.skipped) == (1, 1)


def test_opening_again_sees_an_answer_to_what_was_put_aside(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    server.respond(DATASET, named(round, "b"), "ben", **SAYS)
    ArgillaPlatform().publish(round)
    assert AdvanceDiscards(round.private / DISCARDS).all() == set()
    server.respond(DATASET, named(round, "b"), "ben", status="discarded")
    assert round_status(round.path).skipped == 1


@pytest.mark.parametrize("said", ["submitted", "draft"])
def test_what_is_said_while_an_item_is_put_aside_is_not_overwritten(
    server: ArgillaDouble, round: RoundFolder, said: str
) -> None:
    """Records were read, and later a bulk upsert wrote discards over what had been submitted in between."""
    server.before = MeanWhile(
        "POST", "/responses", lambda: server.respond(DATASET, named(round, "a"), "ann", said, **SAYS)
    )
    change(round, "ann", languages=["zh"])
    assert response(server, round, "a", "ann")["status"] == said
    assert response(server, round, "b", "ann")["status"] == "discarded"
    found = round_status(round.path)
    assert (found.completed, found.skipped) == (said == "submitted", 0)
    # What they do there is their own from now on.
    server.respond(DATASET, named(round, "a"), "ann", status="discarded")
    assert round_status(round.path).skipped == 1


def test_nobody_is_spared_by_an_upsert_on_a_record_that_is_there(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    server.requests.clear()
    change(round, "ann", active=False)
    written = [path for method, path in server.requests if method != "GET"]
    assert len(written) == 4
    assert all(path.endswith("/responses") for path in written)


def test_what_is_said_while_an_item_is_given_back_is_put_back(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    """The discard was deleted with what its annotator had just made of it."""
    server.before = MeanWhile(
        "DELETE", "/responses/", lambda: server.become(DATASET, named(round, "b"), "ben", "submitted", **SAYS)
    )
    told = change(round, "ben", crisis=True)
    assert f"{DATASET}: item b was answered while it was restored; the answer is kept" in told
    assert response(server, round, "b", "ben")["values"] == {
        name: {"value": one} for name, one in SAYS.items()
    }
    found = round_status(round.path)
    assert (found.completed, found.skipped) == (1, 0)


def test_two_assignment_sets_hold_an_item_once(server: ArgillaDouble, round: RoundFolder) -> None:
    """Twelve items of which ten went out twice were told as 22."""
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    round_status(round.path)
    (first,) = round.assignment_sets()
    round.write_assignment_sets([first, AssignmentSet(2, {"a": 1}, (), (("a",),))])
    told = ArgillaPlatform().publish(round)
    assert "4 items in 3 datasets" in told[-1]
    assert "1 new record" in told[-1]


def test_a_record_is_missed_only_where_its_item_is_to_be_answered(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    (first,) = round.assignment_sets()
    round.write_assignment_sets([first, AssignmentSet(2, {"a": 1}, (), (("a",),))])
    ArgillaPlatform().publish(round)
    del server.dataset(DATASET)["records"][named(round, "a")]
    assert round_status(round.path).notes == ()
    second = DATASET.replace("set1", "set2")
    del server.dataset(second)["records"][named(round, "a")]
    (told,) = round_status(round.path).notes
    assert f"{second}: 1 of 1 items that need annotators have no record" in told
