"""Statistics of annotators: agreement with others, gold accuracy, intervals, and CSV."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence

import pytest

from h2htalk.data.scenario import Turn
from h2htalk.rounds.aggregation.annotator_statistics import (
    HEADINGS,
    Share,
    annotator_statistics,
    qualified,
    statistics_csv,
)
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, SKIPPED, Value

CROWD, EXPERT = QUESTIONS["crowd"], QUESTIONS["expert"]


def item(number: int, **gold: Value) -> Item:
    return Item(f"i{number}", "en", (Turn("user", "word " * 100),), gold=gold)


def answer(
    annotator: str, number: int, question: str, value: Value | None, when: str = "2026-01-05T10:00:00+00:00"
) -> Annotation:
    return Annotation("r", f"i{number}", annotator, question, value, when)


def keeps(annotator: str, words: str) -> list[Annotation]:
    """An annotator's answers to `keep`: k for keep, d for drop, a dot for none, by item."""
    said = {"k": "keep", "d": "drop"}
    return [answer(annotator, n, "keep", said[word]) for n, word in enumerate(words) if word != "."]


# --- Shares -----------------------------------------------------------------------------------------------------------


def test_interval_of_three_right_answers_of_three() -> None:
    assert Share(3, 3).interval == pytest.approx((0.4385, 1.0), abs=1e-4)


# --- Consensus of the others ------------------------------------------------------------------------------------------


def test_consensus_excludes_the_annotator_s_own_vote() -> None:
    items = [item(n) for n in range(5)]
    answers = [
        *keeps("a", "kkkk."),
        *keeps("b", "kkd.d"),
        *keeps("c", "kdd.."),
    ]
    by = {one.annotator: one for one in annotator_statistics(items, CROWD, answers, "abc")}
    # a: with the others' k, (k, d: tied, out), d against k, alone (out).
    assert (by["a"].consensus, by["a"].annotated) == (Share(1, 2), 4)
    # b: k, (k, d: out), d against k (a) and d (c): tied, out; item 4 alone, out.
    assert by["b"].consensus == Share(1, 1)
    # c: k, d against k k, item 2: k (a) against d (b): tied, out.
    assert by["c"].consensus == Share(1, 2)


def test_consensus_counts_label_questions_only() -> None:
    answers = [
        answer(annotator, 0, question, value)
        for annotator in "abc"
        for question, value in (("keep", "keep"), ("subtask", "none"), ("quality", 3))
    ]
    assert [one.consensus for one in annotator_statistics([item(0)], CROWD, answers, "abc")] == [Share(2, 2)] * 3


def test_skill_estimates_the_accuracy() -> None:
    rng = random.Random(0)
    truth = [rng.choice("kd") for _ in range(200)]
    chances = {"a": 0.9, "b": 0.9, "c": 0.8, "d": 0.5}
    answers = []
    for annotator, chance in chances.items():
        words = "".join(word if rng.random() < chance else "kd"[word == "k"] for word in truth)
        answers += keeps(annotator, words)
    figures = annotator_statistics([item(n) for n in range(200)], CROWD, answers, "abcd")
    assert [one.skill for one in figures] == pytest.approx([0.9, 0.9, 0.8, 0.5], abs=0.08)


# --- Gold -------------------------------------------------------------------------------------------------------------


def test_gold_accepts_ratings_within_one_step() -> None:
    items = [item(0, keep="keep", quality=4), item(1, keep="drop"), item(2)]
    answers = [
        *keeps("a", "kkk"),
        answer("a", 0, "quality", 3),
        *keeps("b", "dd."),
        answer("b", 0, "quality", 2),
        *keeps("c", "..k"),
    ]
    figures = annotator_statistics(items, CROWD, answers, "abc")
    assert [one.gold for one in figures] == [Share(2, 3), Share(1, 3), None]


def test_qualification_needs_five_gold_answers() -> None:
    items = [item(n, keep="keep") for n in range(6)]
    answers = [*keeps("a", "kkkkd."), *keeps("b", "kdddd."), *keeps("c", "kkkk..")]
    figures = annotator_statistics(items, CROWD, answers, "abcd")
    assert qualified(figures, 0.7) == {"a": True, "b": False, "c": None, "d": None}
    assert qualified(figures, 0.8)["a"] is True
    cells = [row["qualified"] for row in rows(statistics_csv(figures, 0.7))]
    assert cells == ["yes", "no", "too few gold answers: 4 of at least 5", ""]


def test_gold_of_several_labels_and_of_comments() -> None:
    items = [item(0, violations=("boundary", "privacy"), comment="none")]
    answers = [
        answer("a", 0, "violations", ("privacy", "boundary")),
        answer("a", 0, "comment", "none"),
        answer("b", 0, "violations", ("privacy",)),
    ]
    figures = annotator_statistics(items, QUESTIONS["safety"], answers, "ab")
    assert [one.gold for one in figures] == [Share(1, 1), Share(0, 1)]


# --- All of it --------------------------------------------------------------------------------------------------------


def test_annotated_and_skipped_items() -> None:
    answers = [
        *keeps("a", "k.k"),
        answer("a", 1, SKIPPED, "yes"),
        answer("b", 0, SKIPPED, "yes"),
        *keeps("b", "k"),  # annotated after the skip
    ]
    figures = annotator_statistics([item(n) for n in range(3)], CROWD, answers, ["b", "nobody", "a"])
    assert [(one.annotator, one.annotated, one.skipped) for one in figures] == [
        ("b", 1, 0),
        ("nobody", 0, 0),
        ("a", 2, 1),
    ]
    assert (figures[1].consensus, figures[1].gold, figures[1].skill, figures[1].seconds) == (None,) * 4
    assert figures[1].warnings == ()


def test_order_of_annotations_does_not_matter() -> None:
    rng = random.Random(1)
    items = [item(n, keep="keep") for n in range(12)]
    answers = [
        answer(
            annotator,
            n,
            question.name,
            rng.choice(question.labels or question.ratings),
            f"2026-01-05T10:{n:02}:00Z",
        )
        for annotator in "abcd"
        for n in range(12)
        for question in EXPERT
        if question.form != "text"
    ]
    first = annotator_statistics(items, EXPERT, answers, "abcd")
    rng.shuffle(answers)
    assert annotator_statistics(items[::-1], EXPERT, answers, "abcd") == first
    assert first[0].seconds == 60


def rows(text: str) -> Sequence[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_statistics_as_csv() -> None:
    items = [*(item(n, keep="keep") for n in (0, 2, 3, 4, 5)), item(1)]
    answers = [*keeps("a", "kkkkkk"), *keeps("b", "dkdddd")]
    text = statistics_csv(annotator_statistics(items, CROWD, answers, ["a", "b", "=none"]), 0.7)
    assert text.splitlines()[0] == ",".join(HEADINGS)
    one, two, none = rows(text)
    assert (one["annotator"], one["agreement with majority"], one["votes compared"], one["qualified"]) == (
        "a",
        "0.1667",
        "6",
        "yes",
    )
    assert (two["gold accuracy"], two["gold answers"], two["qualified"]) == ("0.0", "5", "no")
    assert (none["annotator"], none["items annotated"], none["qualified"], none["dawid-skene accuracy"]) == (
        "'=none",
        "0",
        "",
        "",
    )
