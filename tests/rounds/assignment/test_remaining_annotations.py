"""What lies before people, and who is left, by hand-made assignments."""

from __future__ import annotations

import pytest
from spreadsheet_rounds import item

from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import Assignment, AssignmentSet
from h2htalk.rounds.assignment.remaining_annotations import (
    PendingAnnotations,
    annotations_to_request,
    pending_annotations,
)
from h2htalk.rounds.items import Item

ITEM = Item.from_dict(item(0), "made")
ANNA, BO, CEM, DEE = (
    Annotator(name, name, ("en",), True, name != "cem") for name in ("anna", "bo", "cem", "dee")
)
ASSIGNMENTS = tuple(Assignment(name, ITEM.id, 1, 1) for name in ("anna", "bo", "cem"))


def met(*names: str, question: str = "keep") -> dict[tuple[str, str, str], Annotation]:
    return {
        (ITEM.id, name, question): Annotation("r", ITEM.id, name, question, "keep", "2026-01-01T00:00:00Z")
        for name in names
    }


@pytest.mark.parametrize(
    ("assignments", "answered", "skipped", "expected"),
    [
        # Of an annotator who left nothing is waited for.
        (ASSIGNMENTS, (), (), PendingAnnotations(2, 1)),
        (ASSIGNMENTS, ("anna",), (), PendingAnnotations(1, 1)),
        (ASSIGNMENTS, (), ("anna",), PendingAnnotations(1, 1)),
        (ASSIGNMENTS, ("anna", "bo", "dee"), (), PendingAnnotations(0, 0)),
        # A server waits for as many as it was told, of whom it may be.
        ((), (), (), PendingAnnotations(2, 1)),
        ((), ("anna",), (), PendingAnnotations(1, 1)),
        ((), ("anna", "bo"), (), PendingAnnotations(0, 1)),
        ((), (), ("anna", "bo"), PendingAnnotations(1, 0)),
    ],
)
def test_what_is_out_and_who_is_left(
    assignments: tuple[Assignment, ...],
    answered: tuple[str, ...],
    skipped: tuple[str, ...],
    expected: PendingAnnotations,
) -> None:
    assignment_sets = [AssignmentSet(1, {ITEM.id: 3 if assignments else 2}, assignments)]
    answers = met(*answered) | met(*skipped, question="skipped")
    done = {ITEM.id: set(answered)}
    assert pending_annotations([ITEM], assignment_sets, [ANNA, BO, CEM, DEE], answers, done) == {
        ITEM.id: expected
    }


def test_only_what_is_not_out_is_asked_and_only_of_those_who_are_left() -> None:
    reached = {
        "a": PendingAnnotations(2, 1),
        "b": PendingAnnotations(1, 5),
        "c": PendingAnnotations(0, 0),
        "d": PendingAnnotations(0, 2),
        "e": PendingAnnotations(3, 0),
    }
    assert annotations_to_request({"a": 2, "b": 3, "c": 1, "d": 4, "e": 1}, reached) == ({"b": 2, "d": 2}, 1)


def test_a_server_asks_and_waits_for_no_more_than_it_offers_and_people_can_give() -> None:
    # An answer that the round does not count, an owner's, may have filled the server's number.
    assignment_sets, panel, nobody = [AssignmentSet(1, {ITEM.id: 2})], [ANNA, BO, DEE], {ITEM.id: ()}
    assert pending_annotations([ITEM], assignment_sets, panel, {}, nobody, {ITEM.id: 0}) == {
        ITEM.id: PendingAnnotations(0, 3)
    }
    # It asks for three of an item that one annotator alone has not met.
    found = pending_annotations(
        [ITEM], [AssignmentSet(1, {ITEM.id: 3})], [ANNA, BO], met("anna"), {ITEM.id: {"anna"}}, {ITEM.id: 3}
    )
    assert found == {ITEM.id: PendingAnnotations(1, 0)}


@pytest.mark.parametrize(
    ("wanted", "there", "replace", "asked"),
    [
        (2, PendingAnnotations(0, 3), True, {"a": 2}),
        # A server's new assignment set takes the place of what is out.
        (3, PendingAnnotations(1, 2), True, {"a": 3}),
        (3, PendingAnnotations(1, 2), False, {"a": 2}),
        (1, PendingAnnotations(1, 2), True, {}),
        (5, PendingAnnotations(1, 2), True, {"a": 3}),
        (5, PendingAnnotations(1, 0), True, {}),
    ],
)
def test_a_new_assignment_set_asks_for_what_is_not_out(
    wanted: int, there: PendingAnnotations, replace: bool, asked: dict[str, int]
) -> None:
    assert annotations_to_request({"a": wanted}, {"a": there}, replace=replace)[0] == asked
