"""Warnings about annotators: with numbers, and only for improbable differences."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from h2htalk.rounds.aggregation.annotator_warnings import answers_by_annotator, min_reading_seconds, seconds_per_item

from h2htalk.data.scenario import Turn
from h2htalk.rounds.aggregation.annotator_statistics import AnnotatorStatistics, annotator_statistics
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, SKIPPED, Kind, Value

# 987 characters: a minute's reading in English, 20 s at three times that speed.
ITEMS = [Item(f"i{n:02}", "en", (Turn("user", "x" * 900),), response="y" * 87) for n in range(60)]


def at(second: float) -> str:
    return f"2026-01-05T{int(second) // 3600:02}:{int(second) // 60 % 60:02}:{int(second) % 60:02}+00:00"


def timed(seconds: list[float], question: str = "keep", value: Value = "keep") -> list[Annotation]:
    """Annotations of annotator `a` on consecutive items, with these times between them."""
    total, answers = 0.0, []
    for number, gap in enumerate([0, *seconds]):
        total += gap
        answers.append(Annotation("r", f"i{number:02}", "a", question, value, at(total)))
    return answers


def answered(kind: Kind, sheets: dict[str, list[dict[str, Value]]]) -> dict[str, AnnotatorStatistics]:
    """Statistics of annotators with these values by item, all at one time."""
    answers = [
        Annotation("r", f"i{n:02}", annotator, question, value, at(0))
        for annotator, items in sheets.items()
        for n, given in enumerate(items)
        for question, value in given.items()
    ]
    return {one.annotator: one for one in annotator_statistics(ITEMS, QUESTIONS[kind], answers, sheets)}


def test_right_gold_answers_are_no_habit() -> None:
    """In a pilot, annotators with only right answers got a warning."""
    golden = [Item(f"i{n:02}", "en", (Turn("user", "x"),), gold={"keep": "drop"}) for n in range(12)]
    sheets = {"a": ["drop"] * 12, "b": ["keep"] * 12, "c": ["keep", "drop"] * 6}
    answers = [
        Annotation("r", f"i{n:02}", annotator, "keep", said, at(0))
        for annotator, all_ in sheets.items()
        for n, said in enumerate(all_)
    ]
    warned = {one.annotator: one.warnings for one in annotator_statistics(golden, QUESTIONS["crowd"], answers, sheets)}
    assert warned["a"] == ()
    assert any("same answer: keep is keep on 12 of 12" in line for line in warned["b"])
    plain = [replace(item, gold={}) for item in golden]
    again = {one.annotator: one.warnings for one in annotator_statistics(plain, QUESTIONS["crowd"], answers, sheets)}
    assert any("same answer: keep is drop on 12 of 12" in line for line in again["a"])


# --- Pace -------------------------------------------------------------------------------------------------------------


def test_reading_time_depends_on_the_text() -> None:
    assert min_reading_seconds(ITEMS[0]) == pytest.approx(20)
    assert min_reading_seconds(Item("z", "zh", (Turn("user", "好" * 255),))) == pytest.approx(20)


def test_seconds_per_item_exclude_breaks() -> None:
    (figure,) = annotator_statistics(ITEMS, QUESTIONS["crowd"], timed([30.0] * 7 + [4000.0] + [50.0] * 6), ["a"])
    assert figure.seconds == 30
    assert figure.warnings == ()


@pytest.mark.parametrize(
    "gaps",
    [
        [0.0] * 30,  # collected from a spreadsheet at one time
        [0.0] * 20 + [30.0] * 12,  # and at a few other times
        [30.0] * 9,  # too few
        [700.0] * 30,  # a break after each
        [],
    ],
)
def test_no_speed_without_usable_times(gaps: list[float]) -> None:
    (figure,) = annotator_statistics(ITEMS, QUESTIONS["crowd"], timed(gaps), ["a"])
    assert figure.seconds is None
    assert not any("fast" in warning for warning in figure.warnings)


def test_warning_too_fast() -> None:
    (figure,) = annotator_statistics(ITEMS, QUESTIONS["crowd"], timed([4.0] * 12 + [40.0] * 8), ["a"])
    (warning,) = figure.warnings
    assert warning == (
        "too fast: 12 of 20 timed items were answered faster than they can be read (median 4 s; reading at 3 times "
        "the usual speed takes 20 s)"
    )


def test_no_warning_for_some_fast_answers_or_short_texts() -> None:
    assert annotator_statistics(ITEMS, QUESTIONS["crowd"], timed([4.0] * 9 + [40.0] * 11), ["a"])[0].warnings == ()
    short = [Item(one.id, "en", (Turn("user", "hello"),)) for one in ITEMS]
    assert annotator_statistics(short, QUESTIONS["crowd"], timed([4.0] * 20), ["a"])[0].warnings == ()


def test_no_warning_for_fast_skips() -> None:
    assert annotator_statistics(ITEMS, QUESTIONS["crowd"], timed([2.0] * 20, SKIPPED, "yes"), ["a"])[0].warnings == ()


def test_later_changes_and_invalid_times_are_ignored() -> None:
    answers = timed([30.0] * 12)
    later = Annotation("r", "i03", "a", "quality", 4, at(5000))
    broken = Annotation("r", "i20", "a", "keep", "keep", "yesterday")
    naive = Annotation("r", "i13", "a", "keep", "keep", at(390).removesuffix("+00:00"))
    (sheet,) = answers_by_annotator([*answers, later, broken, naive]).values()
    assert set(seconds_per_item(sheet).values()) == {30.0}
    assert len(seconds_per_item(sheet)) == 13


# --- Habits -----------------------------------------------------------------------------------------------------------


def test_warning_same_answer() -> None:
    rng = random.Random(0)
    others: dict[str, list[dict[str, Value]]] = {
        annotator: [{"quality": rng.choice([2, 3, 4, 5])} for _ in range(20)] for annotator in "bcd"
    }
    found = answered("crowd", {"a": [{"quality": 3}] * 18 + [{"quality": 4}] * 2, **others})
    (warning,) = found["a"].warnings
    assert warning.startswith("same answer: quality is 3 on 18 of 20 items, other annotators on ")
    assert "probability " in warning
    assert [found[annotator].warnings for annotator in "bcd"] == [()] * 3


def test_no_warning_for_a_label_that_others_give_too() -> None:
    mostly: list[dict[str, Value]] = [{"keep": "keep"}] * 19 + [{"keep": "drop"}]
    found = answered("crowd", {"a": [{"keep": "keep"}] * 20, "b": mostly, "c": mostly})
    assert [one.warnings for one in found.values()] == [()] * 3


def test_no_warning_without_enough_answers() -> None:
    varied: list[dict[str, Value]] = [{"quality": 1 + n % 5} for n in range(9)]
    assert answered("crowd", {"a": [{"quality": 3}] * 9, "b": varied})["a"].warnings == ()
    assert answered("crowd", {"a": [{"quality": 3}] * 40})["a"].warnings == ()


def test_warning_straight_lining() -> None:
    rng = random.Random(0)
    names = ("accuracy", "consistency", "domain_compliance")
    lines: list[dict[str, Value]] = [dict.fromkeys(names, 2 + n % 4) for n in range(24)]
    varied: dict[str, list[dict[str, Value]]] = {
        annotator: [{name: rng.randint(2, 5) for name in names} for _ in range(24)] for annotator in "bc"
    }
    found = answered("expert", {"a": lines, **varied})
    (warning,) = found["a"].warnings
    assert warning.startswith("straight-lining: all 3 ratings are equal on 24 of 24 items, other annotators on ")
    assert [found[annotator].warnings for annotator in "bc"] == [(), ()]
