"""Statistics of annotators: agreement with others, gold accuracy, speed, CSV; and warnings, with numbers."""

from __future__ import annotations

import csv
import io
import random

import pytest

from h2htalk.data.scenario import Turn
from h2htalk.rounds.aggregation.annotator_statistics import (
    HEADINGS,
    AnnotatorStatistics,
    Share,
    annotator_statistics,
    qualified,
    statistics_csv,
)
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, SKIPPED, Kind, Value

CROWD = QUESTIONS["crowd"]
# 987 characters: a minute's reading in English, 20 s at three times that speed.
ITEMS = [Item(f"i{n}", "en", (Turn("user", "x" * 900),), response="y" * 87) for n in range(60)]


def item(number: int, **gold: Value) -> Item:
    return Item(f"i{number}", "en", (Turn("user", "word " * 100),), gold=gold)


def at(second: float) -> str:
    return f"2026-01-05T{int(second) // 3600:02}:{int(second) // 60 % 60:02}:{int(second) % 60:02}+00:00"


def answer(annotator: str, number: int, question: str, value: Value | None, when: str = at(0)) -> Annotation:
    return Annotation("r", f"i{number}", annotator, question, value, when)


def keeps(annotator: str, words: str) -> list[Annotation]:
    """An annotator's answers to `keep`: k for keep, d for drop, a dot for none, by item."""
    said = {"k": "keep", "d": "drop"}
    return [answer(annotator, n, "keep", said[word]) for n, word in enumerate(words) if word != "."]


def timed(seconds: list[float], question: str = "keep", value: Value = "keep") -> AnnotatorStatistics:
    """Statistics of an annotator who answers consecutive items with these times between them."""
    answers = [answer("a", n, question, value, at(sum(seconds[:n]))) for n in range(len(seconds) + 1)]
    return annotator_statistics(ITEMS, CROWD, answers, ["a"])[0]


def answered(kind: Kind, sheets: dict[str, list[dict[str, Value]]]) -> dict[str, AnnotatorStatistics]:
    """Statistics of annotators with these values by item, all at one time."""
    answers = [
        answer(annotator, n, question, value)
        for annotator, items in sheets.items()
        for n, given in enumerate(items)
        for question, value in given.items()
    ]
    return {one.annotator: one for one in annotator_statistics(ITEMS, QUESTIONS[kind], answers, sheets)}


def kept(*drops: int, of: int = 60) -> list[dict[str, Value]]:
    """Answers to `keep`: drop for some items, keep for the others."""
    return [{"keep": "drop" if n in drops else "keep"} for n in range(of)]


def test_consensus_gold_and_skips() -> None:
    answers = [*keeps("a", "kkkk."), *keeps("b", "kkd.d"), *keeps("c", "kdd..")]
    answers += [answer(name, 0, "quality", 3) for name in "abc"]  # no label
    by = {one.annotator: one for one in annotator_statistics([item(n) for n in range(5)], CROWD, answers, "abc")}
    # a: k as the others, (k, d: tied, out), k against d d, alone (out).
    assert (by["a"].consensus, by["a"].annotated) == (Share(1, 2), 4)
    assert (by["b"].consensus, by["c"].consensus) == (Share(1, 1), Share(1, 2))
    assert Share(3, 3).interval == pytest.approx((0.4385, 1.0), abs=1e-4)
    # Gold accepts ratings within one step, and several labels in any order.
    items = [item(0, keep="keep", quality=4), item(1, keep="drop"), item(2)]
    answers = [*keeps("a", "kkk"), answer("a", 0, "quality", 3), *keeps("b", "dd."), answer("b", 0, "quality", 2)]
    figures = annotator_statistics(items, CROWD, [*answers, *keeps("c", "..k")], "abc")
    assert [one.gold for one in figures] == [Share(2, 3), Share(1, 3), None]
    items = [item(0, violations=("boundary", "privacy"), comment="none")]
    answers = [answer("a", 0, "violations", ("privacy", "boundary")), answer("b", 0, "violations", ("privacy",))]
    figures = annotator_statistics(items, QUESTIONS["safety"], [*answers, answer("a", 0, "comment", "none")], "ab")
    assert [one.gold for one in figures] == [Share(1, 1), Share(0, 1)]
    # Annotated and skipped items.
    answers = [*keeps("a", "k.k"), answer("a", 1, SKIPPED, "yes"), answer("b", 0, SKIPPED, "yes"), *keeps("b", "k")]
    figures = annotator_statistics([item(n) for n in range(3)], CROWD, answers, ["b", "nobody", "a"])
    found = [(one.annotator, one.annotated, one.skipped) for one in figures]
    assert found == [("b", 1, 0), ("nobody", 0, 0), ("a", 2, 1)]
    assert figures[1] == AnnotatorStatistics("nobody", 0, 0, None, None, None)


def test_statistics_as_csv_and_who_qualifies() -> None:
    items = [*(item(n, keep="keep") for n in range(5)), item(5)]
    answers = [*keeps("a", "kkkkdk"), *keeps("b", "kddddk"), *keeps("c", "kkkk..")]
    figures = annotator_statistics(items, CROWD, answers, ["a", "b", "c", "=none"])
    assert qualified(figures, 0.7) == {"a": True, "b": False, "c": None, "=none": None}
    text = statistics_csv(figures, 0.7)
    assert text.splitlines()[0] == ",".join(HEADINGS)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["qualified"] for row in rows] == ["yes", "no", "too few gold answers: 4 of at least 5", ""]
    assert (rows[0]["gold accuracy"], rows[0]["gold answers"], rows[0]["votes compared"]) == ("0.8", "5", "3")
    assert (rows[3]["annotator"], rows[3]["items annotated"]) == ("'=none", "0")


@pytest.mark.parametrize(
    ("gaps", "seconds"),
    [
        ([30.0] * 7 + [4000.0] + [50.0] * 6, 30),  # without the break
        ([0.0] * 30, None),  # collected from a spreadsheet at one time
        ([0.0] * 20 + [30.0] * 12, None),  # and at a few other times
        ([30.0] * 9, None),  # too few
        ([700.0] * 30, None),  # a break after each
    ],
)
def test_seconds_per_item(gaps: list[float], seconds: float | None) -> None:
    assert (timed(gaps).seconds, timed(gaps).warnings) == (seconds, ())


def test_warnings_of_haste() -> None:
    answers = [answer("a", n, "keep", "keep", at(30 * n)) for n in range(13)]
    answers += [answer("a", 3, "quality", 4, at(5000))]
    assert annotator_statistics(ITEMS, CROWD, answers, "a")[0].seconds == 30
    (warning,) = timed([4.0] * 12 + [40.0] * 8).warnings
    assert warning.startswith("too fast: 12 of 20 timed items were answered faster than they can be read")
    assert timed([4.0] * 9 + [40.0] * 11).warnings == ()
    assert timed([2.0] * 20, SKIPPED, "yes").warnings == ()


def test_agreement_is_no_warning_where_it_says_nothing() -> None:
    """`keep is keep on 401 of 472 items` was a warning, though the annotator dropped the right ones."""
    bad = range(0, 60, 6)
    others = {name: kept(*bad, *range(1 + n, 60, 4)) for n, name in enumerate("bcd")}
    assert answered("crowd", {"a": kept(*bad), **others})["a"].warnings == ()
    # Ratings are compared by their distance.
    near: list[dict[str, Value]] = [{"quality": 1 + n % 5} for n in range(60)]
    off: list[dict[str, Value]] = [{"quality": min(5, 2 + n % 5)} for n in range(60)]
    found = answered("crowd", {"a": [{"quality": 3}] * 60, "b": near, "c": near, "d": off})
    assert [bool(found[name].warnings) for name in "abcd"] == [True, False, False, False]
    # No warning of agreement where it cannot be known.
    varied: list[dict[str, Value]] = [{"quality": 1 + n % 5} for n in range(9)]
    assert answered("crowd", {"a": [{"quality": 3}] * 9, "b": varied, "c": varied})["a"].warnings == ()
    assert answered("crowd", {"a": [{"quality": 3}] * 40})["a"].warnings == ()
    disagreeing = {name: kept(*random.Random(name).sample(range(60), 30)) for name in "abc"}
    assert [one.warnings for one in answered("crowd", disagreeing).values()] == [()] * 3


@pytest.mark.parametrize("habit", ["keep", "random"])
def test_agreement_hardly_above_chance(habit: str) -> None:
    """The share of one label did not show who answers at random."""
    draw, bad = random.Random(0), range(0, 60, 3)
    drops = {"keep": (), "random": draw.sample(range(60), 30)}[habit]
    found = answered("crowd", {"a": kept(*drops), **{name: kept(*bad, n) for n, name in enumerate("bcde", 1)}})
    (warning,) = found["a"].warnings
    assert warning.startswith("slight agreement: on 60 items, keep agrees with the other annotators hardly above")
    assert "that of the others among themselves is 0." in warning
    assert [found[name].warnings for name in "bcde"] == [()] * 4


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
