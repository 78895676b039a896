"""Sizes of sessions: what can be spread within the share is spread, evenly where it can be; the rest goes out alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.data.dialogue import Turn
from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import assign, group_items, sessions
from h2htalk.rounds.assignment.session_sizes import max_crises, session_sizes
from h2htalk.rounds.items import Item
from h2htalk.rounds.settings import Care

CARE = Care(session_items=10, crisis_share=0.2)


def items(plain: int, hard: int, language: Language = "en") -> list[Item]:
    return [
        Item(f"{language}-{n:03}", language, (Turn("user", "hi"),), crisis=n < hard)
        for n in range(plain + hard)
    ]


@pytest.mark.parametrize(
    ("number", "hard", "sizes"),
    [
        (0, 0, ()),
        (18, 2, ((9, 1), (9, 1))),
        (18, 3, ((10, 2), (8, 1))),
        (21, 4, ((10, 2), (6, 1), (5, 1))),
        (21, 5, ((10, 2), (10, 2), (1, 1))),
        (20, 4, ((10, 2), (10, 2))),
        (20, 5, None),
        (2, 2, None),
    ],
)
def test_crises_are_dealt_evenly_and_full_sessions_made_only_where_they_need_them(
    number: int, hard: int, sizes: tuple[tuple[int, int], ...] | None
) -> None:
    """18 items with 3 crises were refused: cut into 9 and 9 they hold one each, into 10 and 8 they hold three."""
    assert session_sizes(number, hard, CARE) == sizes


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 40), st.integers(1, 20), st.sampled_from([0.1, 0.2, 0.25, 0.4, 0.9, 1.0]))
def test_no_session_holds_more_than_its_share(number: int, session: int, share: float) -> None:
    care = Care(session, share)
    assert max_crises(number, care) >= 1
    for hard in range(number + 1):
        sizes = session_sizes(number, hard, care)
        if sizes is not None:
            assert (sum(size for size, _ in sizes), sum(crises for _, crises in sizes)) == (number, hard)
            assert all(
                1 <= size <= session and crises <= max(1, share * size + 1e-9) for size, crises in sizes
            )


def test_a_annotator_whose_sessions_hold_no_more_crises_is_relieved_by_another() -> None:
    """Ana alone reads Chinese, and so gets few plain items of English beside many crises; Bo and Cy have max_crises."""
    some = [*items(4, 2), *items(28, 3, "zh")]
    people = [
        Annotator("ana", "ana", ("en",)),
        Annotator("bo", "bo", ("en", "zh")),
        Annotator("cy", "cy", ("zh",)),
    ]
    for seed in range(10):
        assignment_set = assign(1, some, {one.id: 1 for one in some}, people, (), CARE, seed)
        assert sorted(one.item for one in assignment_set.assignments) == sorted(one.id for one in some)
        hard = {one.id for one in some if one.crisis}
        for annotator in people:
            for session in {s.session for s in assignment_set.assignments if s.annotator == annotator.id}:
                held = [
                    s.item
                    for s in assignment_set.assignments
                    if (s.annotator, s.session) == (annotator.id, session)
                ]
                assert sum(one in hard for one in held) <= max(1, 0.2 * len(held))


def test_of_a_later_assignment_set_crises_that_fit_nowhere_go_out_alone() -> None:
    some = items(3, 3)
    with pytest.raises(RoundError, match=r"3 of 6 items .* at most 1 fit"):
        sessions(some, CARE, 0, "ana")
    groups = sessions(some, CARE, 0, "ana", allow_single=True)
    assert [len(found) for found in groups] == [4, 1, 1]
    assert sorted(one for found in groups for one in found) == [one.id for one in some]
    with pytest.raises(RoundError, match="are about a crisis"):
        sessions(some, Care(10, 0.0), 0, "ana", allow_single=True)
    wanted = {one.id: 1 for one in items(0, 2)}
    assert group_items(2, items(0, 2), wanted, CARE, 0, allow_single_crises=True).groups == (
        ("en-000",),
        ("en-001",),
    )
    people = [Annotator("ana", "ana", ("en",))]
    assignments = assign(2, items(0, 2), wanted, people, (), CARE, 0, allow_single_crises=True).assignments
    assert sorted((one.item, one.session) for one in assignments) in (
        [("en-000", 1), ("en-001", 2)], [("en-000", 2), ("en-001", 1)],
    )  # fmt: skip
