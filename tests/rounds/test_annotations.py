"""Annotations: stored lines, and the valid one of several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.records import read_record
from h2htalk.errors import DataError
from h2htalk.rounds.annotations import Annotation, changes, latest, skips

ITEMS, ANNOTATORS = st.sampled_from("ab"), st.sampled_from("xyz")
VALUES = st.none() | st.sampled_from(["keep", "drop"]) | st.integers(1, 5)
ANSWERS = st.builds(
    Annotation, st.just("r"), ITEMS, ANNOTATORS, st.sampled_from(["keep", "quality"]), VALUES, st.just("2026")
)


def made(item: str, annotator: str, question: str, value: object) -> Annotation:
    return read_record(
        Annotation,
        {
            "round": "r",
            "item": item,
            "annotator": annotator,
            "question": question,
            "value": value,
            "when": "2026",
        },
        "a:1",
    )


@pytest.mark.parametrize("value", ["keep", 4, ["a", "b"], [], None])
def test_annotations_as_json(value: object) -> None:
    answer = made("a", "x", "q", value)
    assert read_record(Annotation, answer.to_dict(), "a:1") == answer
    assert list(answer.to_dict()) == ["round", "item", "annotator", "question", "value", "when"]


@pytest.mark.parametrize("value", [True, 1.5, {"a": 1}, [1]])
def test_invalid_values(value: object) -> None:
    with pytest.raises(DataError, match=r"value(\.1)?: must be text"):
        made("a", "x", "q", value)


def test_latest_annotations() -> None:
    lines = [made("a", "x", "keep", "keep"), made("a", "y", "keep", "keep"), made("a", "x", "keep", "drop")]
    assert [answer.value for answer in latest(lines).values()] == ["drop", "keep"]
    assert latest([*lines, made("a", "x", "keep", None)]).keys() == {("a", "y", "keep")}


@given(st.lists(ANSWERS), st.lists(ANSWERS))
def test_storing_changes_gives_what_the_platform_holds(stored: list[Annotation], seen: list[Annotation]) -> None:
    known = {answer.key: answer for answer in stored}
    counted = latest(stored)
    new = changes(known, seen)
    after = latest([*stored, *new])
    now = {answer.key: answer for answer in seen}
    assert {key: a.value for key, a in after.items() if key in now} == {
        key: a.value for key, a in now.items() if a.value is not None
    }
    assert {key: a for key, a in after.items() if key not in now} == {
        key: a for key, a in counted.items() if key not in now
    }
    assert changes({answer.key: answer for answer in [*stored, *new]}, seen) == []


def test_skipped_items_that_are_annotated_later() -> None:
    both = latest([made("a", "x", "skipped", "yes"), made("b", "x", "skipped", "yes"), made("b", "x", "keep", "keep")])
    assert skips(both) == {("a", "x")}
