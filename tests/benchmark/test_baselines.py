"""Baselines: three trivial answers, which depend on the items alone."""

from __future__ import annotations

import random

import pytest

from h2htalk.benchmark.summary import BASELINES, constant, copy_last_turn, random_reference
from h2htalk.data.languages import find_language
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split

MINI = list(load_split("mini@1").scenarios)
BY_ID = {s.id: s for s in MINI}


def texts(answers: list[Response | FailedResponse]) -> dict[str, str]:
    return {a.id: a.text for a in answers if isinstance(a, Response)}


@pytest.mark.parametrize("name", BASELINES)
def test_every_item_has_one_answer_that_row_order_does_not_change(name: str) -> None:
    answers = BASELINES[name](MINI, MINI)
    assert [a.id for a in answers] == [s.id for s in MINI]
    assert {a.sample for a in answers} == {0}
    shuffled = random.Random(3).sample(MINI, len(MINI))
    assert texts(BASELINES[name](shuffled, shuffled[::-1])) == texts(answers)


def test_constant_says_one_line_a_language_and_the_null_line_where_nothing_may_be_worth_keeping() -> None:
    said = texts(constant(MINI, MINI))
    for language in ("en", "zh"):
        own = [s for s in MINI if s.language == language]
        assert len({said[s.id] for s in own if s.subtask != "recollection_synthesis"}) == 1
        nulls = {said[s.id] for s in own if s.subtask == "recollection_synthesis"}
        assert nulls == {find_language(language).null_memory}


LAST = {
    "dialogue_schedule": lambda s: s.turns[-1].content,
    "itinerary_middle": lambda s: s.inputs["day_overview"],
    "recollection_refinement": lambda s: s.inputs["memories"][-1],
}


@pytest.mark.parametrize("subtask", LAST)
def test_copy_last_turn_repeats_the_last_thing_shown(subtask: str) -> None:
    rows = [s for s in MINI if s.subtask == subtask]
    assert texts(copy_last_turn(rows, MINI)) == {s.id: LAST[subtask](s) for s in rows}


def test_random_reference_is_another_items_of_the_same_subtask_and_language() -> None:
    by_reference: dict[str, list[Scenario]] = {}
    for scenario in MINI:
        by_reference.setdefault(scenario.reference, []).append(scenario)
    for item_id, text in texts(random_reference(MINI, MINI)).items():
        own = BY_ID[item_id]
        others = [s for s in by_reference[text] if s.id != item_id]
        assert any((s.subtask, s.language) == (own.subtask, own.language) for s in others), item_id


def test_an_item_without_a_neighbour_fails_and_is_not_scored() -> None:
    (answer,) = random_reference(MINI[:1], MINI[:1])
    assert isinstance(answer, FailedResponse)
    assert (answer.failure.reason, answer.failure.attempts) == ("no_neighbour", 0)
