"""Questions of a round and their valid answers."""

from __future__ import annotations

import pytest

from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import RoundError
from h2htalk.rounds.questions import QUESTIONS, questions_for

LABEL, RATING, SEVERAL = QUESTIONS["crowd"][1], QUESTIONS["crowd"][2], QUESTIONS["safety"][2]


def test_questions_of_the_paper() -> None:
    assert QUESTIONS["crowd"][0].labels == (*SUBTASKS, "none")
    assert [question.name for question in QUESTIONS["crowd"]] == ["subtask", "keep", "quality"]
    names = ["accuracy", "consistency", "domain_compliance", "keep", "comment"]
    assert [question.name for question in QUESTIONS["expert"]] == names


@pytest.mark.parametrize("raw", [4, 4.0, "4", " 4 "])
def test_valid_ratings(raw: object) -> None:
    assert RATING.read(raw) == 4


@pytest.mark.parametrize("raw", [True, 0, 6, 4.5, "4.5", "four", "", None, [4], float("nan"), "４" * 3, "9" * 5000])
def test_invalid_ratings(raw: object) -> None:
    with pytest.raises(RoundError, match="choose from 1, 2, 3, 4, 5"):
        RATING.read(raw)


def test_labels() -> None:
    assert LABEL.read("keep") == "keep"
    for raw in ("KEEP", "maybe", "", None, 1, ["keep"]):
        with pytest.raises(RoundError, match="choose from keep, drop"):
            LABEL.read(raw)
    assert SEVERAL.read(["privacy", "boundary", "privacy"]) == ("boundary", "privacy")
    assert SEVERAL.read("privacy") == ("privacy",)
    with pytest.raises(RoundError, match="is not valid for violations"):
        SEVERAL.read(["privacy", "rude"])


def test_adjudications_ask_for_a_label_or_a_rating() -> None:
    assert questions_for("adjudication", [(), ()])[0].name == "rating"
    question = questions_for("adjudication", [("keep", "drop"), ("drop", "none")])[0]
    assert (question.name, question.labels) == ("label", ("drop", "keep", "none"))
    for mixed in ([("keep", "drop"), ()], [("keep",), ("keep", "drop")]):
        with pytest.raises(RoundError, match="open two rounds"):
            questions_for("adjudication", mixed)
    # Other kinds ignore the labels of items.
    assert questions_for("crowd", [("keep", "drop")]) == QUESTIONS["crowd"]
