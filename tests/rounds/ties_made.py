"""Simulated rounds for tests: votes of voters of known skill, and what became of their ties."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.rounds.standing import standing
from h2htalk.rounds.votes import Vote, majority, tabulate

MARGIN = 0.2
EVEN = (0.5, 0.5)
MANY = "abcdefghijklmno"


@dataclass
class Found:
    """What became of simulated rounds: ties, those settled, those settled rightly; (chance, right) of the decided."""

    ties: int = 0
    settled: int = 0
    right: int = 0
    decided: list[tuple[float, bool]] = field(default_factory=list)
    broken: list[tuple[float, bool]] = field(default_factory=list)

    def look(self, votes: Sequence[Vote], rights: Mapping[str, str], gold: Mapping[str, str]) -> None:
        table = tabulate(votes)
        known = standing(table, gold)
        for item, decision in majority(table).items():
            if decision.label is not None:
                self.decided.append((known.chance(item, decision.label), decision.label == rights[item]))
            elif item not in gold:
                self.ties += 1
                settled = known.settle(item, decision.tied, MARGIN)
                if settled is not None:
                    self.settled += 1
                    self.right += settled[0] == rights[item]
                    self.broken.append((settled[1], settled[0] == rights[item]))


def simulated(
    skills: Sequence[float], items: int, each: int, seed: int, shares: Sequence[float] = EVEN,
    hard: float = 0.0, pair: int = 0, always: bool = False,
) -> tuple[list[Vote], dict[str, str]]:  # fmt: skip
    """Votes of voters of known skill, `each` an item.

    Right labels have these shares; on hard items everybody throws a coin between two labels; of the voters the first
    `pair` all say what one coin says, and sit in every item where `always`.
    """
    draw = random.Random(seed)
    labels = MANY[: len(shares)]
    rights, votes, everybody = {}, [], range(len(skills))
    for item in (f"i{n}" for n in range(items)):
        right, coin = draw.choices(labels, shares, k=2)
        wrong = [label for label in labels if label != right]
        confused, hardly, rights[item] = draw.choice(wrong), draw.random() < hard, right
        seated = everybody[: pair if always else 0]
        for voter in (*seated, *draw.sample(everybody[len(seated) :], each - len(seated))):
            said = right if draw.random() < skills[voter] else draw.choice(wrong)
            said = draw.choice((right, confused)) if hardly else said
            votes.append(Vote(item, f"v{voter}", coin if voter < pair else said))
    return votes, rights


def rounds(
    skills: Sequence[float], items: int, each: int, seeds: int, shares: Sequence[float] = EVEN,
    hard: float = 0.0, pair: int = 0, always: bool = False, gold: float = 0.0,
) -> Found:  # fmt: skip
    found = Found()
    for seed in range(seeds):
        votes, rights = simulated(skills, items, each, seed, shares, hard, pair, always)
        known = list(rights)[: round(gold * items)]
        found.look(votes, rights, {item: rights[item] for item in known})
    return found


def skewed(labels: int, rare: float) -> list[float]:
    return [1 - rare, *[rare / (labels - 1)] * (labels - 1)]
