"""Measure how often honest annotators are named for shared answers, and how often a planted copyist is.

    H2HTALK_DATA=... python tools/eval_shared_answers.py [--crowds 50] [--items 40]

Honest crowds answer as `simulate_annotators.py` does, each person with a skill of their own; in every second crowd some
people rate one step higher or lower than others. A copyist takes the share RATE of another person's answers. Then the
same on the public votes in `crowd/` of the data folder. First, the shares of shared deviations in one crowd of 20
people: of its honest pairs, and of a planted copyist with the person copied.
"""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path

from eval_votes import read_votes
from simulate_annotators import Simulation

from h2htalk.data.splits import load_split
from h2htalk.rounds.aggregation.shared_answers import MIN_DEVIATIONS, SharedAnswers, shared_answers
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.item_sources import scenario_item
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, Kind, Question, Value

RATES = (1.0, 0.9, 0.75)
PEOPLE = (3, 5, 10, 20)
KINDS: tuple[Kind, ...] = ("crowd", "expert", "safety")
MIN_COMMON = 40
WHEN = "2026-01-01T00:00:00+00:00"
# (item, question, annotator) -> answer
Answers = dict[tuple[str, str, str], Value]


def crowd(items: list[Item], kind: Kind, people: int, seed: int) -> Answers:
    """Return the answers of honest people: skills from 0.6 to 0.97, in odd crowds a third lenient or severe."""
    draw = random.Random(f"{kind}/{people}/{seed}")
    answers: Answers = {}
    for name in [f"a{number:02}" for number in range(people)]:
        simulation = Simulation(
            items, QUESTIONS[kind], skill=draw.uniform(0.6, 0.97), drop=0.2, seed=seed
        )
        step = draw.choice([-1, 0, 1]) if seed % 2 else 0
        for item in items:
            for question, value in simulation.answers(item, name).items():
                if isinstance(value, int):
                    value = min(5, max(1, value + step))
                answers[item.id, question, name] = value
    return answers


def copied(answers: Answers, rate: float, seed: int) -> tuple[Answers, set[str]]:
    """Return answers of which one person took the share `rate` from another, and the two.

    Both have at least `MIN_COMMON` answers to the same questions.
    """
    draw = random.Random(f"copy/{rate}/{seed}")
    people: dict[str, set[tuple[str, str]]] = {}
    for item, question, name in answers:
        people.setdefault(name, set()).add((item, question))
    pairs = [
        pair
        for pair in permutations(sorted(people), 2)
        if len(people[pair[0]] & people[pair[1]]) >= MIN_COMMON
    ]
    writer, copyist = draw.choice(pairs)
    taken = dict(answers)
    for item, question in sorted(people[writer] & people[copyist]):
        if draw.random() < rate:
            taken[item, question, copyist] = answers[item, question, writer]
    return taken, {writer, copyist}


def named(questions: tuple[Question, ...], answers: Answers) -> list[SharedAnswers]:
    """Return the pairs that are named."""
    rows = [
        Annotation("r", item, name, question, value, WHEN)
        for (item, question, name), value in answers.items()
    ]
    return shared_answers(questions, rows, {name for _, _, name in answers})


def shares(answers: Answers) -> dict[tuple[str, str], float]:
    """Return the share of shared deviations of each pair with at least `MIN_DEVIATIONS` of them.

    A deviation is an answer by which one of the pair differs from the majority of all others on the item.
    """
    cells: dict[tuple[str, str], dict[str, Value]] = {}
    for (item, question, name), value in answers.items():
        cells.setdefault((item, question), {})[name] = value
    shared = Counter[tuple[str, str]]()
    deviations = Counter[tuple[str, str]]()
    for given in cells.values():
        counts = Counter(given.values())
        for first, second in combinations(sorted(given), 2):
            others = counts - Counter([given[first], given[second]])
            leading = others.most_common(2)
            if not leading or (len(leading) == 2 and leading[0][1] == leading[1][1]):
                continue
            majority = leading[0][0]
            if given[first] == majority and given[second] == majority:
                continue
            deviations[first, second] += 1
            shared[first, second] += given[first] == given[second]
    return {
        pair: shared[pair] / count for pair, count in deviations.items() if count >= MIN_DEVIATIONS
    }


def shares_row(items: list[Item], kind: Kind) -> str:
    """Return the shares in one crowd of 20 people, without and with a copyist of 90 %."""
    answers = crowd(items, kind, people=20, seed=0)
    honest = shares(answers)
    planted, pair = copied(answers, 0.9, seed=0)
    first, second = sorted(pair)
    share = shares(planted)[first, second]
    return f"{kind}: planted copyist {share:.2f}, largest of {len(honest)} honest pairs {max(honest.values()):.2f}"


def measure(items: list[Item], kind: Kind, people: int, crowds: int) -> str:
    """Return a row: honest crowds in which a pair is named, and copyists found, by rate."""
    false_alarms = 0
    found = dict.fromkeys(RATES, 0)
    for seed in range(crowds):
        answers = crowd(items, kind, people, seed)
        false_alarms += bool(named(QUESTIONS[kind], answers))
        for rate in RATES:
            planted, pair = copied(answers, rate, seed)
            found[rate] += any(
                set(one.annotators) == pair for one in named(QUESTIONS[kind], planted)
            )
    return (
        f"| {kind} | {people} | {false_alarms} | {' | '.join(str(found[rate]) for rate in RATES)} |"
    )


def public_rows(folder: Path) -> Iterator[str]:
    """Yield a row for each public set: the named pairs, and those with a copyist planted."""
    for path in sorted(one for one in folder.iterdir() if one.is_dir()):
        table, _ = read_votes(path)
        votes = table.votes(range(len(table)))
        answers: Answers = {(vote.item, "label", vote.annotator): vote.label for vote in votes}
        questions = (Question("label", "label", table.labels),)
        copies = [copied(answers, rate, seed) for rate in RATES for seed in range(10)]
        found = [
            any(set(one.annotators) == pair for one in named(questions, planted))
            for planted, pair in copies
        ]
        yield f"{path.name}: {len(named(questions, answers))} pairs named; {sum(found)} of {len(found)} copyists found"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--crowds", type=int, default=50)
    parser.add_argument("--items", type=int, default=40)
    given = parser.parse_args()
    scenarios = [one for one in load_split("mini@1").scenarios if one.language == "en"]
    items = [scenario_item(one) for one in scenarios[: given.items]]
    print(*(shares_row(items, kind) for kind in KINDS), sep="\n")
    print(
        f"{given.crowds} crowds of each kind, {len(items)} items; copyists found by share of copied answers"
    )
    print(
        f"| round | people | honest crowds with a named pair | {' | '.join(f'{rate:.0%}' for rate in RATES)} |"
    )
    for kind in KINDS:
        for people in PEOPLE:
            print(measure(items, kind, people, given.crowds), flush=True)
    if "H2HTALK_DATA" in os.environ:
        print(*public_rows(Path(os.environ["H2HTALK_DATA"]) / "crowd"), sep="\n")


if __name__ == "__main__":
    main()
