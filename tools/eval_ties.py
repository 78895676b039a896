"""How many ties the voters' standing settles, and how many rightly: simulated rounds of known truth, and public votes.

python tools/eval_ties.py [--data DIR] [--share 1.0]

The bounds to which `standing.LEAD`, `KNOWN` and `CLEAR` are set: of ties among equal voters at most 1 in 100 settled;
of two kinds of voters most ties of rounds with 8 and 20 answers an item, 94 in 100 of them rightly; what is settled
where two voters copy one coin is wrong at most 1 time in 20. Exit 1 when a figure is beyond its bound. --share draws
that share of the simulated rounds (1.0: about two minutes). Public votes are read from the data folder (H2HTALK_DATA).
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from h2htalk.rounds.standing import standing
from h2htalk.rounds.votes import Vote, majority, tabulate

# `ties.margin` as a round has it unless it says otherwise.
MARGIN = 0.2
EQUAL_MOST, RIGHT_LEAST, TWO_KINDS_LEAST = 0.01, 0.94, {20: 0.9, 8: 0.5}
COPIED_RIGHT_LEAST = 0.95
HALVES = (0.9, 0.55) * 10


@dataclass(frozen=True)
class Rounds:
    """What is simulated.

    Attributes:
        skills: of each voter, the chance to say the right label, else any other.
        each: votes an item, of voters drawn by chance; `items`: how many.
        shares: of the labels among the right ones.
        hard: share of items on which everybody says the right label or one certain other by a coin.
        pair: how many voters say what one coin says, the same for them all; `always`: they answer every item.
        gold: share of items whose right label is known.
    """

    skills: tuple[float, ...]
    each: int
    items: int = 400
    shares: tuple[float, ...] = (0.5, 0.5)
    hard: float = 0.0
    pair: int = 0
    always: bool = False
    gold: float = 0.0

    def drawn(self, seed: int) -> tuple[list[Vote], dict[str, str]]:
        """Votes, and right labels by item."""
        draw = random.Random(seed)
        labels = [f"l{at:02}" for at in range(len(self.shares))]
        rights, votes, everybody = {}, [], range(len(self.skills))
        for item in (f"i{n:05}" for n in range(self.items)):
            right, coin = draw.choices(labels, self.shares, k=2)
            others = [label for label in labels if label != right]
            confused = draw.choices(others, [self.shares[labels.index(label)] for label in others])[0]
            hard, rights[item] = draw.random() < self.hard, right
            always = everybody[: self.pair] if self.always else ()
            for voter in (*always, *draw.sample(everybody[len(always) :], self.each - len(always))):
                said = right if draw.random() < self.skills[voter] else draw.choice(others)
                said = draw.choice((right, confused)) if hard else said
                votes.append(Vote(item, f"v{voter:02}", coin if voter < self.pair else said))
        return votes, rights


@dataclass
class Found:
    """Ties, how many of them were settled, and how many of those rightly."""

    ties: int = 0
    settled: int = 0
    right: int = 0

    def look(self, votes: Iterable[Vote], rights: dict[str, str], gold: dict[str, str]) -> None:
        table = tabulate(votes)
        known = standing(table, gold)
        for item, decision in majority(table).items():
            if decision.label is None and item not in gold:
                settled = known.settle(item, decision.tied, MARGIN)
                self.ties += 1
                self.settled += settled is not None
                self.right += settled is not None and settled[0] == rights[item]

    def line(self, name: str) -> str:
        right = f"{100 * self.right / self.settled:5.1f} % right" if self.settled else ""
        share = 100 * self.settled / max(self.ties, 1)
        return f"  {name:52} {self.ties:6,} ties, {self.settled:5,} settled ({share:5.2f} %) {right}"


def simulate(rounds: Rounds, seeds: int, found: Found | None = None) -> Found:
    """Some seeded rounds of a kind, on top of what was found before."""
    found = found or Found()
    for seed in range(seeds):
        votes, rights = rounds.drawn(seed)
        known = list(rights)[: round(rounds.gold * len(rights))]
        found.look(votes, rights, {item: rights[item] for item in known})
    return found


def equal_voters(share: float) -> list[str]:
    """Voters who are all alike, whatever the labels' shares, items and panels: what is settled is luck."""
    print(
        "equal voters (4, 12 or 20; right .65, .8 with 20 % hard items, or .95 with 10 %; 50 to 2,000 items)"
    )
    broken = []
    for labels, rare in ((2, 0.5), (2, 0.3), (2, 0.1), (2, 0.05), (3, 0.3), (5, 0.1), (15, 0.1)):
        found = Found()
        for skill, panel, each, items in product(
            ((0.65, 0.0), (0.8, 0.2), (0.95, 0.1)), (4, 12, 20), (3, 4, 8, 20), (50, 400, 2000)
        ):
            if each <= panel and not (each == 3 and labels == 2):
                shares = (1 - rare, *(rare / (labels - 1),) * (labels - 1))
                rounds = Rounds((skill[0],) * panel, each, items, shares, skill[1])
                simulate(rounds, max(1, round(share * min(30, 16_000 // (items * each)))), found)
        name = f"{labels} labels, all but the first together {100 * rare:.0f} %"
        print(found.line(name), flush=True)
        if found.settled > EQUAL_MOST * found.ties:
            broken.append(name)
    return broken


def two_kinds(share: float) -> list[str]:
    """Half the voters are right in 90, half in 55 of 100 cases."""
    print("20 voters, half right .9, half .55; 400 items")
    broken = []
    for each, rare in product((20, 8, 4), (0.5, 0.3, 0.1)):
        found = simulate(Rounds(HALVES, each, shares=(1 - rare, rare)), max(1, round(share * 200 / each)))
        name = f"{each} votes an item, rarer label {100 * rare:.0f} %"
        print(found.line(name), flush=True)
        enough = rare != 0.5 or found.settled >= TWO_KINDS_LEAST.get(each, 0) * found.ties
        if not enough or found.right < RIGHT_LEAST * found.settled:
            broken.append(name)
    return broken


def copied(share: float) -> list[str]:
    """Some voters say what one coin says, the others are right in 80 of 100 cases."""
    print("voters who copy one coin, the others right .8; 400 items")
    broken = []
    for gold, (count, panel, each, always) in product(
        (0.0, 0.33), ((2, 4, 4, True), (2, 12, 4, True), (2, 12, 4, False), (3, 6, 6, True), (4, 8, 8, True))
    ):
        rounds = Rounds((0.8,) * panel, each, pair=count, always=always, gold=gold)
        found = simulate(rounds, max(1, round(share * 20)))
        where = "in every item" if always else "now and then"
        name = f"{count} of {panel}, {each} votes an item, they {where}, {100 * gold:.0f} % gold"
        print(found.line(name), flush=True)
        # But for what so few draws leave to luck: two standard errors.
        luck = 2 * math.sqrt(found.settled * COPIED_RIGHT_LEAST * (1 - COPIED_RIGHT_LEAST))
        if found.right < COPIED_RIGHT_LEAST * found.settled - luck:
            broken.append(name)
    return broken


def public(data: Path) -> None:
    """Ties of two public sets with right labels."""
    print("public votes")
    for name in ("d_possent", "snow_rte"):
        rows = []
        for file in ("answer.csv", "truth.csv"):
            with (data / "crowd" / name / file).open(encoding="utf-8", newline="") as opened:
                rows.append(list(csv.reader(opened))[1:])
        found = Found()
        found.look([Vote(*row) for row in rows[0]], dict(rows[1]), {})
        print(found.line(name))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("H2HTALK_DATA"))
    parser.add_argument("--share", type=float, default=1.0, help="of the simulated rounds, above 0")
    options = parser.parse_args(argv)
    broken = [*equal_voters(options.share), *two_kinds(options.share), *copied(options.share)]
    if options.data:
        public(options.data)
    for name in broken:
        print(f"beyond its bound: {name}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
