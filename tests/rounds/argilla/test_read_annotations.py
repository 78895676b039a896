"""Responses become annotations: last answers, withdrawn answers, and what cannot be counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.scenario import Turn
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.read_annotations import ServerResponse, read_responses, responses_of
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Collected
from h2htalk.rounds.questions import QUESTIONS, SKIPPED, Question, questions_for
from h2htalk.rounds.round_folder import RoundFolder, RoundState
from h2htalk.rounds.settings import RoundSpec

ITEM = Item("a", "en", (Turn("user", "hi"),), response="hello")
ANN = Annotator("111", "ann", ("en",))
SAFE: dict[str, Any] = {"perception": 4, "violation": "no"}


def said(status: str = "submitted", *, when: str = "2030-01-01", dataset: str = "w1", **values: Any) -> ServerResponse:
    return ServerResponse(dataset, "a", "u1", status, values, when)


def read(
    *responses: ServerResponse, questions: tuple[Question, ...] = QUESTIONS["safety"], item: Item = ITEM
) -> Collected:
    spec = RoundSpec("safety", "items.jsonl")
    state = RoundState(RoundFolder(Path()), {"name": "round"}, spec, (item,), questions, (ANN,), (), (), {}, {}, {})
    found, _ = read_responses(state, responses, annotators={"u1": ANN}, names={"u1": "ann"}, discarded=())
    return found


def values(found: Collected) -> dict[str, Any]:
    return {one.question: one.value for one in found.annotations if one.value is not None}


def test_complete_response() -> None:
    found = read(said(perception=2, violation="yes", violations=["privacy", "boundary"], comment=" hm "))
    assert values(found) == {
        "perception": 2,
        "violation": "yes",
        "violations": ("boundary", "privacy"),
        "comment": "hm",
    }
    assert (found.mistakes, found.notes) == ((), ())
    assert {one.annotator for one in found.annotations} == {"111"}


def test_answers_to_questions_that_are_not_asked_are_ignored() -> None:
    found = read(said(**SAFE, violations=["privacy"]))
    assert values(found) == SAFE
    assert found.notes == ("1 response with violations although violation is not yes: counted without them",)


def test_missing_conditional_answers_are_noted() -> None:
    """The server's page cannot require an answer only in some cases."""
    found = read(said(perception=2, violation="yes"))
    assert values(found) == {"perception": 2, "violation": "yes", "violations": ()}
    assert found.mistakes == ()
    assert found.notes == ("1 response without violations although violation is yes: counted, but ask for them",)
    stored = {one.key: one for one in found.annotations if one.value is not None}
    assert completed_items([ITEM], QUESTIONS["safety"], stored) == {"a": {"111"}}


def test_withdrawn_answers_are_none() -> None:
    found = read(said(**SAFE, comment=""))
    assert {one.question for one in found.annotations if one.value is None} == {"violations", "comment", SKIPPED}
    found = read(said("draft", **SAFE))
    assert values(found) == {}
    assert found.started == {("a", "111")}


@pytest.mark.parametrize("turned", [False, True])
def test_the_last_submitted_response_counts(turned: bool) -> None:
    first = said(when="2030-01-01", **SAFE)
    second = said(when="2030-01-02", dataset="w2", **SAFE | {"perception": 1})
    discarded = said("discarded", when="2030-01-03", dataset="w3")
    order = [first, second, discarded]
    assert values(read(*(reversed(order) if turned else order)))["perception"] == 1


def test_choices_of_other_items_are_mistakes() -> None:
    item = Item("a", "en", (Turn("user", "hi"),), labels=("keep", "drop"))
    questions = questions_for("adjudication", [("keep", "drop"), ("yes", "no")])
    found = read(said(label="yes"), questions=questions, item=item)
    assert found.annotations == ()
    assert "item a, annotator ann: 'yes' is not a choice of this item: keep, drop" in found.mistakes[0]
    assert values(read(said(label="drop"), questions=questions, item=item)) == {"label": "drop"}


def test_other_records_are_ignored_and_times_are_utc() -> None:
    response = {"user_id": "u1", "status": "submitted", "values": {"keep": {"value": "keep"}},
                "updated_at": "2030-01-02T03:04:05.678901"}  # fmt: skip
    records = [{"external_id": "r-a", "responses": [response]}, {"external_id": "else", "responses": [response]}]
    (found,) = responses_of("w1", records, {"r-a": "a"})
    assert (found.item, found.values, found.when) == ("a", {"keep": "keep"}, "2030-01-02T03:04:05.678+00:00")
