"""Annotators that items still need, and those that are pending or available, for given votes and assignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from spreadsheet_rounds import item
from votes_made import counted

from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import Assignment, AssignmentSet
from h2htalk.rounds.assignment.remaining_annotations import (
    PendingAnnotations,
    initial_requests,
    is_pilot,
    needs_more,
    pending_annotations,
    remaining_requests,
)
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS
from h2htalk.rounds.settings import Adaptive, RoundSpec

WHEN = "2026-01-01T00:00:00Z"
CROWD = RoundSpec("crowd", "items.jsonl", overlap=2)
PANEL = [Annotator(f"v{n}", f"v{n}", ("en",)) for n in range(6)]
SPLIT = [("none", "keep"), ("none", "drop")]


@pytest.mark.parametrize(
    ("counts", "more"),
    [
        ((0,), 4),  # three answers cannot lead by four
        ((4,), 0),
        ((2, 2), 4),
        ((9, 8), 3),  # 20 - 17
        ((10, 10), 0),  # its maximum
    ],
)
def test_requests_the_smallest_number_that_can_be_enough(counts: tuple[int, ...], more: int) -> None:
    assert needs_more(counted(counts), ["item-00"], Adaptive(), 20) == {"item-00": more}


def test_the_minimum_counts_where_a_lead_is_short() -> None:
    more = [needs_more(counted((n,)), ["item-00"], Adaptive(lead=1), 20)["item-00"] for n in range(5)]
    assert more == [3, 2, 1, 0, 0]


def needed(
    spec: RoundSpec, votes: Mapping[str, Sequence[tuple[str, str]]], gold: Sequence[str] = (), *, ties: bool = False
) -> dict[str, int]:
    """Requests after votes on subtask and keep: item -> (subtask, keep) of each annotator."""
    items = [
        replace(Item.from_dict(item(n)), id=name, gold={"keep": "keep"} if name in gold else {})
        for n, name in enumerate(votes)
    ]
    annotations = {
        (name, f"v{n}", question): Annotation("r", name, f"v{n}", question, value, WHEN)
        for name, pairs in votes.items()
        for n, (subtask, keep) in enumerate(pairs)
        for question, value in (("subtask", subtask), ("keep", keep), ("quality", 4))
    }
    return remaining_requests(spec, items, QUESTIONS["crowd"], annotations, PANEL, ties=ties)


def test_ties_need_one_more_annotator_or_the_overlap() -> None:
    """Gold items are not decided."""
    votes = {"plain": SPLIT, "gold": SPLIT}
    assert needed(CROWD, votes, gold=["gold"], ties=True) == {"plain": 1}
    assert needed(CROWD, votes, gold=["gold"]) == {}
    assert needed(replace(CROWD, overlap=5), {"a": SPLIT}, ties=True) == {"a": 3}


def test_adaptive_rounds_request_until_every_question_is_clear() -> None:
    """Only the last question determined the number."""
    adaptive = replace(CROWD, overlap=6, adaptive=Adaptive(on=True, minimum=2, lead=2))
    first, clear = [("none", "keep"), ("dialogue_base", "keep")], [("none", "keep")] * 2
    unclear = {"first": first, "last": SPLIT, "neither": clear, "new": []}
    assert needed(adaptive, unclear) == {"first": 2, "last": 2, "new": 2}


def test_adaptive_rounds_start_with_enough_annotators_for_a_lead() -> None:
    """Three annotators were requested, but three votes cannot lead by four."""
    some = [Item.from_dict(item(n)) for n in range(2)]
    for changes, first in (
        ({}, 4), ({"lead": 3}, 3), ({"minimum": 5}, 5), ({"lead": 30}, 6),
    ):  # fmt: skip
        spec = replace(CROWD, overlap=6, adaptive=Adaptive(on=True, **changes))
        assert initial_requests(spec, some, PANEL) == {"en-item-0": first, "en-item-1": first}, changes


def test_adaptive_rounds_of_gold_items_are_no_pilots() -> None:
    golden = [Item.from_dict(item(0, gold={"keep": "keep"}))]
    adaptive = replace(CROWD, overlap=0, adaptive=Adaptive(on=True))
    assert is_pilot(replace(CROWD, overlap=0), golden)
    assert not is_pilot(adaptive, golden)
    assert not is_pilot(CROWD, golden)
    assert needed(adaptive, {"a": []}, gold=["a"]) == {"a": 4}
    assert needed(replace(CROWD, overlap=0), {"a": []}, gold=["a"]) == {"a": 6}


ITEM = Item.from_dict(item(0), "made")
ANNA, BO, CEM, DEE = (Annotator(name, name, ("en",), True, name != "cem") for name in ("anna", "bo", "cem", "dee"))
ASSIGNMENTS = tuple(Assignment(name, ITEM.id, 1, 1) for name in ("anna", "bo", "cem"))


def annotated(*names: str, question: str = "keep") -> dict[tuple[str, str, str], Annotation]:
    return {(ITEM.id, name, question): Annotation("r", ITEM.id, name, question, "keep", WHEN) for name in names}


@pytest.mark.parametrize(
    ("assignments", "answered", "skipped", "expected"),
    [
        # Inactive annotators are not pending.
        (ASSIGNMENTS, (), (), (2, 1)),
        (ASSIGNMENTS, (), ("anna",), (1, 1)),
        (ASSIGNMENTS, ("anna", "bo", "dee"), (), (0, 0)),
        # A server offers an item to as many annotators as were requested, whoever they are.
        ((), (), (), (2, 1)),
        ((), ("anna", "bo"), (), (0, 1)),
        ((), (), ("anna", "bo"), (1, 0)),
    ],
)
def test_pending_and_available_annotators(
    assignments: tuple[Assignment, ...], answered: tuple[str, ...], skipped: tuple[str, ...], expected: tuple[int, int]
) -> None:
    sets = [AssignmentSet(1, {ITEM.id: 3 if assignments else 2}, assignments)]
    annotations = annotated(*answered) | annotated(*skipped, question="skipped")
    result = pending_annotations([ITEM], sets, [ANNA, BO, CEM, DEE], annotations, {ITEM.id: set(answered)})
    assert result == {ITEM.id: PendingAnnotations(*expected)}


def test_pending_annotators_of_a_server() -> None:
    # A response that the round does not count, an owner's, may have completed the record on the server.
    sets, nobody = [AssignmentSet(1, {ITEM.id: 2})], {ITEM.id: ()}
    result = pending_annotations([ITEM], sets, [ANNA, BO, DEE], {}, nobody, {ITEM.id: 0})
    assert result == {ITEM.id: PendingAnnotations(0, 3)}
    # It offers an item to three annotators, but only one has not annotated it.
    sets, anna = [AssignmentSet(1, {ITEM.id: 3})], {ITEM.id: {"anna"}}
    result = pending_annotations([ITEM], sets, [ANNA, BO], annotated("anna"), anna, {ITEM.id: 3})
    assert result == {ITEM.id: PendingAnnotations(1, 0)}
