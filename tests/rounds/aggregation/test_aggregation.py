"""Votes, agreement, decisions, statistics of annotators: published values, ties, intervals, any names and order."""

from __future__ import annotations

import csv
import io
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.data.scenario import Turn
from h2htalk.errors import RoundError
from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.annotator_statistics import (
    HEADINGS,
    AnnotatorStatistics,
    Share,
    annotator_statistics,
    qualified,
    statistics_csv,
)
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.decisions import Decision, completed_items, decide, mean_of
from h2htalk.rounds.aggregation.votes import Vote, VoteResult, majority
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, SKIPPED, Kind, Level, Question, Value
from support.votes import public_votes, vote_lists, votes_of

ITERATIONS = st.sampled_from([20, None])


@settings(deadline=None)
@given(vote_lists())
def test_majority_equals_a_count(votes: list[Vote]) -> None:
    decisions = majority(votes)
    assert set(decisions) == {vote.item for vote in votes}
    for item, decision in decisions.items():
        labels = [vote.label for vote in votes if vote.item == item]
        leading = sorted(
            {label for label in labels if labels.count(label) == max(map(labels.count, labels))}
        )
        assert [decision.label] == leading if len(leading) == 1 else list(decision.tied) == leading
        shares = {label: labels.count(label) / len(labels) for label in labels}
        assert (decision.support, decision.votes) == (labels.count(leading[0]), len(labels))
        assert decision.posterior == pytest.approx(shares[leading[0]])
        assert {
            label: share for label, share in decision.chances.items() if share
        } == pytest.approx(shares)


def plain_dawid_skene(votes: list[Vote], rounds: int) -> dict[str, dict[str, float]]:
    """The published recipe with dictionaries and loops: item -> label -> probability."""
    labels = sorted({vote.label for vote in votes})
    items = sorted({vote.item for vote in votes})
    annotators = sorted({vote.annotator for vote in votes})
    begin = {(k, l): 0.7 if k == l else 0.3 / (len(labels) - 1) for k in labels for l in labels}  # noqa: E741
    conf = {(v, k, l): begin[k, l] for v in annotators for k, l in begin}  # noqa: E741
    prior = {k: 1 / len(labels) for k in labels}
    chance: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for i in items:
            said = [(vote.annotator, vote.label) for vote in votes if vote.item == i]
            product = {k: prior[k] * math.prod(conf[v, k, l] for v, l in said) for k in labels}  # noqa: E741
            chance[i] = {k: product[k] / sum(product.values()) for k in labels}
        prior = {k: sum(chance[i][k] for i in items) / len(items) for k in labels}
        for v in annotators:
            theirs = [vote for vote in votes if vote.annotator == v]
            for k in labels:
                met = sum(chance[vote.item][k] for vote in theirs)
                for l in labels:  # noqa: E741
                    heard = sum(chance[vote.item][k] for vote in theirs if vote.label == l)
                    conf[v, k, l] = heard / met if met else begin[k, l]
    return chance


@settings(deadline=None)
@given(vote_lists(), st.integers(1, 8))
def test_chances_equal_those_of_a_plain_implementation(votes: list[Vote], rounds: int) -> None:
    if len({vote.label for vote in votes}) < 2:
        return
    decisions = dawid_skene(votes, iterations=rounds)
    for item, chances in plain_dawid_skene(votes, rounds).items():
        assert dict(decisions[item].chances) == pytest.approx(chances, abs=1e-9)


@given(vote_lists(labels="ab"), ITERATIONS)
def test_ties_do_not_depend_on_rounding_errors(votes: list[Vote], iterations: int | None) -> None:
    # Every vote has a mirror image: neighbouring annotators and the labels are exchanged on a mirrored item. Then
    # the two annotators of the tie are equivalent, but iterations would magnify the rounding errors of inexact sums.
    partner = {f"v{at}": f"v{at ^ 1}" for at in range(8)}
    flip = {"a": "b", "b": "a"}
    mirrored = [Vote(f"z{vote.item}", partner[vote.annotator], flip[vote.label]) for vote in votes]
    tie = [Vote("m", "v0", "a"), Vote("m", "v1", "b")]
    decision = dawid_skene([*votes, *mirrored, *tie], iterations=iterations)["m"]
    assert (decision.label, decision.tied, decision.posterior) == (None, ("a", "b"), 0.5)


def test_initial_accuracy_and_one_label_an_annotator() -> None:
    assert dawid_skene(votes_of("a a\na ."))["item-01"] == VoteResult(
        "a", 1, 1.0, 1, (), {"a": 1.0}
    )
    for iterations in (20, None):
        decisions = dawid_skene(votes_of("a\na\nb"), iterations=iterations)
        assert [decision.label for decision in decisions.values()] == ["a", "a", "b"]
        assert [decision.posterior for decision in decisions.values()] == pytest.approx([0.7] * 3)
    # Two labels of one annotator on an item are an error.
    votes = [*votes_of("a b\nb b"), Vote("item-01", "annotator-00", "a")]
    for rule in (majority, dawid_skene):
        with pytest.raises(
            RoundError, match=r"item 'item-01': annotator 'annotator-00' gave two labels; keep one"
        ):
            rule(votes)


@settings(deadline=None)
@given(vote_lists(labels="1234"), ITERATIONS, st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(
    votes: list[Vote], iterations: int | None, rng: random.Random
) -> None:
    names: dict[str, str] = {}
    for kind, count in (("i", 10), ("v", 8)):
        new = rng.sample(range(count), count)
        names |= {f"{kind}{old}": f"{kind}{n}" for old, n in enumerate(new)}
    labels = dict(zip("1234", rng.sample("1234", 4), strict=True))
    others = [
        Vote(names[vote.item], names[vote.annotator], labels[vote.label])
        for vote in rng.sample(votes, len(votes))
    ]

    def renamed(one: VoteResult) -> VoteResult:
        chances = {labels[label]: chance for label, chance in one.chances.items()}
        return replace(
            one,
            label=labels.get(one.label or ""),
            tied=tuple(sorted(labels[t] for t in one.tied)),
            chances=chances,
        )

    for rule in (majority, partial(dawid_skene, iterations=iterations)):
        assert rule(others) == {names[item]: renamed(one) for item, one in rule(votes).items()}
    in_order = [
        Vote(names[vote.item], names[vote.annotator], vote.label) for vote in reversed(votes)
    ]
    for level in LEVELS:
        ours = agreement_of(votes, level)
        assert agreement_of(in_order, level) == ours
        assert ours.interval is None or ours.interval[0] <= ours.interval[1] <= 1


# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): 12 units, 4 observers (one line a unit).
TEXTBOOK = """
1 1 . 1
2 2 3 2
3 3 3 3
3 3 3 3
2 2 2 2
1 2 3 4
4 4 4 4
1 1 2 1
2 2 2 2
. 5 5 5
. . 1 1
. 3 . .
"""
LEVELS: list[Level] = ["nominal", "ordinal"]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_textbook_example(level: Level, alpha: float) -> None:
    found = agreement_of(votes_of(TEXTBOOK), level)
    assert round(found.alpha or 0, 3) == alpha
    assert (found.items, found.votes, found.reason) == (11, 40, "")


@pytest.mark.parametrize(("name", "alpha"), [("d_possent", 0.1493), ("snow_rte", 0.2415)])
def test_alpha_of_public_votes(shared_data: Path, name: str, alpha: float) -> None:
    votes, _ = public_votes(shared_data, name)
    assert round(agreement_of(votes, "nominal").alpha or 0, 4) == alpha


@settings(deadline=None)
@given(vote_lists(labels="1234"), st.sampled_from(LEVELS))
def test_value_counts_give_the_library_s_result_for_the_matrix(
    votes: list[Vote], level: Level
) -> None:
    matrix = np.full((8, 10), np.nan)
    for vote in votes:
        matrix[int(vote.annotator[1:]), int(vote.item[1:])] = float(vote.label)
    ours = agreement_of(votes, level).alpha
    pairable = matrix[:, (~np.isnan(matrix)).sum(axis=0) > 1]
    if len(np.unique(pairable[~np.isnan(pairable)])) < 2:
        assert ours is None
    else:
        assert ours == pytest.approx(
            float(krippendorff.alpha(matrix, level_of_measurement=level)), abs=1e-6
        )


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("1 . .\n. 2 .", "no item has two votes"),
        ("1 1 1\n1 1 .", "all votes on items with two or more votes are one label"),
        # The second label occurs on an item with one vote only.
        ("1 1 1\n1 1 .\n. . 2", "all votes on items with two or more votes are one label"),
    ],
)
def test_undefined_alpha_has_a_reason(table: str, reason: str) -> None:
    found = agreement_of(votes_of(table), "nominal")
    assert (found.alpha, found.interval, found.reason.startswith(reason)) == (None, None, True)


def test_ratings_are_ordered_as_numbers() -> None:
    # As text, 10 is before 9. The ratings of each item are neighbours: nearly full agreement.
    votes = votes_of("9 10\n10 9\n1 1\n2 1\n5 5")
    assert (agreement_of(votes, "ordinal").alpha or 0) > 0.85
    assert (agreement_of(votes, "nominal").alpha or 1) < 0.5


def test_interval_is_close_to_that_of_resampled_items(shared_data: Path) -> None:
    votes, _ = public_votes(shared_data, "snow_rte")
    by_item: dict[str, list[Vote]] = {}
    for vote in votes:
        by_item.setdefault(vote.item, []).append(vote)
    rng = random.Random(0)
    drawn = []
    for _ in range(60):
        picks = enumerate(rng.choices(list(by_item.values()), k=len(by_item)))
        again = [Vote(f"{n}", vote.annotator, vote.label) for n, theirs in picks for vote in theirs]
        drawn.append(agreement_of(again, "nominal").alpha or 0)
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert agreement_of(votes, "nominal").interval == pytest.approx((low, high), abs=0.008)


KEEP = QUESTIONS["crowd"][1]


def plain_item(name: str, **fields: object) -> Item:
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
    return by_item(
        decide([plain_item(name) for name in votes], [KEEP], said("keep", votes), 2, *given)
    )


def test_rules_of_decisions() -> None:
    votes: dict[str, list[Value]] = {
        "broken": ["keep", "drop", "drop"], "clear": ["drop"] * 3, "short": ["drop"], "tied": ["keep", "drop"],
    }  # fmt: skip
    found = {name: (one.label, one.rule) for name, one in decided(votes).items()}
    assert found == {
        "broken": ("drop", "one more annotation"), "clear": ("drop", "majority"), "short": ("drop", "majority"),
        "tied": (None, "tie"),
    }  # fmt: skip
    found = decide([plain_item("a")], QUESTIONS["crowd"], [], 2)
    assert [(one.label, one.support, one.rule) for one in found] == [
        (None, 0, "no annotations")
    ] * 3
    # Several labels need more than half of the annotators.
    several = QUESTIONS["safety"][2]
    answers = said(several.name, {"a": [("privacy",), ("privacy", "sexual"), ("boundary",)]})
    one = decide([plain_item("a")], [several], answers, 2)[0]
    assert (one.label, one.support, one.votes) == (("privacy",), 2, 3)
    assert decide([plain_item("a")], [several], [], 2) == []  # nobody chose
    half = decide(
        [plain_item("a")], [several], said(several.name, {"a": [("privacy",), ("boundary",)]}), 2
    )[0]
    assert (half.label, half.support, half.votes) == ((), 0, 2)
    # Gold items are not decided.
    items = [plain_item("a"), plain_item("g", gold={"keep": "keep"})]
    found = decide(items, [KEEP], said("keep", {"a": ["keep"], "g": ["drop"]}), 2)
    assert [one.item for one in found] == ["a"]
    # Completed items have conditionally required answers.
    items = [plain_item("a")]
    asked = QUESTIONS["safety"]
    answers = [
        *said("perception", {"a": [2, 4, 3]}),
        *said("violation", {"a": ["yes", "no", "yes"]}),
    ]
    found = {answer.key: answer for answer in answers}
    assert completed_items(items, asked, found) == {"a": {"v1"}}
    found |= {answer.key: answer for answer in said("violations", {"a": [("privacy",)]})}
    assert completed_items(items, asked, found) == {"a": {"v0", "v1"}}


def informed() -> dict[str, list[Value]]:
    """v0 and v1 are right on 95 of 100 items, v2 and v3 on 55, four more on 80."""
    draw = random.Random(5)
    votes = {}
    for n in range(200):
        right, wrong = (("keep", "drop"), ("drop", "keep"))[n % 2]
        skills = (0.95, 0.95, 0.55, 0.55, 0.8, 0.8, 0.8, 0.8)
        votes[f"x{n}"] = [right if draw.random() < skill else wrong for skill in skills]
    return votes | {"tied": ["keep", "keep", "drop", "drop"]}


def test_dawid_skene_decides_ties_only() -> None:
    tie = decided(informed())["tied"]
    assert (tie.label, tie.rule, tie.tied, tie.dawid_skene) == (
        None,
        "tie",
        ("drop", "keep"),
        "keep",
    )
    assert tie.posterior is not None
    assert tie.posterior > 0.95
    settled = decided(informed(), 0.95)["tied"]
    assert (settled.label, settled.rule, settled.tied, settled.support) == (
        "keep",
        "dawid_skene",
        (),
        2,
    )
    assert settled.posterior == tie.posterior
    assert decided(informed(), 1.0)["tied"] == tie
    # Dawid-Skene chooses tied labels only.
    question = Question("q", "label", ("a", "b", "c"))
    votes: dict[str, Sequence[Value]] = {f"x{n}": ["a", "a", "b", "b", "c"] for n in range(30)}
    votes |= {f"y{n}": ["c"] * 5 for n in range(30)}
    answers = said("q", votes)
    for one in decide([plain_item(name) for name in votes], [question], answers, 5, 0.5):
        assert one.label in ("a", "b", None) if one.item.startswith("x") else one.label == "c"
    # v0 to v2 guess, v3 and v4 are always right, so the model follows these two.
    draw = random.Random(0)
    keep: dict[str, list[Value]] = {
        f"x{n}": [draw.choice(KEEP.labels) for _ in "abc"] for n in range(200)
    }
    for n in range(200):
        keep[f"x{n}"] += [KEEP.labels[n % 2]] * 2
    one = decided(keep | {"a": ["keep", "keep", "keep", "drop", "drop"]}, 0.5)["a"]
    assert (one.label, one.rule, one.dawid_skene) == ("keep", "one more annotation", "drop")


FIVE = (1, 5)


def test_student_interval_of_ratings_of_one_and_of_equal_ones() -> None:
    for values, half in (
        ([48, 49], 12.7062047 * math.sqrt(0.5) / math.sqrt(2)),
        ([48, 49, 50], 4.3026527 / math.sqrt(3)),
        ([48, 48, 52, 52], 3.1824463 * statistics.stdev([1, 1, 5, 5]) / 2),
    ):
        mean, interval = mean_of(values, (0, 100))
        assert mean == statistics.fmean(values)
        assert interval == pytest.approx((mean - half, mean + half), abs=1e-4)
    assert mean_of([4], FIVE) == (4.0, None)
    assert mean_of([4, 5], FIVE)[1] == FIVE
    low, high = mean_of([5, 5, 5], FIVE)[1] or (0, 0)
    assert (low, high) == (pytest.approx(5 - 4 * (1 - 0.05 ** (1 / 3)), abs=1e-4), 5)
    assert low < 3 < (mean_of([5] * 20, FIVE)[1] or (0, 0))[0] < 5


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_interval_contains_the_mean(
    values: list[int], rng: random.Random
) -> None:
    mean, interval = mean_of(values, FIVE)
    rng.shuffle(values)
    assert mean_of(values, FIVE) == (mean, interval)
    if interval is not None:
        assert 1 <= interval[0] <= mean + 1e-4
        assert mean - 1e-4 <= interval[1] <= 5
        assert interval[0] < interval[1]


CROWD = QUESTIONS["crowd"]
# 987 characters: a minute's reading in English, 20 s at three times that speed.
ITEMS = [Item(f"i{n}", "en", (Turn("user", "x" * 900),), response="y" * 87) for n in range(60)]


def item(number: int, **gold: Value) -> Item:
    return Item(f"i{number}", "en", (Turn("user", "word " * 100),), gold=gold)


def at(second: float) -> str:
    return f"2026-01-05T{int(second) // 3600:02}:{int(second) // 60 % 60:02}:{int(second) % 60:02}+00:00"


def answer(
    annotator: str, number: int, question: str, value: Value | None, when: str = at(0)
) -> Annotation:
    return Annotation("r", f"i{number}", annotator, question, value, when)


def keeps(annotator: str, words: str) -> list[Annotation]:
    """An annotator's answers to `keep`: k for keep, d for drop, a dot for none, by item."""
    said = {"k": "keep", "d": "drop"}
    return [answer(annotator, n, "keep", said[word]) for n, word in enumerate(words) if word != "."]


def timed(
    seconds: list[float], question: str = "keep", value: Value = "keep"
) -> AnnotatorStatistics:
    """Statistics of an annotator who answers consecutive items with these times between them."""
    answers = [
        answer("a", n, question, value, at(sum(seconds[:n]))) for n in range(len(seconds) + 1)
    ]
    return annotator_statistics(ITEMS, CROWD, answers, ["a"])[0]


def answered(
    kind: Kind, sheets: dict[str, list[dict[str, Value]]]
) -> dict[str, AnnotatorStatistics]:
    """Statistics of annotators with these values by item, all at one time."""
    answers = [
        answer(annotator, n, question, value)
        for annotator, items in sheets.items()
        for n, given in enumerate(items)
        for question, value in given.items()
    ]
    return {
        one.annotator: one for one in annotator_statistics(ITEMS, QUESTIONS[kind], answers, sheets)
    }


def kept(*drops: int, of: int = 60) -> list[dict[str, Value]]:
    """Answers to `keep`: drop for some items, keep for the others."""
    return [{"keep": "drop" if n in drops else "keep"} for n in range(of)]


def test_consensus_gold_and_skips() -> None:
    answers = [*keeps("a", "kkkk."), *keeps("b", "kkd.d"), *keeps("c", "kdd..")]
    answers += [answer(name, 0, "quality", 3) for name in "abc"]  # no label
    by = {
        one.annotator: one
        for one in annotator_statistics([item(n) for n in range(5)], CROWD, answers, "abc")
    }
    # a: k as the others, (k, d: tied, out), k against d d, alone (out).
    assert (by["a"].consensus, by["a"].annotated) == (Share(1, 2), 4)
    assert (by["b"].consensus, by["c"].consensus) == (Share(1, 1), Share(1, 2))
    assert Share(3, 3).interval == pytest.approx((0.4385, 1.0), abs=1e-4)
    # Gold accepts ratings within one step, and several labels in any order.
    items = [item(0, keep="keep", quality=4), item(1, keep="drop"), item(2)]
    answers = [
        *keeps("a", "kkk"),
        answer("a", 0, "quality", 3),
        *keeps("b", "dd."),
        answer("b", 0, "quality", 2),
    ]
    figures = annotator_statistics(items, CROWD, [*answers, *keeps("c", "..k")], "abc")
    assert [one.gold for one in figures] == [Share(2, 3), Share(1, 3), None]
    items = [item(0, violations=("boundary", "privacy"), comment="none")]
    answers = [
        answer("a", 0, "violations", ("privacy", "boundary")),
        answer("b", 0, "violations", ("privacy",)),
    ]
    figures = annotator_statistics(
        items, QUESTIONS["safety"], [*answers, answer("a", 0, "comment", "none")], "ab"
    )
    assert [one.gold for one in figures] == [Share(1, 1), Share(0, 1)]
    # Annotated and skipped items.
    answers = [
        *keeps("a", "k.k"),
        answer("a", 1, SKIPPED, "yes"),
        answer("b", 0, SKIPPED, "yes"),
        *keeps("b", "k"),
    ]
    figures = annotator_statistics(
        [item(n) for n in range(3)], CROWD, answers, ["b", "nobody", "a"]
    )
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
    assert [row["qualified"] for row in rows] == [
        "yes",
        "no",
        "too few gold answers: 4 of at least 5",
        "",
    ]
    assert (rows[0]["gold accuracy"], rows[0]["gold answers"], rows[0]["votes compared"]) == (
        "0.8",
        "5",
        "3",
    )
    assert (rows[3]["annotator"], rows[3]["items annotated"]) == ("'=none", "0")


def test_seconds_per_item_and_warnings_of_haste() -> None:
    assert (timed(gaps := [30.0] * 7 + [4000.0] + [50.0] * 6).seconds, timed(gaps).warnings) == (
        30,
        (),
    )  # no break
    # Collected from a spreadsheet at one time, and at a few other times; too few; a break after each.
    for gaps in ([0.0] * 30, [0.0] * 20 + [30.0] * 12, [30.0] * 9, [700.0] * 30):
        assert (timed(gaps).seconds, timed(gaps).warnings) == (None, ())
    answers = [answer("a", n, "keep", "keep", at(30 * n)) for n in range(13)]
    answers += [answer("a", 3, "quality", 4, at(5000))]
    assert annotator_statistics(ITEMS, CROWD, answers, "a")[0].seconds == 30
    (warning,) = timed([4.0] * 12 + [40.0] * 8).warnings
    assert warning.startswith(
        "too fast: 12 of 20 timed items were answered faster than they can be read"
    )
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
    assert (
        answered("crowd", {"a": [{"quality": 3}] * 9, "b": varied, "c": varied})["a"].warnings == ()
    )
    assert answered("crowd", {"a": [{"quality": 3}] * 40})["a"].warnings == ()
    disagreeing = {name: kept(*random.Random(name).sample(range(60), 30)) for name in "abc"}
    assert [one.warnings for one in answered("crowd", disagreeing).values()] == [()] * 3


@pytest.mark.parametrize("habit", ["keep", "random"])
def test_agreement_hardly_above_chance(habit: str) -> None:
    """The share of one label did not show who answers at random."""
    draw = random.Random(0)
    bad = range(0, 60, 3)
    drops = {"keep": (), "random": draw.sample(range(60), 30)}[habit]
    found = answered(
        "crowd", {"a": kept(*drops), **{name: kept(*bad, n) for n, name in enumerate("bcde", 1)}}
    )
    (warning,) = found["a"].warnings
    assert warning.startswith(
        "slight agreement: on 60 items, keep agrees with the other annotators hardly above"
    )
    assert "that of the others among themselves is 0." in warning
    assert [found[name].warnings for name in "bcde"] == [()] * 4


def test_warning_straight_lining() -> None:
    rng = random.Random(0)
    names = ("accuracy", "consistency", "domain_compliance")
    lines: list[dict[str, Value]] = [dict.fromkeys(names, 2 + n % 4) for n in range(24)]
    varied: dict[str, list[dict[str, Value]]] = {
        annotator: [{name: rng.randint(2, 5) for name in names} for _ in range(24)]
        for annotator in "bc"
    }
    found = answered("expert", {"a": lines, **varied})
    (warning,) = found["a"].warnings
    assert warning.startswith(
        "straight-lining: all 3 ratings are equal on 24 of 24 items, other annotators on "
    )
    assert [found[annotator].warnings for annotator in "bc"] == [(), ()]
