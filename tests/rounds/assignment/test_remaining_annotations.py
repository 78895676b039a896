"""What lies before people, and who is left, by hand-made seats."""

from __future__ import annotations

import pytest
from spreadsheet_rounds import item

from h2htalk.rounds.annotations import Answer
from h2htalk.rounds.annotators import Voter
from h2htalk.rounds.assignment.assignments import Seat, Wave
from h2htalk.rounds.assignment.remaining_annotations import Reach, reach, to_ask
from h2htalk.rounds.items import Item

ITEM = Item.from_dict(item(0), "made")
ANNA, BO, CEM, DEE = (
    Voter(name, name, ("en",), True, name != "cem") for name in ("anna", "bo", "cem", "dee")
)
SEATS = tuple(Seat(name, ITEM.id, 1, 1) for name in ("anna", "bo", "cem"))


def met(*names: str, question: str = "keep") -> dict[tuple[str, str, str], Answer]:
    return {
        (ITEM.id, name, question): Answer("r", ITEM.id, name, question, "keep", "2026-01-01T00:00:00Z")
        for name in names
    }


@pytest.mark.parametrize(
    ("seats", "answered", "skipped", "expected"),
    [
        # Of a voter who left nothing is waited for.
        (SEATS, (), (), Reach(2, 1)),
        (SEATS, ("anna",), (), Reach(1, 1)),
        (SEATS, (), ("anna",), Reach(1, 1)),
        (SEATS, ("anna", "bo", "dee"), (), Reach(0, 0)),
        # A server waits for as many as it was told, of whom it may be.
        ((), (), (), Reach(2, 1)),
        ((), ("anna",), (), Reach(1, 1)),
        ((), ("anna", "bo"), (), Reach(0, 1)),
        ((), (), ("anna", "bo"), Reach(1, 0)),
    ],
)
def test_what_is_out_and_who_is_left(
    seats: tuple[Seat, ...], answered: tuple[str, ...], skipped: tuple[str, ...], expected: Reach
) -> None:
    waves = [Wave(1, {ITEM.id: 3 if seats else 2}, seats)]
    answers = met(*answered) | met(*skipped, question="skipped")
    done = {ITEM.id: set(answered)}
    assert reach([ITEM], waves, [ANNA, BO, CEM, DEE], answers, done) == {ITEM.id: expected}


def test_only_what_is_not_out_is_asked_and_only_of_those_who_are_left() -> None:
    reached = {"a": Reach(2, 1), "b": Reach(1, 5), "c": Reach(0, 0), "d": Reach(0, 2), "e": Reach(3, 0)}
    assert to_ask({"a": 2, "b": 3, "c": 1, "d": 4, "e": 1}, reached) == ({"b": 2, "d": 2}, 1)


def test_a_server_asks_and_waits_for_no_more_than_it_offers_and_people_can_give() -> None:
    # An answer that the round does not count, an owner's, may have filled the server's number.
    waves, panel, nobody = [Wave(1, {ITEM.id: 2})], [ANNA, BO, DEE], {ITEM.id: ()}
    assert reach([ITEM], waves, panel, {}, nobody, {ITEM.id: 0}) == {ITEM.id: Reach(0, 3)}
    # It asks for three of an item that one voter alone has not met.
    found = reach([ITEM], [Wave(1, {ITEM.id: 3})], [ANNA, BO], met("anna"), {ITEM.id: {"anna"}}, {ITEM.id: 3})
    assert found == {ITEM.id: Reach(1, 0)}


@pytest.mark.parametrize(
    ("wanted", "there", "whole", "asked"),
    [
        (2, Reach(0, 3), True, {"a": 2}),
        # A server's new wave takes the place of what is out.
        (3, Reach(1, 2), True, {"a": 3}),
        (3, Reach(1, 2), False, {"a": 2}),
        (1, Reach(1, 2), True, {}),
        (5, Reach(1, 2), True, {"a": 3}),
        (5, Reach(1, 0), True, {}),
    ],
)
def test_a_new_wave_asks_for_what_is_not_out(
    wanted: int, there: Reach, whole: bool, asked: dict[str, int]
) -> None:
    assert to_ask({"a": wanted}, {"a": there}, whole=whole)[0] == asked
