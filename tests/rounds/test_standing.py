"""How surely voters are known: chance finds no experts, real differences are found, and probabilities hold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from votes_made import public_votes, vote_lists, votes_of

from h2htalk.rounds.standing import standing
from h2htalk.rounds.votes import Vote, majority, tabulate

MARGIN = 0.2
EQUAL, NOISE = [0.65] * 10, [0.5] * 20
MIXED = [0.55 + 0.4 * n / 9 for n in range(10)]
HALVES = [0.9, 0.55] * 10


@dataclass
class Found:
    """What became of simulated rounds: ties, those settled, those settled rightly; (chance, right) of majorities."""

    ties: int = 0
    settled: int = 0
    right: int = 0
    decided: list[tuple[float, bool]] = field(default_factory=list)

    def look(self, votes: Sequence[Vote], gold: dict[str, str]) -> None:
        table = tabulate(votes)
        known = standing(table)
        for item, decision in majority(table).items():
            if decision.label is not None:
                self.decided.append((known.chance(item, decision.label), decision.label == gold[item]))
                continue
            self.ties += 1
            best, *rest = sorted(
                ((known.chance(item, label), label) for label in decision.tied), reverse=True
            )
            if best[0] - rest[0][0] >= MARGIN and all(known.sure(item, best[1], label) for _, label in rest):
                self.settled += 1
                self.right += best[1] == gold[item]


def simulated(skills: Sequence[float], items: int, each: int, seed: int) -> tuple[list[Vote], dict[str, str]]:
    """Votes of voters of known skill on items of two labels, `each` an item."""
    draw = random.Random(seed)
    gold = {f"i{n}": draw.choice("ab") for n in range(items)}
    votes = []
    for item, right in gold.items():
        for voter in draw.sample(range(len(skills)), each):
            wrong = "b" if right == "a" else "a"
            votes.append(Vote(item, f"v{voter}", right if draw.random() < skills[voter] else wrong))
    return votes, gold


def rounds(skills: Sequence[float], items: int, each: int, seeds: int) -> Found:
    found = Found()
    for seed in range(seeds):
        found.look(*simulated(skills, items, each, seed))
    return found


@pytest.mark.parametrize(
    ("skills", "items", "each", "seeds"),
    [
        (EQUAL, 40, 4, 20),
        (EQUAL, 400, 4, 8),
        (NOISE, 400, 20, 6),
        (NOISE, 400, 6, 6),
        ([0.65] * 20, 400, 20, 8),
    ],
)
def test_among_equal_voters_and_noise_ties_stay_ties(
    skills: Sequence[float], items: int, each: int, seeds: int
) -> None:
    """Where a model of skill once found experts in noise, and was sure of them, for 406 of 439 ties."""
    found = rounds(skills, items, each, seeds)
    assert found.ties > 100
    assert found.settled < 0.05 * found.ties


@pytest.mark.parametrize(
    ("skills", "items", "each", "share"),
    [(HALVES, 400, 20, 0.9), (HALVES, 400, 8, 0.6), (HALVES, 400, 4, 0.25), (MIXED, 400, 4, 0.25)],
)
def test_where_voters_differ_and_are_known_ties_are_settled_rightly(
    skills: Sequence[float], items: int, each: int, share: float
) -> None:
    found = rounds(skills, items, each, 8)
    assert found.settled >= share * found.ties > 0
    assert found.right >= 0.9 * found.settled


def test_voters_of_whom_little_is_known_settle_nothing_although_they_differ() -> None:
    found = rounds(MIXED, 40, 4, 20)
    assert found.ties > 100
    assert found.settled <= 0.02 * found.ties


@pytest.mark.parametrize("skills", [EQUAL, MIXED, HALVES])
@pytest.mark.parametrize(("items", "each"), [(40, 4), (400, 4), (400, 8)])
def test_what_a_posterior_promises_is_kept(skills: Sequence[float], items: int, each: int) -> None:
    """Of the labels with chances in a band at least so many are right, but for what 60 draws leave to luck."""
    decided = rounds(skills, items, each, 8).decided
    for low, high in ((0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 1.01)):
        band = [(chance, right) for chance, right in decided if low <= chance < high]
        if len(band) >= 60:
            promised = sum(chance for chance, _ in band) / len(band)
            assert sum(right for _, right in band) / len(band) >= promised - 0.1
    assert sum(chance < 0.5 for chance, _ in decided) < 0.15 * len(decided)


@pytest.mark.parametrize(("name", "share", "right"), [("d_possent", 0.8, 0.8), ("snow_rte", 0.5, 0.9)])
def test_ties_of_public_votes_are_settled_rightly(
    shared_data: Path, name: str, share: float, right: float
) -> None:
    found = Found()
    found.look(*public_votes(shared_data, name))
    assert found.ties > 40
    assert found.settled >= share * found.ties
    assert found.right >= right * found.settled


def test_an_item_is_judged_by_other_items_alone() -> None:
    """Whatever is said on an item, its own votes do not make their voters look better there."""
    votes = votes_of("a a a\nb b b\n" * 6)
    changed = [Vote(v.item, v.voter, "a") if v.item == "item-00" else v for v in votes]
    for vote in ("b", "a"):
        one = standing(tabulate([*votes, Vote("new", "voter-00", vote)]))
        assert one.chance("new", vote) > 0.75
    whole, other = standing(tabulate(votes)), standing(tabulate(changed))
    assert whole.known.tolist() == other.known.tolist() == [11] * 12
    assert whole.chance("item-00", "a") == other.chance("item-00", "a")


def test_with_nothing_to_learn_from_the_count_is_believed_a_little() -> None:
    one = standing(tabulate(votes_of("a a b")))
    assert 0.5 < one.chance("item-00", "a") < 0.75
    assert one.chance("item-00", "a") + one.chance("item-00", "b") == pytest.approx(1)
    assert standing(tabulate(votes_of("a a"))).chance("item-00", "a") == 1


@settings(max_examples=60, deadline=None)
@given(vote_lists(), st.randoms())
def test_new_names_and_another_order_change_no_bit(votes: list[Vote], shuffled: random.Random) -> None:
    if not votes:
        return
    names = sorted({name for vote in votes for name in (vote.item, vote.voter, vote.label)})
    new = dict(zip(names, shuffled.sample([f"n{n}" for n in range(99)], len(names)), strict=True))
    moved = [Vote(new[vote.item], new[vote.voter], new[vote.label]) for vote in votes]
    shuffled.shuffle(moved)
    before, after = standing(tabulate(votes)), standing(tabulate(moved))
    for item in before.items:
        for label in before.labels:
            assert before.chance(item, label) == after.chance(new[item], new[label])
            for other in before.labels:
                assert before.sure(item, label, other) == after.sure(new[item], new[label], new[other])
