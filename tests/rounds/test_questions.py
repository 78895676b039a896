"""What a round asks, and which answers a question takes."""

from __future__ import annotations

import pytest

from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import RoundError
from h2htalk.rounds.questions import KINDS, QUESTIONS, find_kind, questions_for

LABEL = QUESTIONS["crowd"][1]
RATING = QUESTIONS["crowd"][2]
SEVERAL = QUESTIONS["safety"][2]


def test_the_crowd_is_asked_for_a_subtask_of_the_eleven_or_none() -> None:
    assert QUESTIONS["crowd"][0].labels == (*SUBTASKS, "none")
    assert [question.name for question in QUESTIONS["crowd"]] == ["subtask", "keep", "quality"]


def test_experts_rate_what_the_paper_names() -> None:
    assert [q.name for q in QUESTIONS["expert"]] == [
        "accuracy",
        "consistency",
        "domain_compliance",
        "keep",
        "comment",
    ]


@pytest.mark.parametrize("raw", [4, 4.0, "4", " 4 "])
def test_a_rating_is_a_whole_number_however_it_is_held(raw: object) -> None:
    assert RATING.read(raw) == 4


@pytest.mark.parametrize(
    "raw", [True, 0, 6, 4.5, "4.5", "four", "", None, [4], float("nan"), "４" * 3, "9" * 5000]
)
def test_what_is_no_rating_is_refused_with_the_choices(raw: object) -> None:
    with pytest.raises(RoundError, match="choose from 1, 2, 3, 4, 5"):
        RATING.read(raw)


@pytest.mark.parametrize("raw", ["KEEP", "maybe", "", None, 1, ["keep"]])
def test_a_label_is_one_of_its_question(raw: object) -> None:
    assert LABEL.read("keep") == "keep"
    with pytest.raises(RoundError, match="choose from keep, drop"):
        LABEL.read(raw)


def test_several_labels_stand_in_the_order_of_the_question_and_once() -> None:
    assert SEVERAL.read(["privacy", "boundary", "privacy"]) == ("boundary", "privacy")
    assert SEVERAL.read("privacy") == ("privacy",)
    with pytest.raises(RoundError, match="is not valid for violations"):
        SEVERAL.read(["privacy", "rude"])


def test_an_adjudication_asks_for_a_word_where_its_items_name_labels_and_for_a_rating_where_none_does() -> (
    None
):
    assert questions_for("adjudication", [(), ()])[0].name == "rating"
    asked = questions_for("adjudication", [("keep", "drop"), ("drop", "none")])
    assert (asked[0].name, asked[0].labels) == ("label", ("drop", "keep", "none"))
    for mixed in ([("keep", "drop"), ()], [("keep",), ("keep", "drop")]):
        with pytest.raises(RoundError, match="open two rounds"):
            questions_for("adjudication", mixed)


def test_labels_of_items_are_no_choices_in_a_round_of_another_kind() -> None:
    assert questions_for("crowd", [("keep", "drop")]) == QUESTIONS["crowd"]


def test_an_unknown_kind_is_refused_with_the_kinds() -> None:
    assert [find_kind(name) for name in KINDS] == list(KINDS)
    with pytest.raises(RoundError, match="'croud'; choose from crowd, expert, adjudication, safety"):
        find_kind("croud")
