"""Decisions from annotations, means of ratings and their intervals."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.data.scenario import Turn
from h2htalk.rounds.aggregation.decisions import Decision, completed_items, decide, mean_of
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, Question, Value

KEEP = QUESTIONS["crowd"][1]


def item(name: str, **fields: object) -> Item:
    return Item(name, "en", (Turn("user", "hi"),), **fields)  # type: ignore[arg-type]


def said(question: str, votes: Mapping[str, Sequence[Value]]) -> list[Annotation]:
    """Annotations of annotators v0, v1, ... on each item."""
    return [
        Annotation("r", name, f"v{n}", question, value, "t")
        for name, values in votes.items()
        for n, value in enumerate(values)
    ]


def by_item(settled: Sequence[Decision]) -> dict[str, Decision]:
    return {one.item: one for one in settled}


def decided(votes: Mapping[str, Sequence[Value]], *given: float) -> dict[str, Decision]:
    """Decisions on `keep` with an overlap of two; `given`: the threshold of Dawid-Skene."""
    return by_item(decide([item(name) for name in votes], [KEEP], said("keep", votes), 2, *given))


def test_rules_of_decisions() -> None:
    votes: dict[str, list[Value]] = {
        "broken": ["keep", "drop", "drop"], "clear": ["drop"] * 3, "short": ["drop"], "tied": ["keep", "drop"],
    }  # fmt: skip
    found = {name: (one.label, one.rule) for name, one in decided(votes).items()}
    assert found == {
        "broken": ("drop", "one more annotation"), "clear": ("drop", "majority"), "short": ("drop", "majority"),
        "tied": (None, "tie"),
    }  # fmt: skip
    found = decide([item("a")], QUESTIONS["crowd"], [], 2)
    assert [(one.label, one.support, one.rule) for one in found] == [(None, 0, "no annotations")] * 3
    # Several labels need more than half of the annotators.
    several = QUESTIONS["safety"][2]
    answers = said(several.name, {"a": [("privacy",), ("privacy", "sexual"), ("boundary",)]})
    one = decide([item("a")], [several], answers, 2)[0]
    assert (one.label, one.support, one.votes) == (("privacy",), 2, 3)
    assert decide([item("a")], [several], [], 2) == []  # nobody chose
    half = decide([item("a")], [several], said(several.name, {"a": [("privacy",), ("boundary",)]}), 2)[0]
    assert (half.label, half.support, half.votes) == ((), 0, 2)
    # Gold items are not decided.
    items = [item("a"), item("g", gold={"keep": "keep"})]
    found = decide(items, [KEEP], said("keep", {"a": ["keep"], "g": ["drop"]}), 2)
    assert [one.item for one in found] == ["a"]
    # Completed items have conditionally required answers.
    items, asked = [item("a")], QUESTIONS["safety"]
    answers = [*said("perception", {"a": [2, 4, 3]}), *said("violation", {"a": ["yes", "no", "yes"]})]
    found = {answer.key: answer for answer in answers}
    assert completed_items(items, asked, found) == {"a": {"v1"}}
    found |= {answer.key: answer for answer in said("violations", {"a": [("privacy",)]})}
    assert completed_items(items, asked, found) == {"a": {"v0", "v1"}}


def informed() -> dict[str, list[Value]]:
    """v0 and v1 are right on 95 of 100 items, v2 and v3 on 55, four more on 80."""
    draw, votes = random.Random(5), {}
    for n in range(200):
        right, wrong = (("keep", "drop"), ("drop", "keep"))[n % 2]
        skills = (0.95, 0.95, 0.55, 0.55, 0.8, 0.8, 0.8, 0.8)
        votes[f"x{n}"] = [right if draw.random() < skill else wrong for skill in skills]
    return votes | {"tied": ["keep", "keep", "drop", "drop"]}


def test_dawid_skene_decides_ties_only() -> None:
    tie = decided(informed())["tied"]
    assert (tie.label, tie.rule, tie.tied, tie.dawid_skene) == (None, "tie", ("drop", "keep"), "keep")
    assert tie.posterior is not None
    assert tie.posterior > 0.95
    settled = decided(informed(), 0.95)["tied"]
    assert (settled.label, settled.rule, settled.tied, settled.support) == ("keep", "dawid_skene", (), 2)
    assert settled.posterior == tie.posterior
    assert decided(informed(), 1.0)["tied"] == tie
    # Dawid-Skene chooses tied labels only.
    question = Question("q", "label", ("a", "b", "c"))
    votes: dict[str, Sequence[Value]] = {f"x{n}": ["a", "a", "b", "b", "c"] for n in range(30)}
    votes |= {f"y{n}": ["c"] * 5 for n in range(30)}
    answers = said("q", votes)
    for one in decide([item(name) for name in votes], [question], answers, 5, 0.5):
        assert one.label in ("a", "b", None) if one.item.startswith("x") else one.label == "c"
    # v0 to v2 guess, v3 and v4 are always right, so the model follows these two.
    draw = random.Random(0)
    keep: dict[str, list[Value]] = {f"x{n}": [draw.choice(KEEP.labels) for _ in "abc"] for n in range(200)}
    for n in range(200):
        keep[f"x{n}"] += [KEEP.labels[n % 2]] * 2
    one = decided(keep | {"a": ["keep", "keep", "keep", "drop", "drop"]}, 0.5)["a"]
    assert (one.label, one.rule, one.dawid_skene) == ("keep", "one more annotation", "drop")


FIVE = (1, 5)


@pytest.mark.parametrize(
    ("values", "half"),
    [
        ([48, 49], 12.7062047 * math.sqrt(0.5) / math.sqrt(2)),
        ([48, 49, 50], 4.3026527 / math.sqrt(3)),
        ([48, 48, 52, 52], 3.1824463 * statistics.stdev([1, 1, 5, 5]) / 2),
    ],
)
def test_student_interval(values: list[int], half: float) -> None:
    mean, interval = mean_of(values, (0, 100))
    assert mean == statistics.fmean(values)
    assert interval == pytest.approx((mean - half, mean + half), abs=1e-4)


def test_one_rating_and_equal_ratings() -> None:
    assert mean_of([4], FIVE) == (4.0, None)
    assert mean_of([4, 5], FIVE)[1] == FIVE
    low, high = mean_of([5, 5, 5], FIVE)[1] or (0, 0)
    assert (low, high) == (pytest.approx(5 - 4 * (1 - 0.05 ** (1 / 3)), abs=1e-4), 5)
    assert low < 3 < (mean_of([5] * 20, FIVE)[1] or (0, 0))[0] < 5


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_interval_contains_the_mean(values: list[int], rng: random.Random) -> None:
    mean, interval = mean_of(values, FIVE)
    rng.shuffle(values)
    assert mean_of(values, FIVE) == (mean, interval)
    if interval is not None:
        assert 1 <= interval[0] <= mean + 1e-4
        assert mean - 1e-4 <= interval[1] <= 5
        assert interval[0] < interval[1]
