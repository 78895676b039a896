"""Evaluate decisions, agreement and adaptive overlap on public votes with gold labels.

H2HTALK_DATA=... python tools/eval_votes.py [--orders 100]

Reads `crowd/d_possent` and `crowd/snow_rte` of the data folder. Exit 1 if a value is below its minimum.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from vote_measures import expected_accuracy, fleiss_kappa

from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import Vote, VoteTable, majority, tabulate

# Published accuracy of Dawid-Skene, and expected accuracy of a majority with random ties, in percent.
MINIMA = {
    "d_possent": {"majority": 93.35, "vldb": 96.0, "converged": 96.0},
    "snow_rte": {"majority": 89.68, "vldb": 92.7, "converged": 92.7},
}
# Adaptive overlap on d_possent with lead 4: minimum of majority and Dawid-Skene (percent), maximum of votes per item.
ADAPTIVE_LIMITS = (92.2, 94.2, 9.5)
LEADS = (3, 4, 6)
# A threshold of `[ties] dawid_skene`.
POSTERIOR = 0.95


def read_votes(folder: Path) -> tuple[VoteTable, dict[str, str]]:
    """Return the votes of a public set, and its gold labels by item."""

    def rows(name: str) -> list[list[str]]:
        with (folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))[1:]

    return tabulate(Vote(*row) for row in rows("answer.csv")), dict(rows("truth.csv"))


def accuracies(table: VoteTable, gold: Mapping[str, str]) -> dict[str, float]:
    """Print and return the accuracy of each method in percent, and print F1 of label 1; ties count for no label."""
    methods = {
        "majority": majority(table),
        "vldb": dawid_skene(table, iterations=20),
        "converged": dawid_skene(table),
    }
    accuracy = {}
    right = {item for item, one in gold.items() if one == "1"}
    for method, decisions in methods.items():
        accuracy[method] = 100 * expected_accuracy(decisions, gold)
        ties = sum(decision.label is None for decision in decisions.values())
        named = {item for item, decision in decisions.items() if decision.label == "1"}
        f1 = 200 * len(named & right) / (len(named) + len(right))
        print(f"  {method:24} accuracy {accuracy[method]:6.2f}  F1 {f1:6.2f}  ties {ties}")
    return accuracy


def replay(
    table: VoteTable, seed: int, lead: int, minimum: int = 3, maximum: int = 20
) -> VoteTable:
    """Return the votes that adaptive overlap (`needs_more`) would have collected, in a random order of arrival.

    They are the first votes of each item in that order, until it is clear or has no more.
    """
    order = np.lexsort((np.random.default_rng(seed).random(len(table)), table.item))
    sizes = np.bincount(table.item, minlength=len(table.items))
    starts = np.append(0, sizes.cumsum())[:-1]
    counts = np.zeros((len(table.items), max(len(table.labels), 2)), dtype=np.int64)
    taken = np.zeros(len(table.items), dtype=np.int64)
    open_ = np.flatnonzero(sizes > 0)
    while len(open_):
        rows = order[starts[open_] + taken[open_]]
        counts[open_, table.label[rows]] += 1
        taken[open_] += 1
        highest = np.partition(counts[open_], -2, axis=1)
        more = np.maximum(minimum - taken[open_], lead - (highest[:, -1] - highest[:, -2]))
        open_ = open_[(more > 0) & (taken[open_] < np.minimum(maximum, sizes[open_]))]
    arrived = np.arange(len(table)) - np.repeat(starts, sizes)
    return tabulate(table.votes(order[arrived < np.repeat(taken, sizes)].tolist()))


def ties(table: VoteTable, gold: Mapping[str, str]) -> None:
    """Print the number of ties, and how many Dawid-Skene decides, and how many of them rightly."""
    modelled = dawid_skene(table)
    tied = {item: one.tied for item, one in majority(table).items() if one.label is None}
    sure = [
        item
        for item in tied
        if modelled[item].label in tied[item] and modelled[item].posterior >= POSTERIOR
    ]
    right = sum(modelled[item].label == gold[item] for item in sure)
    print(
        f"  {len(tied)} ties; a Dawid-Skene posterior of {POSTERIOR} decides {len(sure)}, {right} rightly"
    )


def adaptive(
    table: VoteTable, gold: Mapping[str, str], orders: int
) -> dict[int, tuple[float, float, float]]:
    """Print means over seeded orders; return lead -> accuracy of majority and Dawid-Skene, votes per item."""
    results = {}
    for lead in LEADS:
        rows = []
        for seed in range(orders):
            gathered = replay(table, seed, lead)
            shares = (
                expected_accuracy(found, gold)
                for found in (majority(gathered), dawid_skene(gathered))
            )
            rows.append((*(100 * share for share in shares), len(gathered) / len(gold)))
        means = tuple(statistics.fmean(column) for column in zip(*rows, strict=True))
        spread = (
            [statistics.stdev(column) for column in zip(*rows, strict=True)]
            if orders > 1
            else [0.0] * 3
        )
        results[lead] = (means[0], means[1], means[2])
        print(
            f"  lead >= {lead}: majority {means[0]:.2f} (sd {spread[0]:.2f}), Dawid-Skene {means[1]:.2f} "
            f"(sd {spread[1]:.2f}), {means[2]:.2f} votes per item (sd {spread[2]:.2f})"
        )
    return results


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--orders", type=int, default=100, help="seeded orders of arrival")
    options = parser.parse_args()
    below = []
    for name, minima in MINIMA.items():
        table, gold = read_votes(Path(os.environ["H2HTALK_DATA"]) / "crowd" / name)
        print(
            f"{name}: {len(table):,} votes, {len(table.items):,} items, {len(table.annotators)} annotators"
        )
        accuracy = accuracies(table, gold)
        below += [
            f"{name} {method}"
            for method, least in minima.items()
            if round(accuracy[method], 2) < least
        ]
        ties(table, gold)
        alpha = agreement_of(table, "nominal")
        low, high = alpha.interval or (0.0, 0.0)
        print(
            f"  alpha {alpha.alpha:.4f} ({low:.4f} to {high:.4f}), Fleiss' kappa {fleiss_kappa(table):.4f}"
        )
        counted, skilled, answers = adaptive(table, gold, options.orders)[4]
        least, better, most = ADAPTIVE_LIMITS
        if name == "d_possent" and (counted < least or skilled < better or answers > most):
            below.append(f"{name} adaptive")
    for one in below:
        print(f"below its minimum: {one}")
    return int(bool(below))


if __name__ == "__main__":
    raise SystemExit(main())
