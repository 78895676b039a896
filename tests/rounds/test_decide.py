"""From answers to decisions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.data.dialogue import Turn
from h2htalk.rounds.answers import Answer
from h2htalk.rounds.decide import Settled, adjudicated, answered_items, decide, tie_id
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, Question, Value, questions_for

KEEP, QUALITY = QUESTIONS["crowd"][1:]


def item(name: str, **fields: object) -> Item:
    return Item(name, "en", (Turn("user", "hi"),), **fields)  # type: ignore[arg-type]


def said(question: str, votes: Mapping[str, Sequence[Value]]) -> list[Answer]:
    """Answers of voters v0, v1, ... to each item."""
    return [
        Answer("r", name, f"v{n}", question, value, "t")
        for name, values in votes.items()
        for n, value in enumerate(values)
    ]


def by_item(settled: Sequence[Settled]) -> dict[str, Settled]:
    return {one.item: one for one in settled}


def test_most_votes_decide_and_say_how_many_they_were() -> None:
    one = decide([item("a")], [KEEP], said("keep", {"a": ["keep", "keep", "drop"]}), 0.2)[0]
    assert (one.label, one.support, one.votes, one.how) == ("keep", 2, 3, "majority")
    assert one.posterior is not None
    assert 0.5 < one.posterior <= 1
    assert list(one.to_dict())[:6] == ["item", "question", "label", "support", "posterior", "how"]


def test_a_tie_goes_to_the_voters_who_proved_right_and_stays_a_tie_where_that_is_not_clear() -> None:
    """v0 and v1 are right on 95 of 100 items, v2 and v3 on 55, four more on 80."""
    draw = random.Random(5)
    names = [f"x{n}" for n in range(200)]
    votes: dict[str, list[Value]] = {}
    for n, name in enumerate(names):
        right, wrong = (("keep", "drop"), ("drop", "keep"))[n % 2]
        skills = (0.95, 0.95, 0.55, 0.55, 0.8, 0.8, 0.8, 0.8)
        votes[name] = [right if draw.random() < skill else wrong for skill in skills]
    votes["tied"] = ["keep", "keep", "drop", "drop"]
    items = [item(name) for name in (*names, "tied", "alone")]
    clear = by_item(decide(items, [KEEP], said("keep", votes), 0.2))["tied"]
    assert (clear.label, clear.how, clear.support, clear.votes) == ("keep", "posterior", 2, 4)
    few = {name: votes[name] for name in (*names[:8], "tied")}
    assert by_item(decide(items, [KEEP], said("keep", few), 0.0))["tied"].how == "tie"
    unclear = by_item(decide(items, [KEEP], said("keep", votes | {"alone": ["keep", "drop"]}), 1.0))
    assert unclear["tied"].to_dict() == {
        "item": "tied", "question": "keep", "label": None, "support": 2, "posterior": None, "how": "tie", "votes": 4,
        "tied": ["drop", "keep"],
    }  # fmt: skip


def test_a_label_that_is_not_among_the_tied_cannot_win() -> None:
    question = Question("q", "label", ("a", "b", "c"))
    votes: dict[str, Sequence[Value]] = {f"x{n}": ["c"] * 5 for n in range(30)}
    votes["tied"] = ["a", "a", "b", "b", "c"]
    one = by_item(decide([item(name) for name in votes], [question], said("q", votes), 0.0))["tied"]
    assert one.label in ("a", "b", None)


def test_gold_items_tell_whom_a_tie_is_to_be_left_to() -> None:
    """v0 and v1 say what one coin says; gold items counted by their majority, and those two won every tie."""
    draw = random.Random(1)
    items, votes, rights = [], {}, {}
    for n in range(300):
        right, coin = draw.choice(KEEP.labels), draw.choice(KEEP.labels)
        other = KEEP.labels[1 - KEEP.labels.index(right)]
        votes[f"i{n}"] = [coin, coin, *(right if draw.random() < 0.95 else other for _ in "cd")]
        items.append(item(f"i{n}", gold={"keep": right} if n < 150 else {}))
        rights[f"i{n}"] = right
    settled = [one for one in decide(items, [KEEP], said("keep", votes), 0.2) if one.how == "posterior"]
    assert len(settled) > 50
    assert sum(one.label == rights[one.item] for one in settled) >= 0.98 * len(settled)
    blind = decide([item(name) for name in votes], [KEEP], said("keep", votes), 0.2)
    assert not [one for one in blind if one.how == "posterior"]


def test_equal_chances_stay_a_tie_even_without_a_margin() -> None:
    one = decide([item("a")], [KEEP], said("keep", {"a": ["keep", "drop"]}), 0.0)[0]
    assert (one.label, one.how, one.tied) == (None, "tie", ("drop", "keep"))


def test_no_answer_is_said_and_is_no_decision() -> None:
    found = decide([item("a")], QUESTIONS["crowd"], [], 0.2)
    assert [(one.label, one.support, one.how) for one in found] == [(None, 0, "no answers")] * 3


def test_ratings_become_a_mean_with_its_interval() -> None:
    one = decide([item("a")], [QUALITY], said("quality", {"a": [3, 4, 5]}), 0.2)[0]
    assert (one.label, one.support, one.how, one.posterior) == (4.0, 3, "mean", None)
    assert one.interval is not None
    assert one.interval[0] < 4 < one.interval[1]


def test_of_several_labels_those_count_that_most_who_answered_named() -> None:
    several = QUESTIONS["safety"][2]
    one = decide(
        [item("a")],
        [several],
        said(several.name, {"a": [("privacy",), ("privacy", "sexual"), ("boundary",)]}),
        0.2,
    )[0]
    assert (one.label, one.support, one.votes) == (("privacy",), 2, 3)
    half = decide([item("a")], [several], said(several.name, {"a": [("privacy",), ("boundary",)]}), 0.2)[0]
    assert (half.label, half.support, half.votes) == ((), 0, 2)


def test_gold_items_check_voters_and_are_not_decided() -> None:
    items = [item("a"), item("g", gold={"keep": "keep"})]
    found = decide(items, [KEEP], said("keep", {"a": ["keep"], "g": ["drop"]}), 0.2)
    assert [one.item for one in found] == ["a"]


def test_an_adjudicator_chooses_among_the_labels_of_the_item() -> None:
    items = [item("a#keep", labels=("keep", "drop")), item("b#subtask", labels=("dialogue_base", "none"))]
    questions = questions_for("adjudication", [one.labels for one in items])
    answers = said("label", {"a#keep": ["keep"], "b#subtask": ["keep"]})
    found = by_item(decide(items, questions, answers, 0.2))
    assert found["a#keep"].label == "keep"
    assert found["b#subtask"].how == "no answers"


def test_the_word_of_an_adjudication_settles_exactly_its_tie() -> None:
    tied = decide([item("a"), item("b")], [KEEP], said("keep", {"a": ["keep", "drop"], "b": ["keep"]}), 1.0)
    word = Settled(tie_id("a", "keep"), "label", "drop", 1, None, "majority", 1, ("keep", "drop"))
    made = by_item(adjudicated(tied, {word.item: word}))
    assert (made["a"].label, made["a"].how) == ("drop", "adjudication")
    assert made["b"] == by_item(tied)["b"]
    for label, between in (("none", ("keep", "drop")), ("drop", ("drop", "keep", "none")), ("drop", ())):
        stranger = Settled(tie_id("a", "keep"), "label", label, 1, None, "majority", 1, between)
        assert adjudicated(tied, {stranger.item: stranger}) == tied


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_renamed_voters_and_shuffled_rows_change_nothing(seed: int) -> None:
    draw = random.Random(seed)
    names = [f"x{n}" for n in range(12)]
    votes = {name: [draw.choice(KEEP.labels) for _ in range(draw.randint(1, 6))] for name in names}
    answers = said("keep", votes)
    items = [item(name) for name in names]
    before = [one.to_dict() for one in decide(items, [KEEP], answers, 0.2)]
    new = {f"v{n}": f"w{draw.random()}" for n in range(6)}
    moved = [Answer(a.round, a.item, new[a.voter], a.question, a.value, a.when) for a in answers]
    draw.shuffle(moved)
    draw.shuffle(items)
    assert [one.to_dict() for one in decide(items, [KEEP], moved, 0.2)] == before


def test_an_item_is_answered_by_who_answered_all_that_is_required() -> None:
    answers = [*said("subtask", {"a": ["none"]}), *said("keep", {"a": ["keep"]})]
    found = {answer.key: answer for answer in answers}
    assert answered_items([item("a")], QUESTIONS["crowd"], found) == {"a": set()}
    found |= {answer.key: answer for answer in said("quality", {"a": [3]})}
    assert answered_items([item("a")], QUESTIONS["crowd"], found) == {"a": {"v0"}}


def test_a_violation_is_answered_once_its_kind_is_named() -> None:
    items, asked = [item("a")], QUESTIONS["safety"]
    answers = [*said("perception", {"a": [2, 4, 3]}), *said("violation", {"a": ["yes", "no", "yes"]})]
    found = {answer.key: answer for answer in answers}
    assert answered_items(items, asked, found) == {"a": {"v1"}}
    found |= {answer.key: answer for answer in said("violations", {"a": [("privacy",)]})}
    assert answered_items(items, asked, found) == {"a": {"v0", "v1"}}


@pytest.mark.parametrize("kind", ["crowd", "expert", "safety"])
def test_decisions_stand_by_item_and_in_the_order_of_the_questions(kind: str) -> None:
    questions = QUESTIONS[kind]  # type: ignore[index]
    found = decide([item("b"), item("a")], questions, [], 0.2)
    names = [q.name for q in questions if q.decided]
    assert [(one.item, one.question) for one in found] == [(name, q) for name in ("a", "b") for q in names]
