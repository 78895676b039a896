"""How surely voters are known: chance finds no experts, real differences are found, and probabilities hold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standing_plain import Plain
from ties_made import EVEN, MANY, MARGIN, Found, rounds, simulated, skewed
from votes_made import public_votes, vote_lists, votes_of

from h2htalk.rounds.standing import CLEAR, KNOWN, Evidence, Standing, standing
from h2htalk.rounds.votes import Vote, majority, tabulate

EQUAL, NOISE = [0.65] * 10, [0.5] * 20
MIXED = [0.55 + 0.4 * n / 9 for n in range(10)]
HALVES = [0.9, 0.55] * 10


@pytest.mark.parametrize(
    ("skills", "items", "each", "seeds", "shares", "hard"),
    [
        (EQUAL, 40, 4, 20, EVEN, 0),
        (EQUAL, 400, 4, 8, EVEN, 0),
        (NOISE, 400, 20, 6, EVEN, 0),
        (NOISE, 400, 6, 6, EVEN, 0),
        ([0.65] * 20, 400, 20, 8, EVEN, 0),
        ([0.8] * 20, 2000, 4, 1, EVEN, 0.2),
        ([0.8] * 4, 400, 4, 6, skewed(2, 0.3), 0.2),
        ([0.95] * 20, 400, 20, 12, skewed(2, 0.05), 0.3),
        ([0.8] * 12, 400, 8, 8, skewed(2, 0.1), 0.2),
        ([0.95] * 10, 400, 6, 8, skewed(3, 0.1), 0.3),
        ([0.8] * 20, 400, 3, 4, skewed(15, 0.5), 0.2),
    ],
)
def test_among_equal_voters_and_noise_ties_stay_ties(
    skills: Sequence[float], items: int, each: int, seeds: int, shares: Sequence[float], hard: float
) -> None:
    """Where a model of skill once found experts in noise, and was sure of them, for 406 of 439 ties.

    And where labels are skewed or items hard: what all voters do alike counted as each one's skill, and settled ties
    of voters who were all the same, most of them wrongly, for the rarer label.
    """
    found = rounds(skills, items, each, seeds, shares, hard)
    assert found.ties > 50
    assert found.settled <= 0.01 * found.ties


@pytest.mark.parametrize("items", [11, 50, 400])
@pytest.mark.parametrize("voters", [2, 4, 6, 20])
def test_voters_who_always_say_the_same_settle_nothing(items: int, voters: int) -> None:
    """Eleven items on which all said keep made a tie on the twelfth a `drop`, with a posterior of 0.92."""
    keep = [Vote(f"i{n}", f"v{voter}", "keep") for n in range(items) for voter in range(voters)]
    known = standing(
        tabulate([*keep, *(Vote("tied", f"v{n}", ("keep", "drop")[n % 2]) for n in range(voters))])
    )
    assert known.settle("tied", ("drop", "keep"), 0.0) is None
    assert not known.sure("tied", "drop", "keep")


@pytest.mark.parametrize(
    ("skills", "items", "each", "share"),
    [(HALVES, 400, 20, 0.9), (HALVES, 400, 8, 0.5), (HALVES, 400, 4, 0.05), (MIXED, 400, 8, 0.15)],
)
def test_where_voters_differ_and_are_known_ties_are_settled_rightly(
    skills: Sequence[float], items: int, each: int, share: float
) -> None:
    found = rounds(skills, items, each, 8)
    assert found.settled >= share * found.ties > 0
    assert found.right >= 0.94 * found.settled


def test_voters_of_whom_little_is_known_settle_nothing_although_they_differ() -> None:
    found = rounds(MIXED, 40, 4, 20)
    assert found.ties > 100
    assert not found.settled


@pytest.mark.parametrize(("pair", "voters", "each"), [(2, 4, 4), (2, 12, 4), (3, 6, 6), (4, 8, 8)])
@pytest.mark.parametrize("gold", [0, 0.33])
def test_voters_who_copy_each_other_win_no_ties(pair: int, voters: int, each: int, gold: float) -> None:
    """Two who copied one coin agreed with the majority in which the other's vote stood: they won every tie of four."""
    found = rounds([0.8] * voters, 400, each, 6, pair=pair, always=True, gold=gold)
    assert found.ties > 100
    assert found.settled - found.right <= 0.05 * found.settled
    assert gold or not found.settled


def test_a_pair_that_meets_now_and_then_wins_no_ties_either() -> None:
    found = rounds([0.8] * 12, 400, 4, 8, pair=2)
    assert found.ties > 500
    assert found.settled - found.right <= 0.01 * found.ties


def test_gold_items_tell_who_copies_where_votes_alone_cannot() -> None:
    """Gold items counted by their majority, as if their right labels were not known."""
    assert not rounds([0.95] * 4, 300, 4, 4, pair=2).settled
    found = rounds([0.95] * 4, 300, 4, 4, pair=2, gold=0.5)
    assert found.settled >= 0.9 * found.ties > 0
    assert found.right >= 0.98 * found.settled


@pytest.mark.parametrize("skills", [EQUAL, MIXED, HALVES])
@pytest.mark.parametrize(("items", "each"), [(40, 4), (400, 4), (400, 8)])
def test_what_a_posterior_promises_is_kept(skills: Sequence[float], items: int, each: int) -> None:
    """Of the labels with chances in a band at least so many are right, but for what 60 draws leave to luck."""
    found = rounds(skills, items, each, 8)
    for decided in (found.decided, found.broken):
        for low, high in ((0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 1.01)):
            band = [(chance, right) for chance, right in decided if low <= chance < high]
            if len(band) >= 60:
                promised = sum(chance for chance, _ in band) / len(band)
                assert sum(right for _, right in band) / len(band) >= promised - 0.1
    assert sum(chance < 0.5 for chance, _ in found.decided) < 0.15 * len(found.decided)


@pytest.mark.parametrize(("name", "share"), [("d_possent", 0.6), ("snow_rte", 0.0)])
def test_ties_of_public_votes_are_settled_rightly(shared_data: Path, name: str, share: float) -> None:
    """In `snow_rte` most voters gave twenty answers: too few to settle anything by."""
    found = Found()
    found.look(*public_votes(shared_data, name), {})
    assert found.ties > 40
    assert found.settled >= share * found.ties
    assert found.right >= 0.95 * found.settled


def test_an_item_is_judged_by_other_items_alone() -> None:
    """Whatever is said on an item, its own votes do not make their voters look better there."""
    votes = votes_of("a a a\nb b b\n" * 6)
    changed = [Vote(v.item, v.voter, "a") if v.item == "item-00" else v for v in votes]
    for vote in ("b", "a"):
        one = standing(tabulate([*votes, Vote("new", "voter-00", vote)]))
        assert one.chance("new", vote) > 0.75
    whole, other = standing(tabulate(votes)), standing(tabulate(changed))
    assert whole.known.tolist() == other.known.tolist() == [[5, 6], [6, 5]] * 6
    assert whole.chance("item-00", "a") == other.chance("item-00", "a")


def test_with_nothing_to_learn_from_the_count_is_believed_a_little() -> None:
    one = standing(tabulate(votes_of("a a b")))
    assert 0.5 < one.chance("item-00", "a") < 0.75
    assert one.chance("item-00", "a") + one.chance("item-00", "b") == pytest.approx(1)
    assert standing(tabulate(votes_of("a a"))).chance("item-00", "a") == 1


def made(sums: Sequence[float], variance: Sequence[float], known: Sequence[int]) -> Standing:
    beside = Evidence(np.array([sums], dtype=float), np.array([variance], dtype=float))
    return Standing(tuple("abc"), {"i": 0}, beside, beside, np.zeros((1, 3)), np.array([known]))


def test_of_three_tied_labels_one_must_lead_each_of_the_others_surely() -> None:
    enough = [KNOWN] * 3
    assert made([10, 0, 0], [1, 1, 1], enough).settle("i", tuple("abc"), MARGIN) is not None
    found = made([10, 0, 0], [1, 1, 20], enough)
    assert (found.sure("i", "a", "b"), found.sure("i", "a", "c")) == (True, False)
    assert found.between("i", tuple("abc"))[0] > CLEAR
    assert found.settle("i", tuple("abc"), MARGIN) is None
    assert found.settle("i", tuple("ab"), MARGIN) is not None


def test_what_settles_is_known_under_both_labels_clear_and_ahead_by_the_margin() -> None:
    for known, settled in (((9, 10, 0), False), ((10, 9, 0), False), ((10, 10, 0), True)):
        assert (made([9, 0, 0], [1, 1, 1], known).settle("i", tuple("ab"), MARGIN) is not None) == settled
    assert made([9, 0, 0], [1, 1, 1], [10] * 3).settle("i", tuple("ab"), 0.999) is None
    faint = made([1.2, 0, 0], [0.01, 0.01, 1], [10] * 3)
    assert faint.sure("i", "a", "b")
    assert faint.between("i", tuple("ab"))[0] == pytest.approx(0.768, abs=0.001)
    assert faint.settle("i", tuple("ab"), 0.0) is None


@settings(max_examples=60, deadline=None)
@given(vote_lists(), st.dictionaries(st.sampled_from(["i0", "i1", "i2"]), st.sampled_from("abcz")))
def test_the_figures_are_those_of_the_formulas(votes: list[Vote], gold: dict[str, str]) -> None:
    if votes:
        compare(votes, gold)


@pytest.mark.parametrize("shares", [EVEN, (0.4, 0.3, 0.3)])
@pytest.mark.parametrize(("voters", "each"), [(6, 6), (8, 4)])
def test_of_rounds_too(shares: Sequence[float], voters: int, each: int) -> None:
    votes, rights = simulated([0.9, 0.6] * (voters // 2), 100, each, 1, shares)
    assert compare(votes, {item: rights[item] for item in list(rights)[:20]})


def compare(votes: list[Vote], gold: dict[str, str]) -> int:
    """Compare all figures with the plain ones; returns how many ties there were."""
    table, plain = tabulate(votes), Plain(votes, gold)
    known = standing(table, gold)
    for item, row in known.items.items():
        sums, variance = plain.by_votes(item)
        for label, chance in plain.chances(item, plain.labels, sums, variance).items():
            assert known.chance(item, label) == pytest.approx(chance, abs=1e-9)
        beside = plain.by_difference(item)
        found = known.beside.sums[row], known.beside.variance[row], known.known[row]
        for values, expected in zip(found, beside, strict=True):
            assert values.tolist() == pytest.approx(list(expected.values()), abs=1e-9)
    ties = {item: decision.tied for item, decision in majority(table).items() if decision.tied}
    for item, tied in ties.items():
        assert known.settle(item, tied, 0.1) == pytest.approx(plain.settle(item, tied, 0.1))
    return len(ties)


@st.composite
def many_labels(draw: st.DrawFn) -> list[Vote]:
    return draw(vote_lists(MANY[: draw(st.integers(2, 15))]))


@settings(max_examples=60, deadline=None)
@given(many_labels())
def test_the_chances_of_all_labels_sum_to_one(votes: list[Vote]) -> None:
    """Of three labels and more they summed to less: each counted its leads over the others one by one."""
    if votes:
        known = standing(tabulate(votes))
        for item in known.items:
            assert sum(known.chance(item, label) for label in known.labels) == pytest.approx(1)
            assert sum(known.between(item, known.labels)) == pytest.approx(1)


@settings(max_examples=80, deadline=None)
@given(many_labels(), st.randoms())
def test_new_names_and_another_order_change_no_bit(votes: list[Vote], shuffled: random.Random) -> None:
    if votes:
        assert_nameless(votes, {votes[0].item: votes[-1].label}, shuffled)


@pytest.mark.parametrize("labels", [2, 3, 5, 15])
def test_nor_do_they_where_ties_are_settled(labels: int) -> None:
    votes, rights = simulated(HALVES, 250, 8, labels, [1 / labels] * labels, pair=2, always=True)
    settled = assert_nameless(votes, dict(list(rights.items())[:50]), random.Random(labels))
    assert settled or labels > 2


def assert_nameless(votes: list[Vote], gold: dict[str, str], shuffled: random.Random) -> int:
    """Rename and shuffle votes and compare bit for bit; returns how many ties were settled."""
    names = sorted({name for vote in votes for name in (vote.item, vote.voter, vote.label)})
    new = dict(zip(names, shuffled.sample([f"n{n}" for n in range(999)], len(names)), strict=True))
    moved = [Vote(new[vote.item], new[vote.voter], new[vote.label]) for vote in votes]
    shuffled.shuffle(moved)
    before = standing(tabulate(votes), gold)
    after = standing(tabulate(moved), {new[item]: new[label] for item, label in gold.items()})
    for item in before.items:
        for label in before.labels:
            assert before.chance(item, label) == after.chance(new[item], new[label])
            for other in before.labels:
                assert before.sure(item, label, other) == after.sure(new[item], new[label], new[other])
    found = 0
    for item, decision in majority(tabulate(votes)).items():
        if decision.tied:
            one = before.settle(item, decision.tied, 0.0)
            other_way = [new[label] for label in reversed(decision.tied)]
            assert after.settle(new[item], other_way, 0.0) == (one and (new[one[0]], one[1]))
            found += one is not None
    return found
