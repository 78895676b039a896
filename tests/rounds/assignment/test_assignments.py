"""Who gets what: balanced, in one's own language, crises spread, and the same whatever the order of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.data.dialogue import Turn
from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import assign, group_items, sessions
from h2htalk.rounds.items import Item
from h2htalk.rounds.settings import Care

CARE = Care(session_items=10, crisis_share=0.2)


def items(count: int, language: Language = "en", every: int = 0) -> list[Item]:
    """`count` items, each `every`-th of which speaks of a crisis."""
    return [
        Item(f"{language}-{n:03}", language, (Turn("user", "hi"),), crisis=bool(every) and n % every == 0)
        for n in range(count)
    ]


def annotators(count: int, language: Language = "en", crisis: bool = True) -> list[Annotator]:
    return [Annotator(f"{language}{n}", f"{language}-{n}", (language,), crisis) for n in range(count)]


def wanted(given_items: Sequence[Item], count: int) -> dict[str, int]:
    return {item.id: count for item in given_items}


def test_every_item_has_its_annotators_and_every_annotator_the_same_work() -> None:
    some = items(100, every=10)
    assignment_set = assign(1, some, wanted(some, 3), annotators(20), (), CARE, 0)
    assert Counter(Counter(s.item for s in assignment_set.assignments).values()) == {3: 100}
    loads = Counter(s.annotator for s in assignment_set.assignments)
    assert max(loads.values()) - min(loads.values()) <= 1
    assert len({(s.item, s.annotator) for s in assignment_set.assignments}) == 300


@settings(max_examples=30)
@given(st.integers(0, 3), st.randoms())
def test_the_order_of_rows_changes_nothing_and_the_seed_does(seed: int, random: object) -> None:
    some, people = items(30, every=10), annotators(6)
    mixed = list(some)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one = assign(1, some, wanted(some, 2), people, (), CARE, seed)
    assert assign(1, mixed, wanted(mixed, 2), people, (), CARE, seed) == one
    assert assign(1, some, wanted(some, 2), people, (), CARE, seed + 9) != one


@settings(max_examples=50)
@given(st.integers(1, 60), st.integers(8, 30), st.integers(1, 25))
def test_no_session_holds_more_crises_than_stated(count: int, every: int, size: int) -> None:
    care = Care(session_items=size, crisis_share=0.25)
    some = items(count, every=every)
    hard = {item.id for item in some if item.crisis}
    groups = sessions(some, care, 1, "ana")
    assert sorted(one for found in groups for one in found) == [item.id for item in some]
    for found in groups:
        assert len(found) <= size
        assert sum(one in hard for one in found) <= max(1, 0.25 * len(found))


def test_more_crises_than_can_be_spread_are_an_error_and_not_a_crowded_session() -> None:
    with pytest.raises(RoundError, match=r"20 of 40 items are about a crisis; with care.crisis_share = 0.2"):
        sessions(items(40, every=2), CARE, 0, "ana")
    assert len(sessions(items(40, every=2), Care(10, 1.0), 0, "ana")) == 4
    with pytest.raises(RoundError, match="are about a crisis"):
        sessions(items(40, every=20), Care(10, 0.0), 0, "ana")


def test_items_go_to_annotators_of_their_language_and_crises_to_nobody_who_wants_none() -> None:
    some = [*items(20, every=10), *items(20, "zh")]
    people = [*annotators(3), *annotators(3, "zh"), Annotator("calm", "calm", ("en", "zh"), crisis=False)]
    assignment_set = assign(1, some, wanted(some, 3), people, (), CARE, 0)
    by_id = {item.id: item for item in some}
    for one in assignment_set.assignments:
        if one.annotator == "calm":
            assert not by_id[one.item].crisis
        else:
            assert one.annotator.startswith(by_id[one.item].language)


def test_nobody_gets_an_item_twice_and_who_left_gets_nothing() -> None:
    some = items(10)
    people = [*annotators(4), Annotator("gone", "gone", ("en",), active=False)]
    first = assign(1, some, wanted(some, 2), people, (), CARE, 0)
    second = assign(
        2, some, wanted(some, 2), people, {(s.item, s.annotator) for s in first.assignments}, CARE, 0
    )
    pairs = [(s.item, s.annotator) for assignment_set in (first, second) for s in assignment_set.assignments]
    assert len(set(pairs)) == len(pairs) == 40
    assert "gone" not in {annotator for _, annotator in pairs}


def test_too_few_annotators_are_an_error_that_counts_them() -> None:
    some = [*items(10, every=5), *items(4, "zh")]
    people = [*annotators(3), *annotators(1, crisis=False)]
    with pytest.raises(RoundError, match="4 items in zh: 4 annotators needed, 0 eligible") as caught:
        assign(1, some, wanted(some, 4), people, (), CARE, 0)
    assert "2 items in en about a crisis: 4 annotators needed, 3 eligible" in str(caught.value)


def test_a_pilot_keeps_crises_among_plain_items_though_fewer_people_may_see_them() -> None:
    """By number of answers the crises came together, and no session could hold them."""
    some = [*items(12, every=6), *items(5, "zh")]
    asked = {item.id: 3 if item.crisis else 4 for item in some}
    with pytest.raises(RoundError, match="2 of 2 items are about a crisis"):
        group_items(1, some, asked, CARE, 0)
    assignment_set = group_items(1, some, asked, CARE, 0, everybody=True)
    assert sorted(one for found in assignment_set.groups for one in found) == sorted(asked)
    hard = {item.id for item in some if item.crisis}
    assert all(len(hard & set(found)) < len(found) for found in assignment_set.groups)
    assert all(len({one[:2] for one in found}) == 1 for found in assignment_set.groups)


def test_a_server_gets_sessions_of_one_language_and_one_number_of_answers() -> None:
    some = [*items(25, every=10), *items(5, "zh")]
    asked = {**wanted(some, 3), "en-001": 1}
    assignment_set = group_items(2, some, asked, CARE, 0)
    for found in assignment_set.groups:
        assert len({(one[:2], asked[one]) for one in found}) == 1
    assert sorted(one for found in assignment_set.groups for one in found) == sorted(asked)
