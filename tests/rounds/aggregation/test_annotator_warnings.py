"""Warnings about annotators: with numbers, and only for improbable differences."""

from __future__ import annotations

import random

import pytest

from h2htalk.data.scenario import Turn
from h2htalk.rounds.aggregation.annotator_statistics import (
    AnnotatorStatistics,
    annotator_statistics,
    answers_by_annotator,
    min_reading_seconds,
    seconds_per_item,
)
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
    _, times = answers_by_annotator([*answers, later, broken, naive])
    assert list(seconds_per_item(times["a"]).values()) == [30.0] * 13


# --- Agreement above chance, and habits ---------------------------------------------------------------------------


def kept(*drops: int, of: int = 60) -> list[dict[str, Value]]:
    """Answers to `keep`: drop for some items, keep for the others."""
    return [{"keep": "drop" if n in drops else "keep"} for n in range(of)]


def test_the_best_annotator_who_keeps_nearly_everything_is_not_warned_of() -> None:
    """`keep is keep on 401 of 472 items` was a warning, though the annotator dropped the right ones."""
    bad = range(0, 60, 6)
    others = {name: kept(*bad, *range(1 + at, 60, 4)) for at, name in enumerate("bcd")}
    assert answered("crowd", {"a": kept(*bad), **others})["a"].warnings == ()


@pytest.mark.parametrize("habit", ["keep", "drop", "random"])
def test_agreement_hardly_above_chance(habit: str) -> None:
    """The share of one label did not show who answers at random."""
    draw, bad = random.Random(0), range(0, 60, 3)
    drops = {"keep": (), "drop": range(60), "random": draw.sample(range(60), 30)}[habit]
    others = {name: kept(*bad, at) for at, name in enumerate("bcde", 1)}
    found = answered("crowd", {"a": kept(*drops), **others})
    (warning,) = found["a"].warnings
    assert warning.startswith("slight agreement: on 60 items, keep agrees with the other annotators hardly above")
    assert "that of the others among themselves is 0." in warning
    assert [found[name].warnings for name in "bcde"] == [()] * 4


def test_ratings_are_compared_by_their_distance() -> None:
    near: list[dict[str, Value]] = [{"quality": 1 + n % 5} for n in range(60)]
    off: list[dict[str, Value]] = [{"quality": min(5, 2 + n % 5)} for n in range(60)]
    found = answered("crowd", {"a": [{"quality": 3}] * 60, "b": near, "c": near, "d": off})
    assert [bool(found[name].warnings) for name in "abcd"] == [True, False, False, False]


def test_no_warning_of_agreement_where_it_cannot_be_known() -> None:
    varied: list[dict[str, Value]] = [{"quality": 1 + n % 5} for n in range(9)]
    assert answered("crowd", {"a": [{"quality": 3}] * 9, "b": varied, "c": varied})["a"].warnings == ()
    assert answered("crowd", {"a": [{"quality": 3}] * 40})["a"].warnings == ()
    assert answered("crowd", {name: kept() for name in "abc"})["a"].warnings == ()
    disagreeing = {name: kept(*random.Random(name).sample(range(60), 30)) for name in "abc"}
    assert [one.warnings for one in answered("crowd", disagreeing).values()] == [()] * 3


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
