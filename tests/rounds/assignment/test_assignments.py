"""Assignment of items, by language and consent, in any order of rows; annotations that items still need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Turn
from h2htalk.errors import RoundError
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import (
    Assignment,
    AssignmentSet,
    assign,
    describe_crowded_sessions,
    even_session_sizes,
    group_items,
    session_sizes,
    sessions,
)
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
from h2htalk.rounds.settings import Adaptive, Care, RoundSpec
from support.spreadsheet_rounds import item
from support.tables import table
from support.votes import counted

CARE = Care(session_items=10, crisis_share=0.2)
SPEC = RoundSpec("crowd", "x", care=CARE)


def items(count: int, language: Language = "en", every: int = 0) -> list[Item]:
    """`count` items, every `every`-th about a crisis."""
    return [
        Item(
            f"{language}-{n:03}",
            language,
            (Turn("user", "hi"),),
            crisis=bool(every) and n % every == 0,
        )
        for n in range(count)
    ]


def annotators(count: int, language: Language = "en", crisis: bool = True) -> list[Annotator]:
    return [
        Annotator(f"{language}{n}", f"{language}-{n}", (language,), crisis) for n in range(count)
    ]


def wanted(given_items: Sequence[Item], count: int) -> dict[str, int]:
    return {item.id: count for item in given_items}


def test_assignments_respect_loads_languages_and_consent() -> None:
    some = items(100, every=10)
    assignment_set = assign(SPEC, 1, some, wanted(some, 3), annotators(20), ())
    assert Counter(Counter(s.item for s in assignment_set.assignments).values()) == {3: 100}
    loads = Counter(s.annotator for s in assignment_set.assignments)
    assert max(loads.values()) - min(loads.values()) <= 1
    assert len({(s.item, s.annotator) for s in assignment_set.assignments}) == 300
    # Assignments respect language and consent.
    some = [*items(20, every=10), *items(20, "zh")]
    people = [
        *annotators(3),
        *annotators(3, "zh"),
        Annotator("calm", "calm", ("en", "zh"), crisis=False),
    ]
    assignment_set = assign(SPEC, 1, some, wanted(some, 3), people, ())
    by_id = {item.id: item for item in some}
    for one in assignment_set.assignments:
        if one.annotator == "calm":
            assert not by_id[one.item].crisis
        else:
            assert one.annotator.startswith(by_id[one.item].language)
    # Nobody gets an item twice, and inactive annotators get none.
    some = items(10)
    people = [*annotators(4), Annotator("gone", "gone", ("en",), active=False)]
    first = assign(SPEC, 1, some, wanted(some, 2), people, ())
    second = assign(
        SPEC, 2, some, wanted(some, 2), people, {(s.item, s.annotator) for s in first.assignments}
    )
    pairs = [
        (s.item, s.annotator)
        for assignment_set in (first, second)
        for s in assignment_set.assignments
    ]
    assert len(set(pairs)) == len(pairs) == 40
    assert "gone" not in {annotator for _, annotator in pairs}


@given(st.integers(0, 3), st.randoms())
def test_assignments_depend_on_the_seed_not_on_the_order(seed: int, random: object) -> None:
    some = items(30, every=10)
    people = annotators(6)
    mixed = list(some)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one = assign(replace(SPEC, seed=seed), 1, some, wanted(some, 2), people, ())
    assert assign(replace(SPEC, seed=seed), 1, mixed, wanted(mixed, 2), people, ()) == one
    assert assign(replace(SPEC, seed=seed + 9), 1, some, wanted(some, 2), people, ()) != one


def test_too_many_crises_are_an_error() -> None:
    with pytest.raises(
        RoundError, match=r"20 of 40 items are about a crisis; with care.crisis_share = 0.2"
    ):
        sessions(SPEC, items(40, every=2), "ana")
    assert len(sessions(replace(SPEC, care=Care(10, 1.0)), items(40, every=2), "ana")) == 4
    with pytest.raises(RoundError, match="are about a crisis"):
        sessions(replace(SPEC, care=Care(10, 0.0)), items(40, every=20), "ana")
    # Nobody knew that possible crises filled the share.
    tagged = [
        replace(one, tags=("possible_crisis",) if one.crisis else ()) for one in items(40, every=2)
    ]
    tagged[0] = replace(tagged[0], tags=("crisis.ideation", "possible_crisis"))
    with pytest.raises(
        RoundError, match=r"crisis \(by their tags: possible_crisis 20, crisis.ideation 1\); with"
    ):
        sessions(SPEC, tagged, "ana")


def test_a_first_set_mixes_crises_with_other_items() -> None:
    """Grouped by the number of annotators, the crises were together, and no session could hold them."""
    some = [*items(12, every=6), *items(5, "zh")]
    asked = {item.id: 3 if item.crisis else 4 for item in some}
    with pytest.raises(RoundError, match="2 of 2 items are about a crisis"):
        group_items(SPEC, 1, some, asked, may_exceed_share=False, mixed=False)
    assignment_set = group_items(SPEC, 1, some, asked, may_exceed_share=False, mixed=True)
    assert sorted(one for found in assignment_set.groups for one in found) == sorted(asked)
    hard = {item.id for item in some if item.crisis}
    assert all(len(hard & set(found)) < len(found) for found in assignment_set.groups)
    assert all(len({one[:2] for one in found}) == 1 for found in assignment_set.groups)


def mixed(plain: int, crises: int, language: Language = "en") -> list[Item]:
    return [
        replace(one, crisis=n < crises) for n, one in enumerate(items(plain + crises, language))
    ]


def test_crises_move_to_annotators_whose_sessions_can_hold_them() -> None:
    """Ana reads only English and gets few other items beside many crises; Bo and Cy can take some."""
    some = [*mixed(4, 2), *mixed(28, 3, "zh")]
    people = [
        Annotator("ana", "ana", ("en",)),
        Annotator("bo", "bo", ("en", "zh")),
        Annotator("cy", "cy", ("zh",)),
    ]
    for seed in range(10):
        assignment_set = assign(
            replace(SPEC, seed=seed), 1, some, {one.id: 1 for one in some}, people, ()
        )
        assert sorted(one.item for one in assignment_set.assignments) == sorted(
            one.id for one in some
        )
        hard = {one.id for one in some if one.crisis}
        for annotator in people:
            for session in {
                s.session for s in assignment_set.assignments if s.annotator == annotator.id
            }:
                own = (annotator.id, session)
                held = [
                    s.item for s in assignment_set.assignments if (s.annotator, s.session) == own
                ]
                assert sum(one in hard for one in held) <= max(1, 0.2 * len(held))


def test_crises_of_later_assignment_sets_are_spread_evenly() -> None:
    """Each crisis above the share became a session of one item: 12 items with 5 of them came in five sessions."""
    some = mixed(7, 5)
    with pytest.raises(RoundError, match=r"5 of 12 items .* at most 3 fit"):
        sessions(SPEC, some, "ana")
    hard = {one.id for one in some if one.crisis}
    groups = sessions(SPEC, some, "ana", may_exceed_share=True)
    assert [(len(group), len(hard & {*group})) for group in groups] == [(4, 2), (4, 2), (4, 1)]
    assert sorted(one for group in groups for one in group) == [one.id for one in some]
    wanted = {one.id: 1 for one in mixed(0, 2)}
    second = group_items(SPEC, 2, mixed(0, 2), wanted, may_exceed_share=True, mixed=False)
    assert [sorted(group) for group in second.groups] == [["en-000", "en-001"]]
    people = [Annotator("ana", "ana", ("en",))]
    third = assign(
        SPEC, 3, mixed(0, 3), {one.id: 1 for one in mixed(0, 3)}, people, (), may_exceed_share=True
    )
    assert sorted(Counter(one.session for one in third.assignments).values()) == [1, 2]


@pytest.mark.parametrize(
    ("count", "crises", "number"),
    [
        (12, 6, 2),
        (12, 12, 3),
        (22, 11, 3),
        (22, 22, 6),
        (48, 24, 6),
        (48, 48, 12),
        (200, 100, 25),
        (200, 200, 50),
    ],
)
def test_sessions_above_the_share_are_few_and_even(count: int, crises: int, number: int) -> None:
    """200 items, 100 of them about a crisis, came in 82 sessions, 75 of them of one item."""
    care = Care()
    assert session_sizes(count, crises, care) is None
    sizes = even_session_sizes(count, crises, care)
    assert len(sizes) == number
    assert max(held for _, held in sizes) <= care.session_crises == 4


@given(
    st.integers(1, 120), st.integers(1, 30), st.sampled_from([0.01, 0.1, 0.2, 0.25, 0.4, 0.9, 1.0])
)
def test_even_sessions_hold_everything_and_never_more_than_a_full_session(
    number: int, session: int, share: float
) -> None:
    care = Care(session, share)
    for hard in range(number + 1):
        sizes = even_session_sizes(number, hard, care)
        assert (sum(size for size, _ in sizes), sum(held for _, held in sizes)) == (number, hard)
        assert all(
            1 <= size <= session and held <= min(size, care.session_crises) for size, held in sizes
        )
        assert max(size for size, _ in sizes) - min(size for size, _ in sizes) <= 1
        assert max(held for _, held in sizes) - min(held for _, held in sizes) <= 1


def test_a_message_says_which_sessions_hold_more_than_their_share() -> None:
    """Of spreadsheets nothing said it at all; then the sessions of all annotators were counted together."""
    some = mixed(7, 5)
    people = annotators(2)
    one_set = assign(SPEC, 2, some, wanted(some, 2), people, (), may_exceed_share=True)
    (message,) = describe_crowded_sessions(one_set, some, CARE)
    assert message.startswith(
        "12 items come in 3 sessions for each of 2 annotators; 4 of 6 sessions have more items"
    )
    assert "up to 2 of 4" in message
    assert "a full session of 10 may have (2)" in message
    # Who gets more items may have more sessions.
    one_set = assign(
        SPEC, 2, some, wanted(some, 2), [*people, *annotators(1, "zh")], (), may_exceed_share=True
    )
    assert describe_crowded_sessions(one_set, some, CARE) == [message]
    alone = assign(SPEC, 2, some, wanted(some, 1), people[:1], (), may_exceed_share=True)
    (message,) = describe_crowded_sessions(alone, some, CARE)
    assert message.startswith(
        "12 items come in 3 sessions for 1 annotator; 2 of 3 sessions have more"
    )
    other = replace(one_set, assignments=(*one_set.assignments, Assignment("new", "en-000", 1, 1)))
    (message,) = describe_crowded_sessions(other, some, CARE)
    assert "1 to 3 sessions for each of 3 annotators; 4 of 7 sessions have more" in message
    server = group_items(SPEC, 2, some, wanted(some, 2), may_exceed_share=True, mixed=False)
    (message,) = describe_crowded_sessions(server, some, CARE)
    assert message.startswith(
        "12 items come in 3 sessions; 2 of 3 sessions have more items about a crisis than"
    )
    few = items(20, every=10)
    one_set = assign(SPEC, 1, few, wanted(few, 2), people, ())
    assert describe_crowded_sessions(one_set, few, CARE) == []


def test_crises_are_spread_evenly() -> None:
    """18 items with 3 crises were refused: sessions of 9 and 9 hold one each, sessions of 10 and 8 hold three."""
    assert session_sizes(18, 2, CARE) == ((9, 1), (9, 1))
    assert session_sizes(18, 3, CARE) == ((10, 2), (8, 1))
    assert session_sizes(21, 4, CARE) == ((10, 2), (6, 1), (5, 1))
    assert session_sizes(20, 5, CARE) is session_sizes(2, 2, CARE) is None


@given(st.integers(1, 40), st.integers(1, 20), st.sampled_from([0.1, 0.2, 0.25, 0.4, 0.9, 1.0]))
def test_session_sizes_respect_the_share(number: int, session: int, share: float) -> None:
    care = Care(session, share)
    assert session_sizes(number, 1, care) is not None
    for hard in range(number + 1):
        sizes = session_sizes(number, hard, care)
        if sizes is not None:
            assert (sum(size for size, _ in sizes), sum(crises for _, crises in sizes)) == (
                number,
                hard,
            )
            assert all(
                1 <= size <= session and crises <= max(1, share * size + 1e-9)
                for size, crises in sizes
            )


WHEN = "2026-01-01T00:00:00Z"
CROWD = RoundSpec("crowd", "items.jsonl", overlap=2)
PANEL = [Annotator(f"v{n}", f"v{n}", ("en",)) for n in range(6)]
SPLIT = [("none", "keep"), ("none", "drop")]


def test_ties_and_leads_request_the_smallest_number_that_can_be_enough() -> None:
    for counts, number in table("rounds", "votes_that_can_be_enough"):
        assert needs_more(counted(counts), ["item-00"], Adaptive(), 20) == {"item-00": number}, (
            counts
        )
    more = [
        needs_more(counted((n,)), ["item-00"], Adaptive(lead=1), 20)["item-00"] for n in range(5)
    ]
    assert more == [3, 2, 1, 0, 0]
    # Gold items are not decided.
    votes = {"plain": SPLIT, "gold": SPLIT}
    assert needed(CROWD, votes, gold=["gold"], ties=True) == {"plain": 1}
    assert needed(CROWD, votes, gold=["gold"]) == {}
    assert needed(replace(CROWD, overlap=5), {"a": SPLIT}, ties=True) == {"a": 3}


def needed(
    spec: RoundSpec,
    votes: Mapping[str, Sequence[tuple[str, str]]],
    gold: Sequence[str] = (),
    *,
    ties: bool = False,
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


def test_adaptive_rounds_request_what_a_lead_needs() -> None:
    """Only the last question determined the number."""
    adaptive = replace(CROWD, overlap=6, adaptive=Adaptive(on=True, minimum=2, lead=2))
    first = [("none", "keep"), ("dialogue_base", "keep")]
    clear = [("none", "keep")] * 2
    unclear = {"first": first, "last": SPLIT, "neither": clear, "new": []}
    assert needed(adaptive, unclear) == {"first": 2, "last": 2, "new": 2}
    # Three annotators were requested, but three votes cannot lead by four.
    some = [Item.from_dict(item(n)) for n in range(2)]
    for changes, first in (
        ({}, 4), ({"lead": 3}, 3), ({"minimum": 5}, 5), ({"lead": 30}, 6),
    ):  # fmt: skip
        spec = replace(CROWD, overlap=6, adaptive=Adaptive(on=True, **changes))
        assert initial_requests(spec, some, PANEL) == {"en-item-0": first, "en-item-1": first}, (
            changes
        )
    # Adaptive rounds of gold items are no pilots.
    golden = [Item.from_dict(item(0, gold={"keep": "keep"}))]
    adaptive = replace(CROWD, overlap=0, adaptive=Adaptive(on=True))
    assert is_pilot(replace(CROWD, overlap=0), golden)
    assert not is_pilot(adaptive, golden)
    assert not is_pilot(CROWD, golden)
    assert needed(adaptive, {"a": []}, gold=["a"]) == {"a": 4}
    assert needed(replace(CROWD, overlap=0), {"a": []}, gold=["a"]) == {"a": 6}


ITEM = Item.from_dict(item(0), "made")
ANNA, BO, CEM, DEE = (
    Annotator(name, name, ("en",), True, name != "cem") for name in ("anna", "bo", "cem", "dee")
)
ASSIGNMENTS = tuple(Assignment(name, ITEM.id, 1, 1) for name in ("anna", "bo", "cem"))


def annotated(*names: str, question: str = "keep") -> dict[tuple[str, str, str], Annotation]:
    return {
        (ITEM.id, name, question): Annotation("r", ITEM.id, name, question, "keep", WHEN)
        for name in names
    }


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
    assignments: tuple[Assignment, ...],
    answered: tuple[str, ...],
    skipped: tuple[str, ...],
    expected: tuple[int, int],
) -> None:
    sets = [AssignmentSet(1, {ITEM.id: 3 if assignments else 2}, assignments)]
    annotations = annotated(*answered) | annotated(*skipped, question="skipped")
    result = pending_annotations(
        [ITEM], sets, [ANNA, BO, CEM, DEE], annotations, {ITEM.id: set(answered)}
    )
    assert result == {ITEM.id: PendingAnnotations(*expected)}


def test_pending_annotators_of_a_server() -> None:
    # A response that the round does not count, an owner's, may have completed the record on the server.
    sets = [AssignmentSet(1, {ITEM.id: 2})]
    nobody = {ITEM.id: ()}
    result = pending_annotations([ITEM], sets, [ANNA, BO, DEE], {}, nobody, {ITEM.id: 0})
    assert result == {ITEM.id: PendingAnnotations(0, 3)}
    # It offers an item to three annotators, but only one has not annotated it.
    sets = [AssignmentSet(1, {ITEM.id: 3})]
    anna = {ITEM.id: {"anna"}}
    result = pending_annotations([ITEM], sets, [ANNA, BO], annotated("anna"), anna, {ITEM.id: 3})
    assert result == {ITEM.id: PendingAnnotations(1, 0)}
